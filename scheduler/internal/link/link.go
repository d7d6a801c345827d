// Package link has what is known of a connection: whether it is up, which of its kinds were read back, how many operations
// run, and which of those that could run must wait. It decides nothing about single values. One goroutine owns all of it.
package link

import (
	"slices"

	"github.com/keyplane/keyplane/scheduler/internal/queue"
)

// A Connection is shared by the values of some kinds, of which N are the nodes. The zero value is up.
//
//	phase      operations   the next phase
//	Up         begin        Reading, Down
//	Reading    wait         Up, Down
//	Down       fail         Reading, Gone
//	Gone       fail         Reading
//
// While a connection is read back, none of its operations begins: so the result of the
// read-back is not older than their effect. Operations of other connections proceed.
//
// At most Limit operations of a connection run. Otherwise all that a large transaction needs would be begun before anything
// of a small one that comes later.
type Connection[N any] struct {
	// Limit is the number of operations, in flight or detached, from which others are held. 0: none.
	Limit int

	phase    Phase
	kinds    []*Knowledge[N]
	reason   string // why it is down, for people
	losses   int    // number of calls of Lose
	flying   int    // operations in flight
	deleting int    // detached deletes
	applying int    // detached creates and updates
	deletes  queue.Fair[N]
	applies  queue.Fair[N]
}

// A Phase says what can be done with a connection.
type Phase uint8

// The phases of a connection.
const (
	Up Phase = iota
	Reading
	Down
	Gone // down, and none of its values exists any more
)

// A Direction says whether an operation deletes a value or applies one.
type Direction uint8

// The directions of operations.
const (
	None Direction = iota
	Delete
	Apply
)

// Phase returns the phase of the connection.
func (c *Connection[N]) Phase() Phase { return c.phase }

// Lost reports that the connection is down or gone. A nil Connection never is.
func (c *Connection[N]) Lost() bool { return c != nil && (c.phase == Down || c.phase == Gone) }

// Gone reports that the connection is gone.
func (c *Connection[N]) Gone() bool { return c.phase == Gone }

// Losses returns how often the connection was lost. A read-back that began before the last
// loss is worthless.
func (c *Connection[N]) Losses() int { return c.losses }

// Enter changes the phase.
func (c *Connection[N]) Enter(p Phase) { c.phase = p }

// Lose notes that the connection was lost, or is still down for another reason, which people see.
func (c *Connection[N]) Lose(reason string) {
	c.reason = reason
	c.losses++
}

// Fly counts operations in flight.
func (c *Connection[N]) Fly(by int) { c.flying += by }

// Detach counts detached operations, and returns the number of those in that direction.
func (c *Connection[N]) Detach(d Direction, by int) int {
	if d == Delete {
		c.deleting += by
		return c.deleting
	}
	c.applying += by
	return c.applying
}

// Running is the number of operations in flight and of detached ones.
func (c *Connection[N]) Running() int { return c.flying + c.deleting + c.applying }

// Detached is the number of detached operations.
func (c *Connection[N]) Detached() int { return c.deleting + c.applying }

// HasRoom reports that one more operation may run. A nil Connection always has room.
func (c *Connection[N]) HasRoom() bool { return c == nil || c.Limit == 0 || c.Running() < c.Limit }

// Obstructs reports that no operation of a direction can begin before a read-back or detached operations have
// ended. Nor can anything be applied while a deletion waits: more and more could be applied before it.
func (c *Connection[N]) Obstructs(d Direction) bool {
	if d == Delete {
		return c.phase == Reading || c.applying > 0
	}
	return c.phase == Reading || c.deleting > 0 || c.deletes.Len() > 0
}

// Holds reports that an operation of a direction that has become possible must wait. A nil Connection holds nothing.
func (c *Connection[N]) Holds(d Direction) bool {
	return c != nil && (c.Obstructs(d) || c.Waiting(d).Len() > 0 || !c.HasRoom())
}

// Waiting returns the nodes whose operations of a direction are held. Some may wait no more.
func (c *Connection[N]) Waiting(d Direction) *queue.Fair[N] {
	if d == Delete {
		return &c.deletes
	}
	return &c.applies
}

// HoldsAny reports that there are nodes whose operations are held.
func (c *Connection[N]) HoldsAny() bool { return c.deletes.Len()+c.applies.Len() > 0 }

// Crowded reports that some nodes are held only until there is room, or until it is their turn. A nil Connection holds none.
func (c *Connection[N]) Crowded() bool { return c != nil && (c.waits(Delete) || c.waits(Apply)) }

// waits reports that some nodes wait for nothing but their turn, or room.
func (c *Connection[N]) waits(d Direction) bool { return c.Waiting(d).Len() > 0 && !c.Obstructs(d) }

// AllHeld yields the nodes whose operations are held. Some may wait no more.
func (c *Connection[N]) AllHeld(yield func(N) bool) {
	for _, d := range []Direction{Delete, Apply} {
		for n := range c.Waiting(d).All {
			if !yield(n) {
				return
			}
		}
	}
}

// AnyUnknown reports that one of the kinds is unknown.
func (c *Connection[N]) AnyUnknown() bool {
	return slices.ContainsFunc(c.kinds, (*Knowledge[N]).Unknown)
}

// Kinds returns what is known of each kind.
func (c *Connection[N]) Kinds() []*Knowledge[N] { return c.kinds }

// A Knowledge is what is known of the actual values of one kind. The zero value is known, and
// belongs to no connection.
//
//	state    actual values                              operations   the next state
//	known    as they were read, and changed since       begin        unknown, when the connection is lost
//	unknown  as they were known before, or none yet     wait         known, after the kind was read back
//
// Unknown is not gone: what depends on an unknown value, and exists, stays. Nothing is created,
// changed or deleted on it. An operator's changes of what is desired are kept, and done when the
// kind is known. Single values may be known before their kind is.
type Knowledge[N any] struct {
	// Place says that the values contain those that depend on them, such as a network namespace: while it
	// is unknown whether one exists, it is also unknown whether there is something in it.
	Place bool

	of     *Connection[N]
	unread bool
	why    string // why it could not be read; empty: it was not tried yet
}

// Join makes k the knowledge of one more kind of the connection.
func (k *Knowledge[N]) Join(c *Connection[N]) {
	k.of = c
	c.kinds = append(c.kinds, k)
}

// Of returns the connection of the kind; nil: it has none. A nil Knowledge has none.
func (k *Knowledge[N]) Of() *Connection[N] {
	if k == nil {
		return nil
	}
	return k.of
}

// Unread reports that the kind was not read back since its connection was lost: no operation of it may begin. A nil Knowledge
// is always read.
func (k *Knowledge[N]) Unread() bool { return k != nil && k.unread }

// Unknown reports whether nobody knows which values of the kind exist. That is not so while its connection
// is gone: there are none. A nil Knowledge is not unknown.
func (k *Knowledge[N]) Unknown() bool { return k.Unread() && !k.of.Gone() }

// Failed reports that the kind is unknown although it was tried to read it back.
func (k *Knowledge[N]) Failed() bool { return k.unread && k.why != "" }

// SetUnread sets Unread, and reports whether that is a change.
func (k *Knowledge[N]) SetUnread(unread bool) (changed bool) {
	changed = k.unread != unread
	k.unread = unread
	return changed
}

// SetWhy sets the reason why the kind could not be read; empty: it was not tried. It reports whether that is a change.
func (k *Knowledge[N]) SetWhy(why string) (changed bool) {
	changed = k.why != why
	k.why = why
	return changed
}

// Why says for people why the kind is unknown.
func (k *Knowledge[N]) Why() string {
	switch {
	case k.of.Lost():
		return k.of.reason
	case k.why != "":
		return k.why
	}
	return "the end of the read-back of its connection, which is up again"
}
