package components

import (
	"slices"
	"strings"
	"testing"
)

// TestClosed writes each graph as "a>b a>-": a waits for b and for a node
// outside all components.
func TestClosed(t *testing.T) {
	tests := []struct{ edges, want string }{
		{"", ""},
		{"a>b b>a", "ab"},
		{"a>a", "a"},
		{"a>b b>c c>a", "abc"},
		{"a>b b>a a>-", ""},             // one member waits for an outsider
		{"a>b b>a b>c", "c"},            // c waits for nobody, so a and b wait for an outsider
		{"a>b b>a c>d d>c", "ab cd"},    // two components
		{"a>b b>a c>a c>d d>c", "ab"},   // c and d wait for a
		{"a>b b>a b>c c>d d>c", "cd"},   // a and b wait for c
		{"a>b a>c b>d c>d d>a", "abcd"}, // two paths
		{"a>b b>c c>b c>-", ""},         // the outsider is found behind a member
		{"a>b b>a c>d d>e e>c e>a", "ab"},
	}
	for _, tt := range tests {
		next := map[string][]string{}
		var roots []string
		for edge := range strings.FieldsSeq(tt.edges) {
			from, to, _ := strings.Cut(edge, ">")
			next[from] = append(next[from], strings.Trim(to, "-"))
			roots = append(roots, from)
		}
		var got []string
		for _, members := range Closed(roots, func(n string) []string { return next[n] }) {
			slices.Sort(members)
			got = append(got, strings.Join(members, ""))
		}
		slices.Sort(got)
		if got := strings.Join(got, " "); got != tt.want {
			t.Errorf("%s: got %q; want %q", tt.edges, got, tt.want)
		}
	}
}

// TestAll has components that wait for others, too.
func TestAll(t *testing.T) {
	next := map[string][]string{"a": {"b"}, "b": {"a", "c", ""}, "c": {"d"}, "d": {"c"}, "e": {"a"}}
	all := All([]string{"e", "c", "a", "b"}, func(n string) []string { return next[n] })
	for n, want := range map[string]string{"a": "ab", "b": "ab", "c": "cd", "e": "e", "d": ""} {
		slices.Sort(all[n])
		if got := strings.Join(all[n], ""); got != want {
			t.Errorf("%s: got %q; want %q", n, got, want)
		}
	}
}

// TestClosedOfLongChain walks a chain that would exhaust a recursive search.
func TestClosedOfLongChain(t *testing.T) {
	const n = 200_000
	got := Closed([]int{1}, func(i int) []int { return []int{i%n + 1} })
	if len(got) != 1 || len(got[0]) != n {
		t.Errorf("got %d components; want one of %d nodes", len(got), n)
	}
}
