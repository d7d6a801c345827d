// Package ruletext parses the text of a rule of iptables, and writes it from the parsed form.
//
//	r, want := ruletext.Parse("-p tcp --dpo 22 -jDROP")
//	ruletext.Join(r.Words()) // -p tcp --dport 22 -j DROP
//
// iptables-restore takes each word of a rule that it can read as an option, also in the middle, and some options are
// whole commands. With --help or --version, however short they are spelled, it ends with success and writes nothing.
// So a rule is parsed as iptables does it, and written from the parsed form.
//
//	rule       = { ["!"] option { value } }
//	option     = "--name" | "--name=value" | an unambiguous beginning of them | "-x" | "-xvalue" | "-xy"
//
// The options are those of a rule itself (general), and those of the matches and the target before them. What a match or target
// that is not in extensions.go may have is unknown. From the first such option on, each word stays as it is, and none may be one
// that iptables can read as a forbidden option.
//
// Tests: tables of texts, fuzzing, and random rules that iptables must read in the same way.
package ruletext

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// A Rule is a parsed rule.
type Rule struct {
	parts []part
	// rest are the words from the first option on that only an unknown match or target can have.
	rest []string
}

// Parse parses a rule. If it is invalid, want is the allowed form.
func Parse(text string) (r Rule, want string) {
	all, err := Split(text)
	switch {
	case errors.Is(err, errOpenQuote):
		return r, "closed quotes"
	case err != nil:
		return r, "one line without control characters"
	}
	r, want = parse(all)
	if want != "" {
		return r, want
	}
	all = r.Words()
	switch {
	case len(all) == 0:
		return r, `matches and a target, such as "-s 10.0.0.0/8 -j DROP"`
	case len(text) > 1000 && len(Join(all)) > maxRule: // whole names make no shorter text that long
		return r, fmt.Sprintf("at most %d bytes", maxRule)
	case len(all) > maxWords:
		return r, fmt.Sprintf("at most %d words", maxWords)
	}
	return r, ""
}

// A part is an option of a rule with its values.
type part struct {
	not    bool   // "!" is before it
	option string // with its dashes, as a whole
	values []string
}

// Words returns the words of the rule, as iptables shall read them.
func (r Rule) Words() []string {
	out := make([]string, 0, 3*len(r.parts)+len(r.rest))
	for _, p := range r.parts {
		if p.not {
			out = append(out, "!")
		}
		out = append(append(out, p.option), p.values...)
	}
	return append(out, r.rest...)
}

// Listed returns the number of rules that iptables lists for the rule: one for each combination of addresses. The name of a host
// has any number of them, and what an unknown match or target makes is unknown, too; then more is true, and n the least number.
func (r Rule) Listed() (n int, more bool) {
	n = 1
	for _, p := range r.parts {
		if g, _ := generalOption(p.option); g.letter != 's' && g.letter != 'd' {
			continue
		}
		addresses := 0
		for address := range strings.SplitSeq(p.values[0], ",") {
			if isName(address) {
				return 1, true
			}
			addresses++
		}
		n *= addresses
	}
	return n, len(r.rest) > 0
}

// isName reports whether an address of a rule may be the name of a host or network.
func isName(address string) bool {
	address, _, _ = strings.Cut(address, "/")
	_, err := netip.ParseAddr(address)
	return err != nil
}

// A general is an option that needs no match or target. Those that are no part of a rule are forbidden: they choose a command, a
// table or how iptables itself runs, or iptables refuses them.
type general struct {
	letter  byte
	names   []string
	values  int
	negates bool // "!" may be before it
	allowed bool
	repeats bool
}

// generals returns the options of iptables 1.8.9, which a test compares with the installed one.
func generals() []general {
	return []general{
		{letter: 's', names: []string{"source", "src"}, values: 1, negates: true, allowed: true},
		{letter: 'd', names: []string{"destination", "dst"}, values: 1, negates: true, allowed: true},
		{letter: 'p', names: []string{"protocol"}, values: 1, negates: true, allowed: true},
		{letter: 'i', names: []string{"in-interface"}, values: 1, negates: true, allowed: true},
		{letter: 'o', names: []string{"out-interface"}, values: 1, negates: true, allowed: true},
		{letter: 'f', names: []string{"fragments"}, negates: true, allowed: true},
		{letter: 'm', names: []string{"match"}, values: 1, allowed: true, repeats: true},
		{letter: 'j', names: []string{"jump"}, values: 1, allowed: true},
		{letter: 'g', names: []string{"goto"}, values: 1, allowed: true},
		{letter: 'c', names: []string{"set-counters"}, values: 2, allowed: true},
		{letter: 'v', names: []string{"verbose"}, allowed: true, repeats: true},

		{letter: 'A', names: []string{"append"}},
		{letter: 'C', names: []string{"check"}},
		{letter: 'D', names: []string{"delete"}},
		{letter: 'E', names: []string{"rename-chain"}},
		{letter: 'F', names: []string{"flush"}},
		{letter: 'I', names: []string{"insert"}},
		{letter: 'L', names: []string{"list"}},
		{letter: 'M', names: []string{"modprobe"}},
		{letter: 'N', names: []string{"new-chain"}},
		{letter: 'P', names: []string{"policy"}},
		{letter: 'R', names: []string{"replace"}},
		{letter: 'S', names: []string{"list-rules"}},
		{letter: 'V', names: []string{"version"}},
		{letter: 'W', names: []string{"wait-interval"}},
		{letter: 'X', names: []string{"delete-chain"}},
		{letter: 'Z', names: []string{"zero"}},
		{letter: 'h', names: []string{"help"}},
		{letter: 'n', names: []string{"numeric"}},
		{letter: 't', names: []string{"table"}},
		{letter: 'w', names: []string{"wait"}},
		{letter: 'x', names: []string{"exact"}},
		{letter: '0', names: []string{"line-numbers"}},
		{letter: '4', names: []string{"ipv4"}},
		{letter: '6', names: []string{"ipv6"}},
	}
}

// generalByName returns the general options by their letters and names.
var generalByName = sync.OnceValue(func() map[string]general {
	all := map[string]general{}
	for _, g := range generals() {
		all["-"+string(g.letter)] = g
		for _, name := range g.names {
			all["--"+name] = g
		}
	}
	return all
})

// generalOption returns the general option with that letter or whole name, with its dashes.
func generalOption(word string) (general, bool) {
	g, known := generalByName()[word]
	return g, known
}

// A parser reads the words of a rule from the left.
type parser struct {
	Rule
	words    []string     // not read yet
	loaded   []*extension // in the order of their -m and -j; nil stands for one that is not known
	protocol *extension   // the match that -p adds when nothing else has an option
	seen     [128]bool    // by letter
}

// parse returns the parsed form of words, or the allowed form if they are no rule.
func parse(words []string) (r Rule, want string) {
	p := parser{Rule: Rule{parts: make([]part, 0, len(words)/2+1)}, words: words}
	for len(p.words) > 0 && want == "" {
		want = p.part()
	}
	return p.Rule, want
}

// part reads one option with its values.
func (p *parser) part() (want string) {
	not := p.words[0] == "!"
	if not {
		p.words = p.words[1:]
		if len(p.words) == 0 {
			return `an option after "!"`
		}
	}
	word := p.words[0]
	switch {
	case word == "--" && len(p.words) == 1 && !not:
		p.words = nil // the end of the options, which says nothing
		return ""
	case word == "-" || word == "--" || !strings.HasPrefix(word, "-"):
		return fmt.Sprintf("options and their values instead of %q: it belongs to none; a text with blanks has double quotes", word)
	case strings.HasPrefix(word, "--"):
		return p.long(not, word)
	}
	return p.short(not, word)
}

// short reads a word such as "-j", "-jDROP" or "-fj": all letters are general options.
func (p *parser) short(not bool, word string) (want string) {
	p.words = p.words[1:]
	for rest := word[1:]; rest != ""; {
		option := "-" + rest[:1]
		if len(word) == 2 {
			option = word
		}
		g, known := generalOption(option)
		switch {
		case !known:
			return fmt.Sprintf("an option of iptables instead of -%s", strings.ToValidUTF8(rest[:1], "?"))
		case !g.allowed:
			return forbidden(option)
		}
		rest = rest[1:]
		if g.values > 0 && rest != "" {
			p.words, rest = append([]string{rest}, p.words...), ""
		}
		want = p.general(not, option, g)
		if want != "" {
			return want
		}
		not = false
	}
	return ""
}

// long reads an option with a name.
func (p *parser) long(not bool, word string) (want string) {
	dashed, value, assigned := strings.Cut(word, "=")
	name := dashed[2:]
	option, found, want := p.lookUp(dashed)
	switch {
	case want != "":
		return want
	case found == unknown:
		return p.unknown(not, name)
	case assigned && option.values == 0:
		return fmt.Sprintf("--%s without a value", option.name)
	}
	p.words = p.words[1:]
	if assigned {
		p.words = append([]string{value}, p.words...)
	}
	if option.name != name {
		dashed = "--" + option.name
	}
	if g, _ := generalOption(dashed); found == isGeneral {
		return p.general(not, dashed, g)
	}
	_, want = p.take(not, dashed, option.values)
	return want
}

// The result of a look-up.
type finding int

const (
	unknown finding = iota
	isGeneral
	isExtension
)

// lookUp returns the option that iptables takes a name, or the beginning of one, for. It prefers the general options, then the
// match or target that was named last.
func (p *parser) lookUp(dashed string) (o option, found finding, want string) {
	name := dashed[2:]
	if g, known := generalOption(dashed); known {
		if !g.allowed {
			return o, unknown, forbidden(dashed)
		}
		return option{name, g.values}, isGeneral, ""
	}
	for _, e := range slices.Backward(p.loaded) {
		if e == nil {
			return o, unknown, "" // it may have this option, too
		}
		if o, ok := e.find(name); ok {
			return o, isExtension, ""
		}
	}
	if slices.Contains(p.loaded, nil) {
		return o, unknown, ""
	}
	if p.protocol != nil {
		if o, ok := p.protocol.find(name); ok {
			p.loaded, p.protocol = append(p.loaded, p.protocol), nil
			return o, isExtension, ""
		}
	}
	return p.abbreviated(name)
}

// A candidate is an option that iptables may take the beginning of a name for.
type candidate struct {
	option
	found   finding
	allowed bool
}

// abbreviated returns the only option that begins with a name.
func (p *parser) abbreviated(name string) (o option, found finding, want string) {
	all := p.candidates(name)
	switch {
	case len(all) == 0 || name == "":
		return o, unknown, ""
	case len(all) > 1:
		names := make([]string, len(all))
		for i, c := range all {
			names[i] = c.name
		}
		return o, unknown, fmt.Sprintf("a whole name instead of --%s, which may be --%s", name, strings.Join(names, ", --"))
	case !all[0].allowed:
		return o, unknown, forbidden("--" + name)
	}
	return all[0].option, all[0].found, ""
}

// candidates returns the options that begin with a name. Those of the protocol count if there is no other.
func (p *parser) candidates(name string) (out []candidate) {
	for _, g := range generals() {
		// All names of an option are the same to iptables: --sr and --so are no two candidates.
		i := slices.IndexFunc(g.names, func(whole string) bool { return strings.HasPrefix(whole, name) })
		if i >= 0 {
			out = append(out, candidate{option{g.names[i], g.values}, isGeneral, g.allowed})
		}
	}
	for _, e := range p.loaded {
		out = append(out, e.candidates(name)...)
	}
	if len(out) == 0 && p.protocol != nil {
		out = p.protocol.candidates(name)
		if len(out) > 0 {
			p.loaded, p.protocol = append(p.loaded, p.protocol), nil
		}
	}
	return out
}

// candidates returns the options of a match or target that begin with a name.
func (e *extension) candidates(name string) (out []candidate) {
	for _, o := range e.options {
		if strings.HasPrefix(o.name, name) {
			out = append(out, candidate{o, isExtension, true})
		}
	}
	return out
}

// general reads the values of a general option, and notes what it says.
func (p *parser) general(not bool, option string, g general) (want string) {
	place := g.letter
	if place == 'g' {
		place = 'j' // a rule has one target
	}
	switch {
	case not && !g.negates:
		return fmt.Sprintf(`%s without "!"`, option)
	case p.seen[place] && !g.repeats:
		return option + " once"
	}
	p.seen[place] = true
	number := g.values
	if g.letter == 'c' && len(p.words) > 0 && strings.Contains(p.words[0], ",") {
		number = 1 // packets and bytes
	}
	values, want := p.take(not, option, number)
	if want != "" {
		return want
	}
	switch g.letter {
	case 'p':
		p.protocol = ofProtocol(values[0])
	case 'm':
		return p.load(option, values[0], matchExtensions())
	case 'j':
		return p.load(option, values[0], targetExtensions())
	case 'g':
		if !extensionName.MatchString(values[0]) {
			return option + " and the name of a chain"
		}
	}
	return ""
}

// extensionName is the form of the name of a match, a target or a chain. iptables makes the name of a file of it.
var extensionName = regexp.MustCompile(`^[A-Za-z0-9_.+][-A-Za-z0-9_.+:]{0,27}$`)

// load notes a match or target, from which on its options are known. A target that is not known may be a chain.
func (p *parser) load(option, name string, known map[string]*extension) (want string) {
	if !extensionName.MatchString(name) {
		return option + " and the name of a match, a target or a chain"
	}
	p.loaded = append(p.loaded, known[name])
	return ""
}

// take reads the values of an option and appends the part. The first value may be any word; those that follow must not look
// like options, or iptables takes them for such.
func (p *parser) take(not bool, option string, number int) (values []string, want string) {
	for i := range number {
		if i >= len(p.words) || i > 0 && (strings.HasPrefix(p.words[i], "-") || strings.HasPrefix(p.words[i], "!")) {
			return nil, fmt.Sprintf("%s with %s", option, plural(number))
		}
	}
	values, p.words = p.words[:number:number], p.words[number:]
	p.parts = append(p.parts, part{not, option, values})
	return values, ""
}

// plural returns a number of values as text.
func plural(n int) string {
	if n == 1 {
		return "a value"
	}
	return fmt.Sprintf("%d values", n)
}

// unknown takes all words that are left as they are, if an unknown match or target may have an option of that name. It is
// not known which of the words are values, so any of them may be an option.
func (p *parser) unknown(not bool, name string) (want string) {
	if !slices.Contains(p.loaded, nil) {
		return p.optionsFor(name)
	}
	for _, word := range p.words {
		if bad := readsAsForbidden(word); bad != "" {
			return forbidden(word)
		}
	}
	if not {
		p.rest = append(p.rest, "!")
	}
	p.rest, p.words = append(p.rest, p.words...), nil
	return ""
}

// optionsFor returns what is allowed in place of an option that nothing in the rule has.
func (p *parser) optionsFor(name string) string {
	if len(p.loaded) == 0 {
		return fmt.Sprintf("-m or -j, and the match or target that has the option, before --%s", name)
	}
	var all []string
	for _, e := range p.loaded {
		for _, o := range e.options {
			all = append(all, "--"+o.name)
		}
	}
	if len(all) == 0 {
		return fmt.Sprintf("nothing instead of --%s: the match or target has no options", name)
	}
	return fmt.Sprintf("an option of the match or target instead of --%s: %s", name, strings.Join(all, ", "))
}

// forbidden returns the allowed form of a rule with an option that is no part of one.
func forbidden(option string) string {
	return fmt.Sprintf("matches and a target without %s: the fields of the value name the chain, and the agent calls iptables", option)
}

// readsAsForbidden returns a forbidden option that iptables may read in a word, or "". In a word with one dash, those before the
// first option with a value count; of a name, its beginning is enough.
func readsAsForbidden(word string) string {
	if name, long := strings.CutPrefix(word, "--"); long {
		name, _, _ = strings.Cut(name, "=")
		for _, g := range generals() {
			if name != "" && !g.allowed && strings.HasPrefix(g.names[0], name) {
				return "--" + g.names[0]
			}
		}
		return ""
	}
	letters, short := strings.CutPrefix(word, "-")
	for i := 0; short && i < len(letters); i++ {
		g, known := generalOption("-" + letters[i:i+1])
		switch {
		case known && !g.allowed:
			return "-" + letters[i:i+1]
		case known && g.values > 0:
			return ""
		}
	}
	return ""
}
