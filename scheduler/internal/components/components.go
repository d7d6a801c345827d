// Package components finds the parts of a directed graph whose members wait for each other.
package components

import "slices"

// Closed finds strongly connected components, among all nodes reachable from
// roots, that wait for nothing outside themselves. It is Tarjan's algorithm with a stack
// of its own, so that long chains cannot exhaust the goroutine's stack.
//
// next returns the nodes that a node waits for. The zero value of N stands for a node
// outside all components.
func Closed[N comparable](roots []N, next func(N) []N) [][]N {
	return find(roots, next).closed
}

// All returns the strongly connected component of each root: the nodes that it reaches and that reach it.
func All[N comparable](roots []N, next func(N) []N) map[N][]N {
	t := find(roots, next)
	all := make(map[N][]N, len(roots))
	for _, n := range roots {
		all[n] = t.seen[n].with
	}
	return all
}

func find[N comparable](roots []N, next func(N) []N) *tarjan[N] {
	t := &tarjan[N]{next: next, seen: map[N]*visit[N]{}}
	for _, n := range roots {
		if t.seen[n] == nil {
			t.walk(n)
		}
	}
	return t
}

type tarjan[N comparable] struct {
	next   func(N) []N
	seen   map[N]*visit[N]
	stack  []*visit[N] // nodes whose component is not known yet
	closed [][]N       // the components that wait for nothing outside themselves
}

type visit[N comparable] struct {
	node       N
	next       []N // not visited yet
	index, low int
	onStack    bool
	open       bool // waits for a node outside its component
	with       []N  // its component, when that is known
}

// enter numbers a node at the first visit, and puts it on the stack of open nodes.
func (t *tarjan[N]) enter(n N) *visit[N] {
	v := &visit[N]{node: n, next: t.next(n), index: len(t.seen), low: len(t.seen), onStack: true}
	t.seen[n] = v
	t.stack = append(t.stack, v)
	return v
}

// walk visits everything that root reaches. It keeps its path in a slice, not in
// recursion: chains of dependencies can be a million nodes long.
func (t *tarjan[N]) walk(root N) {
	path := []*visit[N]{t.enter(root)}
	for len(path) > 0 {
		v := path[len(path)-1]
		if len(v.next) > 0 {
			n := v.next[0]
			v.next = v.next[1:]
			if w := t.step(v, n); w != nil {
				path = append(path, w)
			}
			continue
		}
		path = path[:len(path)-1]
		if v.low == v.index {
			t.close(v)
		}
		if len(path) > 0 {
			up := path[len(path)-1]
			up.low = min(up.low, v.low)
			up.open = up.open || !v.onStack
		}
	}
}

// step follows the edge from v to n. It returns the visit of n if n must be walked first.
func (t *tarjan[N]) step(v *visit[N], n N) *visit[N] {
	var none N
	if n == none {
		v.open = true
		return nil
	}
	w := t.seen[n]
	switch {
	case w == nil:
		return t.enter(n)
	case w.onStack:
		v.low = min(v.low, w.index)
	default:
		v.open = true
	}
	return nil
}

// close takes the component of v off the stack.
func (t *tarjan[N]) close(v *visit[N]) {
	first := len(t.stack) - 1
	for t.stack[first] != v {
		first--
	}
	component := t.stack[first:]
	t.stack = t.stack[:first]
	members, open := make([]N, 0, len(component)), false
	for _, w := range slices.Backward(component) {
		members = append(members, w.node)
		open = open || w.open
	}
	for _, w := range component {
		w.onStack, w.with = false, members
	}
	if !open {
		t.closed = append(t.closed, members)
	}
}
