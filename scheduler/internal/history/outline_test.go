package history_test

import (
	"strings"
	"testing"

	"github.com/keyplane/keyplane/scheduler/internal/history"
)

// Keys are letters, and operations are named by the key of their base and a number. The
// changes without a verb are those with a small letter; after an @, the number of operations at that time.
func TestComplete(t *testing.T) {
	for _, tt := range []struct {
		about, declared, ops string
		from                 int
		noops, want          string
		reverting            bool
	}{
		{"nothing to insert", "A B", "A1 B1", 0, "", "A1 B1", false},
		{"between the declared values", "A B C", "A1 C1", 0, "b", "A1 b C1", false},
		{"behind the last operation of the value", "A B", "A1 B1 A2", 0, "a", "A1 B1 A2 a", false},
		{"with another cause", "A", "A1", 0, "z", "A1 z", false},
		{"operations of another cause first", "A B", "B0 A1", 1, "b", "B0 A1 b", false},
		{"in the order in which they arose", "A B", "", 0, "b a", "b a", false},
		{"an undone transaction", "A B", "B1", 0, "a", "B1 a", true},
		{"a key that is declared three times", "A A A B", "A1", 0, "b", "A1 b", false},
		{"a key that is declared three times, alone", "A A A", "A1", 0, "a z", "A1 a z", false},
		{"before an operation that began later", "A B", "B1 A1 A2", 0, "a@1", "B1 a A1 A2", false},
		{"between two operations", "A B", "A1 B1 A2", 0, "a@1 b@3", "A1 B1 a b A2", false},
	} {
		t.Run(tt.about, func(t *testing.T) {
			declared, ops := strings.Fields(tt.declared), strings.Fields(tt.ops)
			first := func(i int) string { return ops[i][:1] }
			o := history.Outline{Ops: len(ops), Base: first, Key: first, From: tt.from, Reverting: tt.reverting}
			var noops []string
			for noop := range strings.FieldsSeq(tt.noops) {
				name, at, timed := strings.Cut(noop, "@")
				noops = append(noops, name)
				n := history.Noop{Key: strings.ToUpper(name), Base: strings.ToUpper(name), At: len(ops)}
				if timed {
					n.At = int(at[0] - '0')
				}
				o.Noops = append(o.Noops, n)
			}
			var all []string
			for i := range o.Complete(len(declared), func(i int) string { return declared[i] }) {
				if i >= 0 {
					all = append(all, ops[i])
				} else {
					all = append(all, noops[^i])
				}
			}
			if got := strings.Join(all, " "); got != tt.want {
				t.Errorf("got %q; want %q", got, tt.want)
			}
		})
	}
}
