package models

import (
	"strings"
	"unicode"
)

// Nearest returns the word that is most similar to given, for errors that ask "did you
// mean ...?", or "" if none is similar. Case, underscores and dashes are ignored, and a
// prefix counts as similar.
func Nearest(given string, words []string) string {
	const longest = 64 // no word is longer
	if len(given) > longest {
		return ""
	}
	g := plain(given)
	best, least := "", max(1, len(g)/3)+1
	for _, word := range words {
		w := plain(word)
		d := distance(g, w)
		if len(g) > 2 && strings.HasPrefix(w, g) {
			d = min(d, 1)
		}
		if d < least {
			best, least = word, d
		}
	}
	return best
}

func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' {
			return -1
		}
		return unicode.ToLower(r)
	}, s)
}

// distance returns the Levenshtein distance: insertions, deletions and replacements of
// bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
