package iptables

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// maxRule is the length, in bytes, of the longest rule. iptables-restore reads lines into a
// buffer of 10240 bytes, and some versions do not check it. The rest is for the name of the
// chain.
const maxRule = 9000

// maxWords is the number of words that a rule may have: iptables-restore refuses more than
// 255 arguments, and adds some.
const maxWords = 240

var (
	errOpenQuote = errors.New("a quote is not closed")
	errControl   = errors.New("a control character, such as a line break")
)

// words splits a rule like iptables-restore does: at blanks, except between double quotes,
// where a backslash takes the next character literally. A closing quote ends the word.
func words(rule string) (out []string, err error) {
	// A line break would begin another command.
	if strings.ContainsFunc(rule, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		return nil, errControl
	}
	const blanks = " \t"
	for rest := strings.TrimLeft(rule, blanks); rest != ""; rest = strings.TrimLeft(rest, blanks) {
		word := rest
		if end := strings.IndexAny(rest, blanks+`"`); end >= 0 {
			word = rest[:end]
		}
		rest = rest[len(word):]
		if strings.HasPrefix(rest, `"`) {
			text, after, closed := unquote(rest[1:])
			if !closed {
				return nil, errOpenQuote
			}
			word, rest = word+text, after
		}
		out = append(out, word)
	}
	return out, nil
}

// unquote returns the text up to the closing quote, and everything after it.
func unquote(quoted string) (text, after string, closed bool) {
	var b strings.Builder
	for i := 0; i < len(quoted); i++ {
		switch c := quoted[i]; {
		case c == '"':
			return b.String(), quoted[i+1:], true
		case c == '\\' && i+1 < len(quoted):
			i++
			b.WriteByte(quoted[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", "", false
}

// line is the inverse of words: it quotes where necessary.
func line(all []string) string {
	var b strings.Builder
	for i, word := range all {
		if i > 0 {
			b.WriteByte(' ')
		}
		if word != "" && !strings.ContainsAny(word, " \t\"\\'") {
			b.WriteString(word)
			continue
		}
		b.WriteByte('"')
		for _, c := range []byte(word) {
			if c == '"' || c == '\\' {
				b.WriteByte('\\')
			}
			b.WriteByte(c)
		}
		b.WriteByte('"')
	}
	return b.String()
}

// normalRule removes superfluous blanks and quotes. Other spellings of one rule stay
// different: only iptables knows which are equal. A rule that cannot be split stays.
func normalRule(rule string) string {
	all, err := words(rule)
	if err != nil {
		return rule
	}
	return line(all)
}

// commands are the options that choose a command, a table or how iptables itself runs. A rule
// has only matches and a target.
func isCommand(word string) bool {
	switch word {
	case "-A", "--append", "-C", "--check", "-D", "--delete", "-E", "--rename-chain", "-F", "--flush", "-I", "--insert",
		"-L", "--list", "-N", "--new", "--new-chain", "-P", "--policy", "-R", "--replace", "-S", "--list-rules",
		"-X", "--delete-chain", "-Z", "--zero", "-t", "--table", "-w", "--wait", "-W", "--wait-interval", "-M", "--modprobe",
		"-4", "--ipv4", "-6", "--ipv6", "-V", "--version", "-h", "--help":
		return true
	}
	return false
}

// wrongRule returns the allowed form if the rule is invalid, or "".
func wrongRule(rule string) (want string) {
	all, err := words(rule)
	switch {
	case errors.Is(err, errOpenQuote):
		return "closed quotes"
	case err != nil:
		return "one line without control characters"
	case len(all) == 0:
		return `matches and a target, such as "-s 10.0.0.0/8 -j DROP"`
	case len(line(all)) > maxRule:
		return fmt.Sprintf("at most %d bytes", maxRule)
	case len(all) > maxWords:
		return fmt.Sprintf("at most %d words", maxWords)
	}
	for i, word := range all {
		// The word after --comment or --log-prefix is a text.
		if isCommand(word) && (i == 0 || !strings.HasPrefix(all[i-1], "--")) {
			return fmt.Sprintf("matches and a target without %s: the fields of the value name the chain", word)
		}
	}
	return ""
}

// digest is a fingerprint of rules: 16 hexadecimal digits.
func digest(rules []string) string {
	sum := sha256.New()
	for _, rule := range rules {
		sum.Write([]byte(rule))
		sum.Write([]byte{'\n'})
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// normalRules applies normalRule to all. The slice is a copy, since values must not be changed
// in place.
func normalRules(rules []string) []string {
	out := slices.Clone(rules)
	for i, rule := range out {
		out[i] = normalRule(rule)
	}
	return out
}
