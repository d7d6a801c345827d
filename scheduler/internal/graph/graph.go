// Package graph decides the next operations of the scheduler. It has no lock, no clock, no
// I/O and no goroutine; one goroutine owns a graph.
//
// Each key is a node. A node has a desired and an actual [Value], each with its
// dependencies and derived values. The owner reports desired values by Want, Unwant and
// Reject, and actual values by Found, Lost and Done. [Graph.Next] returns the operations
// that can run now. [Graph.Done] reports the end of an operation, which may make others
// possible. Many operations may be in flight at once.
//
// # States
//
//	state        desired                       actual                         changed by
//	Nonexistent  none                          none                           Want, Found
//	Pending      a value                       none, or another value         a dependency that becomes available: Create or Update
//	Configured   a value                       the same value                 Want of another value, Unwant, Lost, Found of another value
//	Missing      a value                       none; it vanished by itself    as Pending; an unmet dependency makes it Pending
//	Discovered   none                          a value of ours                Want; Complete, which deletes it
//	Obtained     none                          a value of somebody else       Want, Lost
//	Failed       any                           any                            Retry, Want of another value; the last operation failed
//	Rejected     invalid, or it loses a claim  the last valid value, or none  Want, another holder of the claim
//
// A node that must be deleted keeps its actual value until Delete is done, but it is no
// longer available: it meets no dependency.
//
// # Order
//
// Deletes come first, dependents before their dependencies: values that are not desired,
// that cannot be updated in place, or that lose a dependency. Creates and updates follow,
// dependencies first. A value whose new version does not need the values that leave is
// updated in place before they leave. It is deleted and created again only if nothing that can run, is running or is read back
// may let it be updated; see rest.go. Values that depend on each other in a cycle are created when all of them are
// desired and nothing outside the cycle is missing. They are deleted together, one member
// at a time. Independent operations run in the order of the owner's calls.
//
// A value with the Order MakeFirst that is not desired any more is deleted when nothing else
// of its connection can run, so that its successor takes over before. So are the values derived from it. Nothing
// else waits for such a deletion: if something may need it, it comes with the other deletions. A
// value with the Order CreateLast may be the same item of the system, so it is created after
// these deletions.
//
// # Claims
//
// Each resource that values claim has the competing claims. A claim that another node holds counts as an unmet
// dependency. Claims on identities are made when two keys may name one thing; see identity.go.
//
// # Changes
//
// [Graph.edit] and its kin in saved.go return the state of a node, a version or an edge to be changed, after the journal of
// a plan has a copy. There is no other way to change one: a test looks for other writes in the source.
//
// # Cost
//
// The cost follows the size of a change: each dependency is an edge with a flag, each
// version counts its unmet edges, and only neighbours of a change are visited. A
// dependency on any of several keys is one edge to one provider. It looks for another
// provider when that one leaves. An edge without a provider waits in the list of its folder,
// and each key that appears there is matched with it. So n such dependencies in a folder of n
// keys may cost n*n matches.
//
// # Files
//
// Functions of a file call those of its own and of later files.
//
//	operation.go, op.go            Next and Done: operations begin and end
//	journal.go                     plans
//	undo.go                        changes that are undone
//	hung.go                        operations that nobody waits for any more
//	deadlock.go, rest.go           cycles, and values that others no longer wait for
//	know.go, hold.go               connections that are lost, or read back; what is unknown
//	renew.go                       providers that are made again for a dependent
//	classify.go                    the next step of a node
//	intent.go, found.go            desired and actual values, from the owner
//	identity.go                    two keys that name one thing
//	change.go                      a node gets another version
//	claims.go, anyof.go, edge.go   resources that values claim, and dependencies
//	nodes.go, kind.go, await.go    lists of nodes and edges
//	saved.go                       the writers of all state, and earlier states for the journal
//	graph.go                       the lists of a graph
//	version.go, node.go, state.go  the state of a node
//	connection.go, value.go        what the owner gives
package graph

import (
	"github.com/keyplane/keyplane/internal/keyset"
	"github.com/keyplane/keyplane/scheduler/internal/folders"
	"github.com/keyplane/keyplane/scheduler/internal/link"
	"github.com/keyplane/keyplane/scheduler/internal/queue"
)

// A Graph is owned by one goroutine.
type Graph struct {
	graphState
	nodes     *keyset.Set[Node]
	byKind    map[Kind]*kindNodes
	resources *keyset.Set[resource]
	waitlists folders.Waitlists[*edge]         // any-of edges without a provider, by folder
	waiting   map[*edge]*folders.Places[*edge] // their entries in waitlists
	aliased   bool                             // some key was not canonical; see identity.go

	// Look is set by the owner from time to time. While operations of one connection wait for room, Next does not look for
	// operations of others that come last, or for outdated values, unless it is set: to look each time would take too long.
	Look bool
	// Freed is set when a connection lets nodes go that it held. The owner clears it when it has asked Next for their operations.
	Freed bool

	detached int              // detached operations
	reading  int              // connections that are read back
	holding  int              // held nodes
	held     link.Held[*Node] // some of them are held no more

	unknownKinds int
	renewed      map[*Node]bool     // nodes whose provider was created again for their sake
	doubtful     map[*Node]struct{} // nodes that stand, or wait, because of unknown dependencies
	Keys         Keys               // set by the owner; nil: no key without a value has a kind
	journal      *journal           // of a plan
	inverse      *inverse           // of changes that may be undone
}

// A graphState is everything beside the nodes that a plan changes. BeginPlan copies it whole.
type graphState struct {
	// Cause is set by the owner before it changes something: the transaction, for example, by a number. Operations that
	// wait for room on their connection take turns by the cause of what made them possible.
	Cause        uint8
	complete     bool
	unsearched   bool                   // some of the blocked nodes were not searched for cycles yet
	available    folders.Index[*Node]   // available nodes, for any-of dependencies
	lostProvider []*edge                // any-of edges whose provider left
	unresolved   []*resource            // whose holder is not decided yet
	dirty        queue.Queue[candidate] // to be classified
	deletes      queue.Queue[candidate] // Delete can run
	applies      queue.Queue[candidate] // Create or Update can run
	blocked      []*Node
	cycles       []*cycle
	touched      []*Node
	deleting     int // deletes in flight
	applying     int // creates and updates in flight
}

// New returns an empty graph.
func New() *Graph {
	return &Graph{
		nodes:     keyset.New((*Node).Key),
		resources: keyset.New(func(r *resource) string { return r.of }),
		byKind:    map[Kind]*kindNodes{}, waiting: map[*edge]*folders.Places[*edge]{}, doubtful: map[*Node]struct{}{}, renewed: map[*Node]bool{},
	}
}
