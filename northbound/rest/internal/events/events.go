// Package events streams the changes of an agent to the clients of GET /events, in the form of
// server-sent events (HTML standard, 9.2).
//
//	stream := events.New(events.Options{Scheduler: sched, Sources: orchestrator})
//	err := stream.Serve(w, r, stillAllowed)
//
// An event says that something is different, and hardly more: a client reads the new state from
// the other paths, with its own permissions. So an event is small, and one that a client misses
// is not lost: the next one makes it read the newest state.
//
//	cause                               | noticed by                     | event
//	the state of a value                | the scheduler, at once         | values
//	the end of a transaction            | the scheduler, at once         | transactions
//	the state or content of a source    | comparing each second          | sources
//	a connection to a southbound system | comparing each second          | connections
//
// Bounds: at most MaxClients streams. Each has one goroutine, that of its request, and keeps up
// to maxValues statuses that its client has not been told of. If more values change, it drops
// them and tells the client that it missed something. Changes within pause are one event. A
// client that reads nothing for maxUnread is disconnected.
//
// A stream ends when its client leaves, when the server stops, or when its user may not read
// any more. No goroutine outlives it. Tests run real schedulers in virtual time.
package events

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/northbound/rest/wire/stream"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/changes"
	"github.com/keyplane/keyplane/scheduler/stats"
)

// MaxClients is the maximum number of streams. A browser needs one for each visible page.
const MaxClients = 16

const (
	// maxValues is how many changed values one event names.
	maxValues = 256
	// pause is the time from a change of the scheduler to its event. What changes meanwhile is
	// in the same event: so a transaction is one event, and a flood of them are five a second.
	pause = 200 * time.Millisecond
	// look is the period of comparing sources and connections, which report no changes.
	look = time.Second
	// alive is the period of a comment on an idle stream. It shows each side that the other
	// one is there, and keeps proxies from ending the stream.
	alive = 15 * time.Second
	// maxUnread is how long a client may take to read what is written for it.
	maxUnread = 10 * time.Second
)

// ErrFull is the answer to a client beyond MaxClients, with status 503.
var ErrFull = fmt.Errorf("%d clients read events already; try again later", MaxClients)

// Options configure Streams.
type Options struct {
	Scheduler *scheduler.Scheduler
	// Sources returns the state of each source. Defaults to none.
	Sources func() []wire.Source
	// Label is the label of the agent, for Hello.
	Label string
	// Ended is closed when the server stops: the streams end. Defaults to never.
	Ended <-chan struct{}
}

// Streams serves all streams of a listener. Any goroutine may use it.
type Streams struct {
	Options
	clients atomic.Int32
}

// New returns Streams without a client. It does nothing before the first one.
func New(o Options) *Streams { return &Streams{Options: o} }

// Serve writes events until the client leaves or the server stops. allowed is asked again with
// each comment: the stream ends when it returns an error. An error of Serve means that nothing
// was written.
func (s *Streams) Serve(w http.ResponseWriter, r *http.Request, allowed func() error) error {
	if s.clients.Add(1) > MaxClients {
		s.clients.Add(-1)
		w.Header().Set("Retry-After", "10")
		return reply.Status(http.StatusServiceUnavailable, ErrFull)
	}
	defer s.clients.Add(-1)
	// Before the present state is read, so that no change falls between both.
	collector := changes.Collect(s.Scheduler, maxValues)
	defer collector.Close()
	c := &client{streams: s, changes: collector, out: http.NewResponseController(w), w: w}
	// The limits of the server are for answers that end.
	_ = c.out.SetReadDeadline(time.Time{})
	w.Header().Set("Cache-Control", "no-store")
	reply.Header(w, "text/event-stream", http.StatusOK)
	// The error of a client that has left is nobody's concern.
	_ = c.run(r, allowed)
	return nil
}

// A client is one stream. The goroutine of its request owns it.
type client struct {
	streams *Streams
	changes *changes.Collector
	w       http.ResponseWriter
	out     *http.ResponseController

	// What the client was told last.
	sources     map[string]wire.Source
	connections map[string]bool
	pending     bytes.Buffer // events that are not written yet
	collecting  bool         // the first change since the last event was less than pause ago
}

// errEnded ends a stream.
var errEnded = errors.New("the stream has ended")

// run writes events until an error.
func (c *client) run(r *http.Request, allowed func() error) error {
	c.sources, c.connections = c.sourcesNow(), c.connectionsNow()
	fmt.Fprintf(&c.pending, "retry: %d\n\n", (2 * time.Second).Milliseconds())
	c.event(stream.NameHello, stream.Hello{Label: c.streams.Label, States: c.states(), Connections: c.connections})
	if err := c.flush(); err != nil {
		return err
	}
	looks, comments := time.NewTicker(look), time.NewTicker(alive)
	defer looks.Stop()
	defer comments.Stop()
	collected := time.NewTimer(pause)
	defer collected.Stop()
	for {
		select {
		case <-c.changes.Ready():
			if !c.collecting {
				c.collecting = true
				collected.Reset(pause)
			}
		case <-collected.C:
			c.collecting = false
			c.news(c.changes.Take())
		case <-looks.C:
			c.look()
		case <-comments.C:
			if err := allowed(); err != nil {
				return err
			}
			c.pending.WriteString(": alive\n\n")
		case <-c.streams.Ended:
			return errEnded
		case <-r.Context().Done():
			return r.Context().Err()
		}
		if err := c.flush(); err != nil {
			return err
		}
	}
}

// news adds the events of the scheduler.
func (c *client) news(n changes.News) {
	if len(n.Values) > 0 || n.Missed {
		changed := make([]stream.ValueChange, len(n.Values))
		for i, st := range n.Values {
			changed[i] = stream.ValueChange{Key: st.Key, State: st.State.String()}
		}
		slices.SortFunc(changed, func(a, b stream.ValueChange) int { return cmp.Compare(a.Key, b.Key) })
		c.event(stream.NameValues, stream.ValuesChanged{Changed: changed, Missed: n.Missed, States: c.states()})
	}
	if n.Transactions > 0 {
		c.event(stream.NameTransactions, stream.TransactionsEnded{Count: n.Transactions})
	}
}

// look adds the events of sources and connections that are different.
func (c *client) look() {
	if now := c.connectionsNow(); !maps.Equal(now, c.connections) {
		c.connections = now
		c.event(stream.NameConnections, stream.ConnectionsChanged{Connections: now})
	}
	now := c.sourcesNow()
	var names []string
	for name, source := range now {
		if before, known := c.sources[name]; !known || !same(before, source) {
			names = append(names, name)
		}
	}
	for name := range c.sources {
		if _, known := now[name]; !known {
			names = append(names, name)
		}
	}
	if c.sources = now; len(names) > 0 {
		slices.Sort(names)
		c.event(stream.NameSources, stream.SourcesChanged{Names: names})
	}
}

// same compares everything about a source that stays while nothing happens.
func same(a, b wire.Source) bool {
	if !slices.Equal(a.Faults, b.Faults) || !a.Since.Equal(b.Since) || !a.LastErrorAt.Equal(b.LastErrorAt) {
		return false
	}
	type rest struct {
		state, err, last                                                         string
		complete                                                                 bool
		rev                                                                      int64
		keys, listed, refused, remembered, doubted, problems, failures, priority int
	}
	of := func(s wire.Source) rest {
		return rest{
			s.State, s.Error, s.LastError, s.Complete, s.Revision,
			s.Keys, s.Listed, s.Refused, s.Remembered, s.Doubted, s.Problems, s.Failures, s.Priority,
		}
	}
	return of(a) == of(b)
}

// sourcesNow returns the sources by name.
func (c *client) sourcesNow() map[string]wire.Source {
	out := map[string]wire.Source{}
	if c.streams.Sources != nil {
		for _, s := range c.streams.Sources() {
			out[s.Name] = s
		}
	}
	return out
}

// connectionsNow tells by name whether a connection is ready.
func (c *client) connectionsNow() map[string]bool { return stats.Of(c.streams.Scheduler).Connections }

// states returns the number of values by state.
func (c *client) states() map[string]uint64 { return States(c.streams.Scheduler) }

// States returns the number of values by the name of their state, without zeros. Its cost does
// not depend on the number of values.
func States(s *scheduler.Scheduler) map[string]uint64 {
	out := map[string]uint64{}
	for _, counts := range stats.Of(s).Values {
		for state, n := range counts {
			if n > 0 {
				out[state.String()] += n
			}
		}
	}
	return out
}

// event adds an event to the pending ones. The data is one line: JSON has no line feeds.
func (c *client) event(name string, data any) {
	text, err := json.Marshal(data)
	if err != nil {
		text = []byte("{}") // maps and texts can always be encoded
	}
	fmt.Fprintf(&c.pending, "event: %s\ndata: %s\n\n", name, text)
}

// flush writes the pending events. It fails if the client does not read them in time.
func (c *client) flush() error {
	if c.pending.Len() == 0 {
		return nil
	}
	// Writers without a connection, such as those of tests, have no deadline.
	_ = c.out.SetWriteDeadline(time.Now().Add(maxUnread))
	_, err := c.w.Write(c.pending.Bytes())
	if err == nil {
		err = c.out.Flush()
	}
	// HTTP/2 would end the stream at a deadline that passes while nothing is written.
	_ = c.out.SetWriteDeadline(time.Time{})
	c.pending.Reset()
	return err
}
