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
	claim   *claimEdge // set if the edge is a claim
	pos     int32      // index in to.in()
	met     bool
	assumed bool // counted as met because to is created next, in the same cycle
}

// A claimEdge is a Claim of a version. Its edge leads to the node of the resource. That
// node never has a value; its incoming edges are the competing claims.
type claimEdge struct {
	*value.Claim
	dep value.Dep // the dependency of the edge
	claimResult
	// lostOfAll is the number of lost claims of the version. Only its first claim counts them,
	// so that versions without claims need no memory for it.
	lostOfAll int32
}

// A claimResult says which node holds a resource.
type claimResult struct {
	holder *Node // the other node that holds it; nil: none
	lost   bool  // holder keeps it; false: holder is about to leave
}

// A version is a Value of a node. It has edges while it is desired or actual.
type version struct{ versionState }

// A versionState is copied whole by the journal, with the state of its edges.
type versionState struct {
	*Value
	node    *Node
	several *[]edge // its edges; nil: it is single, or has none
	unmet   int32
	refs    int8 // 1 for desired, 1 for actual
	single  bool // its only edge is node.ownEdge, as in most versions
	saved   bool // a copy is in the journal
}

// newEdges makes so many edges. Most versions have one edge, for which the node has room.
func (v *versionState) newEdges(n int) []edge {
	v.single = n == 1 && v == &v.node.own.versionState
	if n > 0 && !v.single {
		several := make([]edge, n)
		v.several = &several
	}
	return v.edges()
}

// edges returns the edges; a version that is not in use has none.
func (v *versionState) edges() []edge {
	switch {
	case v.single:
		return v.node.ownEdge[:]
	case v.several != nil:
		return *v.several
	}
	return nil
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

// addClaimEdges makes the edges for the claims of v.
func (v *version) addClaimEdges(edges []edge) {
	claims := v.Claims()
	all := make([]claimEdge, len(claims))
	for i := range all {
		all[i] = claimEdge{Claim: &claims[i], dep: value.Dep{Key: claims[i].Of}}
		edges[i] = edge{v: v, dep: &all[i].dep, claim: &all[i]}
	}
}

// lostClaims returns the number of lost claims of a version with claims, which has edges.
// It is counted, because a search in all claims for each of them would be quadratic.
func (v *version) lostClaims() *int32 { return &v.edges()[len(v.Deps)].claim.lostOfAll }

// isLost reports whether the edge is a claim that another node holds.
func (e edge) isLost() bool { return e.claim != nil && e.claim.lost }

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
