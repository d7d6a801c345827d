package kind

import (
	"time"

	"github.com/keyplane/keyplane/scheduler/internal/executor"
	"github.com/keyplane/keyplane/scheduler/internal/graph"
)

// A Connection is one link to a southbound system, with all that the scheduler knows of it. The descriptors that
// name the same connection share it. The scheduler's goroutine owns it.
type Connection struct {
	graph.Connection // up for ever unless Losable

	Losable bool
	Other   bool           // it may lead to another system than when its values were last read back
	Pool    *executor.Pool // calls its verbs
	Reading any            // the *readback.Reading that reads its values back; nil: none does
	// Patience is how long a Reading waits for its verbs while no other begins; 0: no Reading has waited since the last one.
	Patience time.Duration

	// Rest is between read-backs for which notifications ask.
	Rest Rest

	verbs   [2]int // that have begun and have neither ended nor been abandoned: those since the last Age, and before
	present uint8  // the index of those since then
}

// Begin counts a verb. End gets what it returns.
func (c *Connection) Begin() (generation uint8) {
	c.verbs[c.present]++
	return c.present
}

// End counts a verb that has ended, or was abandoned.
func (c *Connection) End(generation uint8) { c.verbs[generation]-- }

// Busy reports that verbs are running.
func (c *Connection) Busy() bool { return c.verbs[0]+c.verbs[1] > 0 }

// Age makes the verbs that are running old ones, unless there are some.
func (c *Connection) Age() {
	if !c.HasOld() {
		c.present = 1 - c.present
	}
}

// HasOld reports that old verbs are running.
func (c *Connection) HasOld() bool { return c.verbs[1-c.present] > 0 }

// Connections are those of a scheduler, by name.
type Connections map[string]*Connection

// Named returns the connection with this name, which may be new.
func (cs Connections) Named(name string) *Connection {
	if cs[name] == nil {
		cs[name] = &Connection{}
	}
	return cs[name]
}
