package graph

import "slices"

// Of returns the nodes of kind in no particular order. The slice is valid until the graph
// changes.
func (g *Graph) Of(kind Kind) []*Node {
	if s := g.byKind[kind]; s != nil {
		return s.nodes
	}
	return nil
}

// addToKind registers a node under the kind of its first version.
func (g *Graph) addToKind(n *Node, v *version) {
	if n.kindNodes == nil && v != nil && v.Kind != nil {
		g.addNewToKind(n, v)
	}
}

// addNewToKind appends the node to the list of its kind, and notes its position.
func (g *Graph) addNewToKind(n *Node, v *version) {
	g.bookkeep(n)
	n.kindNodes = g.byKind[v.Kind]
	if n.kindNodes == nil {
		n.kindNodes = &kindNodes{kind: v.Kind}
		g.byKind[v.Kind] = n.kindNodes
	}
	n.kindIndex = int32(len(n.kindNodes.nodes))
	k := g.editKind(n.kindNodes)
	k.nodes = append(k.nodes, n)
}

// removeFromKind moves the last node of the list into the place of this one.
func (g *Graph) removeFromKind(n *Node) {
	if n.kindNodes == nil {
		return
	}
	last := len(n.kindNodes.nodes) - 1
	moved := n.kindNodes.nodes[last]
	n.kindNodes.nodes[n.kindIndex], moved.kindIndex = moved, n.kindIndex
	n.kindNodes.nodes = slices.Delete(n.kindNodes.nodes, last, last+1)
	if last == 0 {
		delete(g.byKind, n.kindNodes.kind)
	}
	n.kindNodes, n.kindIndex = nil, 0
}
