package show

import (
	"slices"
	"unicode"

	"golang.org/x/text/width"
)

// ellipsis stands for the middle of a text that is too wide.
const ellipsis = "…"

// Width returns the number of columns that a printable text takes on a terminal. East Asian
// characters take two (UAX #11), and marks that combine with the character before them none.
func Width(text string) (n int) {
	for _, r := range text {
		n += runeWidth(r)
	}
	return n
}

// runeWidth returns the number of columns of one character.
func runeWidth(r rune) int {
	if r < 0x300 { // the first combining mark; nothing below is wide
		return 1
	}
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	if kind := width.LookupRune(r).Kind(); kind == width.EastAsianWide || kind == width.EastAsianFullwidth {
		return 2
	}
	return 1
}

// Shorten replaces the middle of a text that is wider than most columns by an ellipsis. The
// result is at most that wide; it is empty if most is not above 0.
func Shorten(text string, most int) string {
	if Width(text) <= most {
		return text
	}
	if most < 1 {
		return ""
	}
	all := []rune(text)
	room := most - 1 // the ellipsis takes one
	head, tail := 0, len(all)
	// The end of a name tells more than its beginning, so it has the odd column.
	for left := room / 2; head < tail && runeWidth(all[head]) <= left; head++ {
		left -= runeWidth(all[head])
		room -= runeWidth(all[head])
	}
	for tail > head && runeWidth(all[tail-1]) <= room {
		tail--
		room -= runeWidth(all[tail])
	}
	// A mark without its character would join the ellipsis.
	for tail < len(all) && runeWidth(all[tail]) == 0 {
		tail++
	}
	return string(all[:head]) + ellipsis + string(all[tail:])
}

// endOf replaces the beginning of a name that is wider than most columns by an ellipsis. What is left
// begins at a slash if there is one in the first half of it.
func endOf(name string, most int) string {
	if Width(name) <= most {
		return name
	}
	all := []rune(name)
	at := len(all)
	for room := most - 1; at > 0 && runeWidth(all[at-1]) <= room; at-- {
		room -= runeWidth(all[at-1])
	}
	if slash := slices.Index(all[at:], '/'); slash >= 0 && slash <= (len(all)-at)/2 {
		at += slash
	}
	// A mark without its character would join the ellipsis.
	for at < len(all) && runeWidth(all[at]) == 0 {
		at++
	}
	return ellipsis + string(all[at:])
}
