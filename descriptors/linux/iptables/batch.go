package iptables

import (
	"slices"
	"strconv"
	"strings"

	"github.com/keyplane/keyplane/descriptors/linux/iptables/internal/ruletext"
)

// A batch is the input of iptables-restore for one table. The kernel takes all of it or
// nothing.
type batch struct {
	table table
	lines []string
	rules []source // for each line: the rule of a value that it came from
}

// A source is a rule of a value. value and rule are indexes; rule is -1 for lines that are not
// rules of the value.
type source struct{ value, rule int }

// add appends a line that the value needs.
func (b *batch) add(value int, words ...string) {
	b.lines = append(b.lines, ruletext.Join(words))
	b.rules = append(b.rules, source{value, -1})
}

// text is the input of iptables-restore.
func (b *batch) text() string {
	var out strings.Builder
	out.WriteString("*" + b.table.name + "\n")
	for _, one := range b.lines {
		out.WriteString(one)
		out.WriteByte('\n')
	}
	out.WriteString("COMMIT\n")
	return out.String()
}

// source returns the origin of a line of text, counted from 1. It is false for the first line
// and for a number outside the text.
func (b *batch) source(line int) (source, bool) {
	i := line - 2 // the first line is the table
	if i < 0 || i >= len(b.rules) {
		return source{}, false
	}
	return b.rules[i], true
}

// A content is all that a value has in the kernel.
type content struct {
	mark
	chain string
	rules []string // in normal form
	// listed is how many rules iptables lists for rules; more: or any greater number.
	listed int
	more   bool
}

// create makes the chain. The batch fails if a chain of that name exists, whose owner must be
// known first.
func (b *batch) create(value int, c content) {
	b.add(value, "-N", c.chain)
	b.fill(value, c)
}

// replace makes the chain empty, or creates it, and fills it. Packets never meet a chain that
// is half full.
func (b *batch) replace(value int, c content) {
	b.empty(value, c.chain)
	b.fill(value, c)
}

// fill appends the mark and the rules.
func (b *batch) fill(value int, c content) {
	b.add(value, slices.Concat([]string{"-A", c.chain}, commented(c.mark.String()))...)
	begin := "-A " + c.chain + " "
	b.lines, b.rules = slices.Grow(b.lines, len(c.rules)), slices.Grow(b.rules, len(c.rules))
	for i, rule := range c.rules {
		b.lines = append(b.lines, begin+rule)
		b.rules = append(b.rules, source{value, i})
	}
}

// enter appends the jump to the end of the built-in chain, so that the rules of other programs
// keep their order.
func (b *batch) enter(value int, c content) {
	if c.in != "" {
		b.add(value, slices.Concat([]string{"-A", c.in}, c.jump())...)
	}
}

// leave removes all jumps that were found. A rule is the listed text, so that -D finds it in
// both backends.
func (b *batch) leave(value int, m mine) {
	for _, j := range m.jumps {
		b.lines = append(b.lines, "-D "+j.from+" "+j.rule)
		b.rules = append(b.rules, source{value, -1})
	}
}

// jump returns the words of the rule that leads to the chain.
func (c content) jump() []string {
	return append(commented(owner(c.label, c.name)), "-j", c.chain)
}

// copy appends the text of rules that were listed.
func (b *batch) copy(value int, chain string, rules []string) {
	for _, rule := range rules {
		b.lines = append(b.lines, "-A "+chain+" "+rule)
		b.rules = append(b.rules, source{value, -1})
	}
}

// empty makes the chain empty, or creates it. This form of a line, unlike -F, also creates. iptables-restore --noflush
// empties only the chains that have such a line.
func (b *batch) empty(value int, chain string) {
	b.lines = append(b.lines, ":"+chain+" - [0:0]")
	b.rules = append(b.rules, source{value, -1})
}

// setPolicy sets the policy of a built-in chain; "" leaves it.
func (b *batch) setPolicy(value int, chain, policy string) {
	if policy != "" {
		b.add(value, "-P", chain, policy)
	}
}

// restorePolicy returns the policy to the built-in chain that it had before the agent, unless
// another program has changed it since.
func (b *batch) restorePolicy(value int, m mine) {
	if m.was != "" && m.actual == m.policy {
		b.setPolicy(value, m.in, m.was)
	}
}

// remove removes a chain without jumps. The kernel refuses -X for a chain with rules, or with a
// jump to it from another chain.
func (b *batch) remove(value int, chain string) {
	b.add(value, "-F", chain)
	b.add(value, "-X", chain)
}

// remark replaces the mark, which is the first rule. The replacement is atomic, so the chain
// has a mark at every moment.
func (b *batch) remark(chain string, m mark) {
	b.add(0, slices.Concat([]string{"-R", chain, strconv.Itoa(1)}, commented(m.String()))...)
}
