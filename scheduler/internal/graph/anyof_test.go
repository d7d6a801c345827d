package graph

import "testing"

// What has lost its provider goes before another provider that has to go, too: the other one is found, and known to go,
// at the same time.
func TestLeavesBeforeTheOtherProvider(t *testing.T) {
	for _, foundFirst := range []bool{true, false} {
		g := New()
		g.Want(made("vrf/both", "x"))
		g.Want(made("address", "x,any=vrf/"))
		g.Complete()
		for op, ok := g.Next(); ok; op, ok = g.Next() {
			g.Done(op, nil, nil)
		}
		g.Unwant("vrf/both")
		g.Unwant("address")
		if foundFirst {
			g.Found(made("vrf/one", "x"), nil, false)
		}
		g.NotFound("vrf/both")
		if !foundFirst {
			g.Found(made("vrf/one", "x"), nil, false)
		}
		first, ok := g.Next()
		if !ok || first.Node.Key() != "address" {
			t.Fatalf("found first: %v: the first operation is of %v", foundFirst, first.Node)
		}
		if beside, ok := g.Next(); ok {
			t.Errorf("found first: %v: %s goes beside what depends on it", foundFirst, beside.Node.Key())
		}
		g.Done(first, nil, nil)
		if last, ok := g.Next(); !ok || last.Node.Key() != "vrf/one" {
			t.Errorf("found first: %v: vrf/one does not go", foundFirst)
		}
	}
}
