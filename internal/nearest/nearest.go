// Package nearest finds the known word that is meant by a misspelled one, for messages
// such as "did you mean mtu?".
package nearest

import (
	"iter"
	"strings"
	"unicode"
)

// longest is the length in bytes of the longest word that is compared. It bounds the cost
// of input that is not trusted.
const longest = 64

// Word returns the word that is most similar to given, or "" if none is similar; see Words. Of two
// equally similar words the first is returned.
func Word(given string, words []string) (best string) {
	least := 0
	for word, d := range similar(given, words) {
		if best == "" || d < least {
			best, least = word, d
		}
	}
	return best
}

// Words returns the words that given may be meant to be, in their order. Case, underscores and dashes are ignored.
// A word that begins with given is similar.
func Words(given string, words []string) (out []string) {
	for word := range similar(given, words) {
		out = append(out, word)
	}
	return out
}

// similar yields the similar words, each with its distance.
func similar(given string, words []string) iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		if len(given) > longest {
			return
		}
		g := plain(given)
		for _, word := range words {
			w := plain(word)
			d := distance(g, w)
			if len(g) > 2 && strings.HasPrefix(w, g) {
				d = min(d, 1)
			}
			if d <= max(1, len(g)/3) && !yield(word, d) {
				return
			}
		}
	}
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
