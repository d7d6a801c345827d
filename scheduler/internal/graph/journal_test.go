package graph

import "testing"

// TestPlanKeepsPossibleOperations makes a plan while an operation is possible that was not begun,
// as those of a run that waits for another, slow one. It is still possible after the plan.
func TestPlanKeepsPossibleOperations(t *testing.T) {
	g := New()
	g.Want(value("a", "1"))
	g.Want(value("b", "1"))
	slow, ok := g.Next()
	if !ok {
		t.Fatal("nothing is possible")
	}
	g.Detach(slow)

	g.Begin()
	for op, ok := g.Next(); ok; op, ok = g.Next() {
		g.Done(op, nil, nil)
	}
	g.Rollback()

	other, ok := g.Next()
	if !ok || other.Node == slow.Node || other.Verb != Create {
		t.Errorf("after the plan, %v %v is possible; expected CREATE of the other value", other.Verb, ok)
	}
}
