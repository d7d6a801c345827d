package graph

import (
	"fmt"
	"testing"

	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// TestPlanKeepsPossibleOperations makes a plan while an operation is possible that was not begun,
// as those of a run that waits for another, slow one. It is still possible after the plan.
func TestPlanKeepsPossibleOperations(t *testing.T) {
	g := New()
	g.Want(made("a", "1"))
	g.Want(made("b", "1"))
	slow, ok := g.Next()
	if !ok {
		t.Fatal("nothing is possible")
	}
	g.Detach(slow)

	g.BeginPlan(nil)
	finish(g)
	g.Rollback()

	other, ok := g.Next()
	if !ok || other.Node == slow.Node || other.Verb != value.Create {
		t.Errorf("after the plan, %v %v is possible; expected CREATE of the other value", other.Verb, ok)
	}
}

// TestInterruptedPlanKeepsTheIndex interrupts a plan at each of its steps. The plan replaces a
// value that an any-of dependency needs. One step lies between the new actual value and the
// index of available values.
func TestInterruptedPlanKeepsTheIndex(t *testing.T) {
	for left := 1; ; left++ {
		g := New()
		g.Want(made("b", "1"))
		g.Want(made("g1/a", "1,dep=b,recreate"))
		g.Want(made("c", "1,any=g1/"))
		finish(g)
		g.Found(made("g1/a", "changed,recreate"), nil, false)
		before := wholeState(g)

		g.BeginPlan(interruptAt(left))
		complete := interruptible(func() { finish(g) })
		g.Rollback()
		if after := wholeState(g); after != before {
			t.Fatalf("an interruption at step %d changed the graph:\n%s", left, difference(before, after))
		}
		if complete {
			return
		}
	}
}

// finish carries out all operations that are possible.
func finish(g *Graph) {
	for op, ok := g.Next(); ok; op, ok = g.Next() {
		g.Done(op, nil, nil)
	}
}

// TestPlannedNodesNeedNoCopies plans values that are new, beside one that stands. Nothing of
// the new nodes is logged, and they are never among the nodes of the graph, so an interruption
// takes no more time for a large plan than for a small one.
func TestPlannedNodesNeedNoCopies(t *testing.T) {
	g := New()
	g.Want(made("b", "1"))
	finish(g)
	before, nodes := wholeState(g), g.nodes.Len()
	changes := func(values int) int {
		g.BeginPlan(func() {})
		defer g.Rollback()
		g.Want(made("c", "1,dep=b"))
		g.Want(made("d/0", "1,dep=c,claim=x"))
		for i := 1; i < values; i++ {
			g.Want(made(fmt.Sprint("d/", i), fmt.Sprint("1,claim=x,claim=y,dep=d/", i-1)))
		}
		finish(g)
		if g.nodes.Len() != nodes || g.Len() != nodes+1+values || g.Node("d/0") == nil {
			t.Errorf("the graph has %d nodes, and %d of its own, of which %d are older than the plan", g.Len(), g.nodes.Len(), nodes)
		}
		return len(g.journal.undo)
	}
	if few, many := changes(2), changes(50); many != few {
		t.Errorf("%d changes are logged for a large plan, and %d for a small one", many, few)
	}
	if after := wholeState(g); after != before {
		t.Errorf("the plans changed the graph:\n%s", difference(before, after))
	}
}
