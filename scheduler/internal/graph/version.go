package graph

// A version is a Value of a node. It has edges while it is desired or actual.
type version struct{ versionState }

// A versionState is copied whole by the journal, with the state of its edges.
type versionState struct {
	*Value
	node  *Node
	edges []edge
	unmet int32
	refs  int8 // 1 for desired, 1 for actual
	saved bool // a copy is in the journal
}

// newVersion returns v as a version of n. It uses n.own if that is free; forget frees it.
func (g *Graph) newVersion(n *Node, v *Value) *version {
	w := &n.own
	if w.node != nil {
		w = &version{}
	}
	g.saveVersion(w)
	w.Value, w.node = v, n
	return w
}

// value returns nil for a nil version.
func (v *version) value() *Value {
	if v == nil {
		return nil
	}
	return v.Value
}

// err returns the reason why the value was refused; nil for a nil version.
func (v *version) err() error {
	if v == nil {
		return nil
	}
	return v.Err
}
