// Package nearest finds the known word that is meant by a misspelled one, for messages
// such as "did you mean mtu?".
package nearest

import (
	"strings"
	"unicode"
)

// longest is the length in bytes of the longest word that is compared. It bounds the cost
// of input that is not trusted.
const longest = 64

// Word returns the word that is most similar to given, or "" if none is similar. Case,
// underscores and dashes are ignored. A word that begins with given is similar. Of two
// equally similar words the first is returned.
func Word(given string, words []string) string {
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

// Distance returns the number of bytes to insert, delete or replace to turn a into b. Case,
// underscores and dashes are ignored.
func Distance(a, b string) int { return distance(plain(a), plain(b)) }

// plain removes differences that people do not see as such: case, dashes and underscores.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' {
			return -1
		}
		return unicode.ToLower(r)
	}, s)
}

// distance is the Levenshtein distance.
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
