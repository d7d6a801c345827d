package graph

import (
	"slices"

	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// An edge is a dependency of a version. It ends at the key of the dependency. An any-of
// dependency ends at its provider: one of the keys that meet it.
type edge struct {
	v       *version
	dep     *value.Dep // nil: the dependency of a derived value on its base
	to      *Node      // nil: an any-of dependency that never had a provider
	pos     int32      // index in to.in()
	met     bool
	assumed bool // counted as met because to is created next, in the same cycle
}

// A version is a Value of a node. It has edges and claims while it is desired or actual.
type version struct{ versionState }

// A versionState is copied whole by the journal, with the state of its edges and claims.
type versionState struct {
	*Value
	node   *Node
	more   *more // nil: it has no claims, and at most one edge
	unmet  int32 // edges that are not met, and claims that others hold
	refs   int8  // 1 for desired, 1 for actual
	single bool  // its only edge is node.ownEdge, as in most versions
	saved  bool  // a copy is in the journal
}

// more is the part of a version that most versions lack.
type more struct {
	edges  []edge
	claims []claim
	lost   int32 // how many claims are lost; counted, because a search in all claims for each of them would be quadratic
}

// makeRoom makes so many edges and claims. Most versions have one edge, for which the node has room.
func (v *versionState) makeRoom(edges, claims int) {
	v.single = edges == 1 && v == &v.node.own.versionState
	if v.single {
		edges = 0
	}
	if edges+claims > 0 {
		v.more = &more{edges: make([]edge, edges), claims: make([]claim, claims)}
	}
}

// edges returns the edges; a version that is not in use, and a nil version, have none.
func (v *version) edges() []edge {
	switch {
	case v == nil:
		return nil
	case v.single:
		return v.node.ownEdge[:]
	case v.more != nil:
		return v.more.edges
	}
	return nil
}

// claims returns the claims; a version that is not in use, and a nil version, have none.
func (v *version) claims() []claim {
	if v == nil || v.more == nil {
		return nil
	}
	return v.more.claims
}

// lostClaims is the number of lost claims.
func (v *version) lostClaims() int32 {
	if v.more == nil {
		return 0
	}
	return v.more.lost
}

// ofActual reports that the edge belongs to an actual version.
func (e *edge) ofActual() bool { return e.v.node.actual == e.v }

// assumes reports that v was applied on the assumption that another member of its cycle
// follows, of which nobody knows yet whether it does.
func (v *version) assumes() bool {
	return slices.ContainsFunc(v.edges(), func(e edge) bool { return e.assumed })
}

// anyOf reports whether several keys could meet the dependency.
func (e *edge) anyOf() bool { return e.dep != nil && e.dep.Key == "" }

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
	return v.Err()
}
