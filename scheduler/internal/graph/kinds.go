package graph

import "slices"

// A shelf has the nodes of one kind, which are those whose first value was of
// it: the kind of a key does not change.
type shelf struct {
	kind  Kind
	nodes []*Node
}

// Of returns the nodes of kind, in no order. It is valid until the graph changes.
func (g *Graph) Of(kind Kind) []*Node {
	if s := g.shelves[kind]; s != nil {
		return s.nodes
	}
	return nil
}

func (g *Graph) file(n *Node, v *version) {
	if n.shelf == nil && v != nil && v.Kind != nil {
		g.fileNew(n, v)
	}
}

func (g *Graph) fileNew(n *Node, v *version) {
	n.shelf = g.shelves[v.Kind]
	if n.shelf == nil {
		n.shelf = &shelf{kind: v.Kind}
		g.shelves[v.Kind] = n.shelf
	}
	n.place = int32(len(n.shelf.nodes))
	n.shelf.nodes = append(n.shelf.nodes, n)
	if g.journal != nil {
		g.journal.filed = append(g.journal.filed, n)
	}
}

func (g *Graph) unfile(n *Node) {
	if n.shelf == nil {
		return
	}
	last := len(n.shelf.nodes) - 1
	moved := n.shelf.nodes[last]
	n.shelf.nodes[n.place], moved.place = moved, n.place
	n.shelf.nodes = slices.Delete(n.shelf.nodes, last, last+1)
	if last == 0 {
		delete(g.shelves, n.shelf.kind)
	}
	n.shelf, n.place = nil, 0
}
