package kind

import (
	"github.com/keyplane/keyplane/scheduler/internal/executor"
	"github.com/keyplane/keyplane/scheduler/internal/graph"
)

// A Connection is one link to a southbound system, with all that the scheduler knows of it. The descriptors that
// name the same connection share it. The scheduler's goroutine owns it.
type Connection struct {
	graph.Connection // up for ever unless Losable

	Losable bool
	Same    bool           // it leads to the same system as before the last loss
	Pool    *executor.Pool // calls its verbs
	Verbs   int            // verbs that have begun and have neither ended nor been abandoned
	Reading any            // the *readback.Reading that reads its values back; nil: none does
}

// Connections are those of a scheduler, by name.
type Connections map[string]*Connection

// Named returns the connection with this name, which may be new.
func (cs Connections) Named(name string) *Connection {
	if cs[name] == nil {
		cs[name] = &Connection{}
	}
	return cs[name]
}
