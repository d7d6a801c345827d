package scheduler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/keyplane/keyplane/scheduler/internal/graph"
)

// A ConnectionStatus is what is known of a Connection, and of the values behind it, at one time. It is
// immutable.
type ConnectionStatus struct {
	Name  string
	State ConnectionState
	Why   string        // why it is lost or gone; else empty
	Since time.Time     // from which it has State
	Kinds []UnknownKind // the unknown ones, sorted by descriptor
}

// A ConnectionState says what can be done with a connection.
type ConnectionState uint8

const (
	ConnectionLost    ConnectionState = iota // it is lost, or was never ready; all its kinds are unknown
	ConnectionGone                           // it is lost, and an operator has said that its values are gone: see Scheduler.Forget
	ConnectionReading                        // it is ready again, and some kinds were not read back yet
	ConnectionReady                          // each kind was read back, or cannot be read back
)

func (c ConnectionState) String() string { return [...]string{"LOST", "GONE", "READING", "READY"}[c] }

// Connected reports whether verbs of the connection can succeed.
func (c ConnectionState) Connected() bool { return c >= ConnectionReading }

// An UnknownKind is a descriptor of which nobody knows which of its values exist. No verb of it is called until
// it was read back.
type UnknownKind struct {
	Descriptor string
	Why        string
	Since      time.Time
}

// String returns the reason and the time, for people.
func (u UnknownKind) String() string {
	return u.Why + ", since " + u.Since.UTC().Format(time.RFC3339)
}

// Connections returns the statuses of all connections, sorted by name. No transaction waits for it.
func (s *Scheduler) Connections() []ConnectionStatus {
	if all := s.published.Load(); all != nil {
		return *all
	}
	return nil
}

// publishConnections publishes the statuses of the connections. What has not changed keeps its time.
func (s *Scheduler) publishConnections() {
	before, now := s.Connections(), time.Now()
	all := make([]ConnectionStatus, 0, len(s.connections))
	for _, name := range slices.Sorted(maps.Keys(s.connections)) {
		c := s.connections[name].status(now)
		for _, old := range before {
			if old.Name == name {
				c.resume(old)
			}
		}
		all = append(all, c)
	}
	s.published.Store(&all)
}

// status returns the status of the connection, with the present time.
func (g *Connection) status(now time.Time) ConnectionStatus {
	link := &g.of.Connection
	c := ConnectionStatus{Name: g.name, State: ConnectionReady, Since: now}
	for _, d := range g.s.registry.All {
		if d.Connection != g.of || !d.Known.Unknown() {
			continue
		}
		c.Kinds = append(c.Kinds, UnknownKind{d.Name, d.Known.Why(), now})
		if !d.Known.Failed() {
			c.State = ConnectionReading
		}
	}
	slices.SortFunc(c.Kinds, func(a, b UnknownKind) int { return strings.Compare(a.Descriptor, b.Descriptor) })
	switch {
	case link.Gone():
		c.State, c.Why = ConnectionGone, g.why
	case link.Lost():
		c.State, c.Why = ConnectionLost, g.why
	}
	return c
}

// resume takes over the times of what c has had since before.
func (c *ConnectionStatus) resume(before ConnectionStatus) {
	if c.State == before.State {
		c.Since = before.Since
	}
	for i := range c.Kinds {
		k := &c.Kinds[i]
		if j := slices.IndexFunc(before.Kinds, func(old UnknownKind) bool { return old.Descriptor == k.Descriptor }); j >= 0 {
			k.Since = before.Kinds[j].Since
		}
	}
}

// Unknown returns the unknown kinds by descriptor. No transaction waits for it.
func (s *Scheduler) Unknown() map[string]UnknownKind {
	out := map[string]UnknownKind{}
	for _, c := range s.Connections() {
		for _, k := range c.Kinds {
			out[k.Descriptor] = k
		}
	}
	return out
}

// unknownInUse returns the unknown kinds that have values in the graph, also desired ones.
func (s *Scheduler) unknownInUse() (out []UnknownKind) {
	has := func(n *graph.Node) bool { return n.Desired() != nil || n.Actual() != nil }
	unknown := s.Unknown()
	for _, d := range s.registry.Order {
		if k, is := unknown[d.Name]; is && slices.ContainsFunc(s.graph.Of(d), has) {
			out = append(out, k)
		}
	}
	return out
}

// These are the mistakes in a call of Forget.
var (
	ErrNoConnection = errors.New("there is no such connection")
	ErrNotLost      = errors.New("the connection is not lost")
)

// Forget records that the system behind a lost connection is gone for good, with all its values: only an operator
// can know that. What depends on them elsewhere is withdrawn. Their desired values are PENDING for the connection as
// before, and the others are removed. If the connection becomes ready after all, it is read back as usual.
//
// It waits for the end of the transaction; the error is then that of Commit. It returns ErrNoConnection or ErrNotLost
// if there is nothing to forget.
func (s *Scheduler) Forget(ctx context.Context, connection string) (*Record, error) {
	g := s.connections[connection]
	if g == nil {
		names := strings.Join(slices.Sorted(maps.Keys(s.connections)), ", ")
		return nil, fmt.Errorf("connection %q: %w; expected one of: %s", connection, ErrNoConnection, names)
	}
	outcome := make(chan *Record, 1)
	if err := s.ask(ctx, func(run context.Context) { s.forget(run, g, outcome) }); err != nil {
		return nil, err
	}
	select {
	case rec := <-outcome:
		if rec == nil {
			return nil, fmt.Errorf("connection %q: %w; only the values of a lost one can be forgotten", connection, ErrNotLost)
		}
		return rec, rec.Err()
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for the scheduler to end: %w", ctx.Err())
	}
}

// forget carries out Forget, and reports nil if the connection is not lost.
func (s *Scheduler) forget(ctx context.Context, g *Connection, outcome chan<- *Record) {
	if !g.of.Lost() {
		outcome <- nil
		return
	}
	s.log.Warn("an operator says that the connection is gone for good; its values are forgotten", "connection", g.name)
	r := s.begin(Notification)
	r.rec.Description = g.name + ": gone for good"
	r.done = func(rec *Record) { outcome <- rec }
	for _, d := range s.registry.Order {
		if d.Connection != g.of {
			continue
		}
		for _, n := range s.graph.Of(d) {
			d.Index.Drop(d.NameIn(n.Key()))
		}
	}
	s.graph.Forget(&g.of.Connection)
	s.publishConnections()
	s.finish(ctx, r)
}
