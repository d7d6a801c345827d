// Package enum has the texts of numbers that stand for names.
package enum

import "strconv"

// Name returns the name of n; if there is none, a text such as "state 17".
func Name(names []string, n int32, kind string) string {
	if n < 0 || int(n) >= len(names) {
		return kind + " " + strconv.Itoa(int(n))
	}
	return names[n]
}
