package scheduler

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// printable is text on one line. Keys come from stores, and may hold line breaks
// or commands to a terminal: text with such is escaped as in a Go string.
func printable(text string) string {
	hidden := func(r rune) bool { return !unicode.IsPrint(r) }
	if utf8.ValidString(text) && !strings.ContainsFunc(text, hidden) {
		return text
	}
	quoted := strconv.Quote(text)
	return quoted[1 : len(quoted)-1]
}
