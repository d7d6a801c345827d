// Package inbox has the requests to the scheduler's loop that it has not yet handled. Requests
// that say the same are one, so the inbox is bounded and nobody waits.
//
// Refreshes are merged by the name of the descriptor, and the changes of a connection into
// the newest loss and whether it is ready since. Nothing else needs the order in which
// requests came.
package inbox

import (
	"sync"

	"github.com/keyplane/keyplane/internal/wake"
)

// An Inbox takes requests from any goroutine, for one reader. C identifies a connection.
type Inbox[C comparable] struct {
	ready wake.Signal // set when a request is added

	mu       sync.Mutex // guards requests
	requests Requests[C]
}

// Requests are the requests since the last Take.
type Requests[C comparable] struct {
	Refresh     Descriptors // to be read back
	Connections map[C]Change
}

// Descriptors selects descriptors by name. The zero value means that nobody asked.
type Descriptors struct {
	Asked bool
	names map[string]bool
	all   bool
}

// Names returns the names; nil: all descriptors.
func (d *Descriptors) Names() map[string]bool {
	if d.all {
		return nil
	}
	return d.names
}

// add merges another request into d. Once somebody has asked for all descriptors, names no
// longer matter.
func (d *Descriptors) add(names []string) {
	d.Asked = true
	d.all = d.all || len(names) == 0
	if d.names == nil {
		d.names = map[string]bool{}
	}
	for _, name := range names {
		d.names[name] = true
	}
}

// A Change records that a connection was lost (with the reason), became ready, or both in this
// order.
type Change struct {
	Lost  error
	Ready bool
	Other bool // it has been ready, and perhaps led to another system than before
}

// then returns the change c followed by the change next.
func (c Change) then(next Change) Change {
	next.Other = next.Other || c.Other
	if next.Lost == nil {
		next.Lost = c.Lost
	}
	return next
}

// New returns an empty inbox.
func New[C comparable]() *Inbox[C] { return &Inbox[C]{ready: wake.New()} }

// Refresh requests that descriptors (none: all) are read back.
func (in *Inbox[C]) Refresh(names ...string) { in.add(func(r *Requests[C]) { r.Refresh.add(names) }) }

// Connection reports a change of a connection.
func (in *Inbox[C]) Connection(c C, change Change) {
	in.add(func(r *Requests[C]) {
		if r.Connections == nil {
			r.Connections = map[C]Change{}
		}
		r.Connections[c] = r.Connections[c].then(change)
	})
}

// add changes the pending requests under the lock, and wakes the reader.
func (in *Inbox[C]) add(to func(*Requests[C])) {
	in.mu.Lock()
	defer in.mu.Unlock()
	to(&in.requests)
	in.ready.Set()
}

// Ready is the channel on which the reader waits before it calls Take.
func (in *Inbox[C]) Ready() <-chan struct{} { return in.ready.C() }

// Take removes and returns all requests.
func (in *Inbox[C]) Take() Requests[C] {
	in.mu.Lock()
	defer in.mu.Unlock()
	out := in.requests
	in.requests = Requests[C]{}
	return out
}

// TakeLosses removes and returns only the losses of connections: they concern verbs that are
// about to begin. Everything else waits for Take.
func (in *Inbox[C]) TakeLosses() map[C]error {
	in.mu.Lock()
	defer in.mu.Unlock()
	var out map[C]error
	for c, change := range in.requests.Connections {
		if change.Lost == nil {
			continue
		}
		if out == nil {
			out = map[C]error{}
		}
		out[c] = change.Lost
		if change.Ready {
			in.requests.Connections[c] = Change{Ready: true, Other: change.Other}
		} else if change.Other {
			in.requests.Connections[c] = Change{Other: true}
		} else {
			delete(in.requests.Connections, c)
		}
	}
	return out
}
