package ruletext

import (
	"errors"
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

// Split splits a rule like iptables-restore does: at blanks, except between double quotes,
// where a backslash takes the next character literally. A closing quote ends the word.
func Split(rule string) (out []string, err error) {
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

// Join is the inverse of Split: it quotes where necessary.
func Join(all []string) string {
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
