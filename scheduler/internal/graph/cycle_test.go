package graph

import (
	"testing"

	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// TestHeldCycleIsReplaced declares two values that need each other again, while they wait for a deletion of their connection
// that is running: the newer versions come in the end, and the search for them ends.
func TestHeldCycleIsReplaced(t *testing.T) {
	g := New()
	newLines(g)
	declare := func(text string) {
		g.Want(made("g0/a", text+",dep=g0/b"))
		g.Want(made("g0/b", text+",dep=g0/a"))
		if op, ok := g.Next(); ok {
			t.Fatalf("%v %s beside a deletion", op.Verb, op.Node.Key())
		}
	}
	g.Found(made("g0/old", "1"), nil, false)
	g.Unwant("g0/old")
	deletion, ok := g.Next()
	if !ok || deletion.Verb != value.Delete {
		t.Fatalf("%v is not deleted", deletion)
	}
	g.Detach(deletion)
	declare("1")
	declare("2")
	g.Done(deletion, nil, nil)
	for op, ok := g.Next(); ok; op, ok = g.Next() {
		g.Done(op, nil, nil)
	}
	for _, key := range []string{"g0/a", "g0/b"} {
		if n := g.Node(key); n.State() != Configured {
			t.Errorf("%s is %v", key, stateNames[n.State()])
		}
	}
}
