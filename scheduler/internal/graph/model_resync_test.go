package graph

import (
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// resync reads back all that stands while it is in sync, spelled in another way, and in which
// what waits is not seen. That must leave no trace.
func (m *model) resync(t *rapid.T) {
	m.mend()
	before := wholeState(m.g)
	for _, key := range rapid.Permutation(slices.Sorted(maps.Keys(m.stands))).Draw(t, "read") {
		if n := m.g.nodes.Get(key); n.base == nil {
			m.g.Found(made(key, m.respelled(n)), nil, false)
		}
	}
	if changed := m.g.ChangedLen(); changed > 0 {
		t.Fatalf("%d nodes have changed", changed)
	}
	if op, ok := m.g.Next(); ok {
		t.Fatalf("%v %s after a read-back in sync", op.Verb, op.Node.Key())
	}
	if after := wholeState(m.g); after != before {
		t.Fatalf("reading back changed the graph:\n%s", difference(before, after))
	}
	m.counts()
}

// respelled is the text of what stands: its first letter in the other case, and without derived
// values that do not stand.
func (m *model) respelled(n *Node) string {
	text := fields(n.actual.Data.(string))
	if upper := strings.ToUpper(text[0]); upper != text[0] {
		text[0] = upper
	} else {
		text[0] = strings.ToLower(text[0])
	}
	return strings.Join(slices.DeleteFunc(text, func(f string) bool {
		return strings.HasPrefix(f, "derive=") && !m.stands["d/"+n.key]
	}), ",")
}
