package components

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/internal/testkit/draw"
)

// TestReaches compares searches in random graphs with one that visits everything.
func TestReaches(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		const nodes = 8 // from 1; 0 is none
		next := make([][]int, nodes+1)
		for n := 1; n <= nodes; n++ {
			next[n] = rapid.SliceOfN(rapid.IntRange(1, nodes), 0, 3).Draw(t, "next")
		}
		end := rapid.IntRange(0, nodes).Draw(t, "which leads to none")
		next[end] = append(next[end], 0)
		marked := rapid.SliceOfN(rapid.IntRange(1, nodes), 0, 2).Draw(t, "marked")
		s := Search[int]{Next: func(n int) []int { return next[n] }, Marked: func(n int) bool { return slices.Contains(marked, n) }, Most: 1000, Unknown: true}
		for _, n := range rapid.Permutation([]int{1, 2, 3, 4, 5, 6, 7, 8}).Draw(t, "order") {
			all := []int{n}
			for i := 0; i < len(all); i++ {
				for _, m := range next[all[i]] {
					if !slices.Contains(all, m) {
						all = append(all, m)
					}
				}
			}
			want := slices.ContainsFunc(all, func(m int) bool { return m == 0 || slices.Contains(marked, m) })
			if got := s.Reaches(n); got != want {
				t.Fatalf("from %d over %v to one of %v: %v, want %v", n, next[1:], marked, got, want)
			}
		}
	})
}

// TestReachesOfFew limits the search: what was not looked at counts as marked, or not.
func TestReachesOfFew(t *testing.T) {
	const length = 10 // in steps
	for _, most := range []int{length - 1, length} {
		for _, unknown := range []bool{false, true} {
			s := Search[int]{
				Next: func(n int) []int {
					if n <= length {
						return []int{n + 1}
					}
					return nil
				},
				Marked: func(int) bool { return false }, Most: most, Unknown: unknown,
			}
			if got, want := s.Reaches(1), unknown && most < length; got != want {
				t.Errorf("in a chain of %d with a limit of %d, beyond which all count as %v: %v, want %v", length, most, unknown, got, want)
			}
		}
	}
}

// TestReachesCosts counts the steps that searches ask for: those from many nodes cost no more than one.
func TestReachesCosts(t *testing.T) {
	const each, most = 100, 1000
	all := make([]int, each)
	for i := range all {
		all[i] = i + 1
	}
	for _, marked := range []int{0, 1, each} {
		asked := 0
		s := Search[int]{
			Next:   func(int) []int { asked += each; return all },
			Marked: func(n int) bool { return n == marked }, Most: most,
		}
		for n := range 10_000 {
			s.Reaches(each + 1 + n)
		}
		if asked > most+each {
			t.Errorf("if %d is marked, %d steps were asked for, with a limit of %d", marked, asked, most)
		}
	}
}
