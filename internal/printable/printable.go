// Package printable makes text from outside safe to print. Keys, values, labels, file
// names and the errors of servers may hold commands to a terminal (ESC), line breaks that
// forge a line, and characters that change the order or hide parts of the text.
//
//	fmt.Fprintln(out, printable.Line(key))
//	fmt.Fprintln(out, "run: agentctl explain "+printable.Word(key))
//
// A character is printable if Unicode classes it as a letter, mark, number, punctuation or
// symbol, or if it is the space. All others are escaped as in a Go string: controls (Cc),
// bidirectional overrides and other formats (Cf), line and paragraph separators (Zl, Zp),
// other spaces (Zs), private and unassigned characters, and bytes that are not UTF-8.
//
// It is used where text leaves the program for people. JSON and YAML stay exact.
package printable

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line returns text on one line: line feeds are escaped too.
func Line(text string) string { return escape(text, func(rune) bool { return false }) }

// Text returns text that may have several lines. Use it only if each line feed is the
// agent's own.
func Text(text string) string { return escape(text, func(r rune) bool { return r == '\n' }) }

// Word returns text as one word of a shell command that people may copy. Text that needs
// no quotes has none. Text with characters that are not printable has the form $'...',
// which bash, ksh and zsh support.
func Word(text string) string {
	line := Line(text)
	switch {
	case line != text:
		return "$'" + dollarQuoted(text) + "'"
	case text != "" && !strings.ContainsFunc(text, special):
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// special reports whether a shell may give r a special meaning. It may only err on the
// safe side: unnecessary quotes do no harm.
func special(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_./:@%+,", r)
}

// dollarQuoted returns the text between $' and '. The bytes of a character that is not
// printable are in octal, because \u depends on the locale.
func dollarQuoted(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == '\'' || r == '\\':
			b.WriteString(`\` + string(r))
		case hidden(r, n):
			for _, c := range []byte(text[i : i+n]) {
				fmt.Fprintf(&b, `\%03o`, c)
			}
		default:
			b.WriteRune(r)
		}
		i += n
	}
	return b.String()
}

// hidden reports whether a character that was decoded from n bytes is not printable.
func hidden(r rune, n int) bool { return !unicode.IsPrint(r) || r == utf8.RuneError && n == 1 }

// escape replaces the characters that a terminal would interpret, except those to keep.
// Text without any is returned as it is, without a copy.
func escape(text string, keep func(rune) bool) string {
	if plain(text) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if !hidden(r, n) || keep(r) {
			b.WriteString(text[i : i+n])
		} else {
			b.WriteString(escaped(r, n, text[i]))
		}
		i += n
	}
	return b.String()
}

// plain reports quickly whether text is printable ASCII, like nearly all text.
func plain(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// escaped returns the escape of a character, or of a byte that is no UTF-8.
func escaped(r rune, n int, first byte) string {
	switch {
	case r == utf8.RuneError && n == 1:
		return fmt.Sprintf(`\x%02x`, first)
	case r == '\n':
		return `\n`
	case r == '\r':
		return `\r`
	case r == '\t':
		return `\t`
	case r < utf8.RuneSelf:
		return fmt.Sprintf(`\x%02x`, r)
	case r > 0xffff:
		return fmt.Sprintf(`\U%08x`, r)
	}
	return fmt.Sprintf(`\u%04x`, r)
}
