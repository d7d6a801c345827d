package graph

import (
	"fmt"
	"maps"
	"testing"
	"unsafe"

	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// TestNodeFitsItsMemory: Go gives out memory in pieces of certain sizes, and the next is 192.
func TestNodeFitsItsMemory(t *testing.T) {
	if size := unsafe.Sizeof(Node{}); size > 176 {
		t.Errorf("a node takes %d bytes, want at most 176", size)
	}
}

// TestValueFitsItsMemory: the next size is 128.
func TestValueFitsItsMemory(t *testing.T) {
	if size := unsafe.Sizeof(Value{}); size > 96 {
		t.Errorf("a value takes %d bytes, want at most 96", size)
	}
}

// TestNothingIsKeptOfWhatIsGone makes and removes many values.
func TestNothingIsKeptOfWhatIsGone(t *testing.T) {
	g := New()
	never := &Connection{} // it is never ready
	g.Disconnect(never, "never")
	g.Join(never, &Knowledge{})
	g.Want(made("any", "x,any=k/"))
	run := func() {
		for op, ok := g.Next(); ok; op, ok = g.Next() {
			g.Done(op, nil, nil)
		}
		for range g.Touched() {
		}
	}
	for i := range 1000 {
		key := fmt.Sprintf("k/%d", i)
		g.Want(made(key, "x"))
		g.Want(made("above/"+key, "x,dep="+key))
		run()
		g.Unwant(key)
		g.Unwant("above/" + key)
		run()
	}
	// The last lost provider is known for as long as nobody else comes.
	up := maps.Collect(g.available.All())
	if g.Len() > 2 || len(up) != 0 || len(g.lostProvider) != 0 || len(g.doubtful) > 1 || cap(g.touched) > 100 {
		t.Errorf("%d nodes, %d up, %d without a provider, %d in doubt, room for %d touched", g.Len(), len(up), len(g.lostProvider), len(g.doubtful), cap(g.touched))
	}
}

// TestNobodyIsJudgedWhereAllYield has many yield one thing, which costs each nothing, until
// somebody claims it for himself, and again when that one is gone.
func TestNobodyIsJudgedWhereAllYield(t *testing.T) {
	g := New()
	run := func() (judged int) {
		for op, ok := g.Next(); ok; op, ok = g.Next() {
			g.Done(op, nil, nil)
			judged += len(g.unresolved)
		}
		for range g.Touched() {
		}
		return judged
	}
	for i := range 10 {
		g.Want(made(fmt.Sprintf("k/%d", i), "x,yield=x"))
	}
	if n := len(g.unresolved) + run(); n != 0 {
		t.Errorf("%d times it was to be judged who has it", n)
	}
	g.Want(made("a", "x,claim=x"))
	run()
	if !g.Node("k/0").LosesClaim() {
		t.Error("k/0 has what a claims")
	}
	g.Unwant("a")
	run()
	if g.Node("k/0").State() != Configured {
		t.Errorf("k/0 is %s when nobody claims what it yields", stateNames[g.Node("k/0").State()])
	}
	g.Unwant("k/0")
	if n := len(g.unresolved) + run(); n != 0 {
		t.Errorf("%d times it was to be judged who has it, then", n)
	}
}

// looked counts how often dependencies are matched.
func looked(n int) (count int) {
	g := New()
	for i := range n {
		g.Want(made(fmt.Sprintf("k/%d", i), "x"))
		v := made(fmt.Sprintf("u/%d", i), "x,any=k/")
		v.Deps[0].Any.Match = func(string) bool { count++; return true }
		g.Want(v)
	}
	run := func() {
		for op, ok := g.Next(); ok; op, ok = g.Next() {
			g.Done(op, nil, nil)
		}
	}
	run()
	for i := range n {
		g.Unwant(fmt.Sprintf("k/%d", i))
	}
	run()
	return count
}

// TestAnyOfCostFollowsTheChange doubles a set of values of which each needs any
// of another set, all of which leave at once.
func TestAnyOfCostFollowsTheChange(t *testing.T) {
	if small, large := looked(500), looked(1000); large > 3*small {
		t.Errorf("twice as many values, matched %d times and not %d", large, small)
	}
}

// TestManyClaims has one value with 50,000 claims get and keep all of them, another one lose all,
// and take them over when the first is gone. With a search in all claims for each claim, this
// takes minutes.
func TestManyClaims(t *testing.T) {
	g := New()
	run := func() {
		for op, ok := g.Next(); ok; op, ok = g.Next() {
			g.Done(op, nil, nil)
		}
		for range g.Touched() {
		}
	}
	claiming := func(key, data string) *Value {
		v := made(key, data)
		claims := []value.Claim{}
		for i := range 50_000 {
			claims = append(claims, value.Claim{Resource: fmt.Sprint("claim on ", i)})
		}
		v.SetClaims(&claims)
		return v
	}
	g.Want(claiming("a", "x"))
	g.Want(claiming("b", "x"))
	run()
	a, b := g.Node("a"), g.Node("b")
	if a.Actual() == nil || b.Actual() != nil || !b.LosesClaim() {
		t.Fatalf("a exists: %v; b exists: %v and loses: %v", a.Actual() != nil, b.Actual() != nil, b.LosesClaim())
	}
	g.Want(claiming("a", "y")) // the claims are equal, but another list
	run()
	if a.claimRank != value.FullHolder {
		t.Errorf("a has rank %d, want %d", a.claimRank, value.FullHolder)
	}
	g.Unwant("a")
	run()
	if b.Actual() == nil || b.LosesClaim() {
		t.Errorf("b exists: %v and loses: %v", b.Actual() != nil, b.LosesClaim())
	}
}
