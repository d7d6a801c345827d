package document

import "strings"

// Nearest returns the name of a list that a mistyped one most likely means, or
// "" where none is near.
func Nearest(name string, of []string) string {
	best, least := "", len(name)/3+1
	for _, one := range of {
		if d := distance(strings.ToLower(name), strings.ToLower(one)); d <= least && (best == "" || d < least) {
			best, least = one, d
		}
	}
	return best
}

// distance counts the letters to add, drop or change to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
