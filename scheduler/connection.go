package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/scheduler/internal/executor"
	"github.com/keyplane/keyplane/scheduler/internal/inbox"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
)

// A Connection is a link to a system that can be lost. While it is lost, as at the start, nobody
// knows whether its values exist; they are PENDING with that reason, and no verb of them is
// called. Other values are not affected: those that depend on them stay as they are. When it becomes
// ready, its actual state is read back and reconciled.
type Connection struct {
	s    *Scheduler
	name string
	of   *kind.Connection
	why  string // why it is lost

	intercept    func(key string, value proto.Message, verb func() error) error
	interceptAll func(values []KeyValue, verbs func() []error) bool
}

// errNotConnected is the first reason of a lost connection.
var errNotConnected = errors.New("not connected yet")

// Connection declares that the descriptors with this connection name need a connection. It
// must be called before they are registered and before Run; else it returns ErrMisuse. A second call returns the same Connection.
func (s *Scheduler) Connection(name string) (*Connection, error) {
	g := s.connections[name]
	switch {
	case g != nil:
		return g, nil
	case name == "":
		return nil, errors.New("connection: name is required")
	case s.begun.Load():
		return nil, fmt.Errorf("connection %q: %w", name, tooLate("Connection"))
	case s.executor.Has(name):
		return nil, errRegistered(name)
	}
	g = &Connection{s: s, name: name, of: s.links.Named(name)}
	g.of.Losable = true
	s.connections[name] = g
	g.why = errNotConnected.Error()
	s.graph.Disconnect(&g.of.Connection, g.reason(errNotConnected))
	s.publishConnections()
	return g, nil
}

// Intercept sets a function that wraps every verb of the connection. f calls verb and
// returns its error, or returns an error of its own without calling it. The value is the
// new one or, for Delete, the old one. Intercept must be called before the descriptors are
// registered; else it returns ErrMisuse.
func (g *Connection) Intercept(f func(key string, value proto.Message, verb func() error) error) error {
	if err := g.checkUnregistered(); err != nil {
		return err
	}
	g.intercept = f
	return nil
}

// errRegistered returns the error of a call that comes too late for a connection.
func errRegistered(name string) error {
	return fmt.Errorf("%w: a descriptor of connection %q is registered already", ErrMisuse, name)
}

// checkUnregistered returns ErrMisuse once a descriptor uses the connection: its verbs
// were wrapped when it was registered, so a later function would not apply to them.
func (g *Connection) checkUnregistered() error {
	if g.s.executor.Has(g.name) {
		return errRegistered(g.name)
	}
	return nil
}

// InterceptAll sets a function that wraps every CreateAll of the connection. f calls
// verbs, which returns one error per value in order, and returns true. If f returns false,
// the values are created one by one. It must be called before the descriptors are
// registered, together with Intercept.
func (g *Connection) InterceptAll(f func(values []KeyValue, verbs func() []error) bool) error {
	if err := g.checkUnregistered(); err != nil {
		return err
	}
	g.interceptAll = f
	return nil
}

// interceptTasks returns the executor's form of interceptAll.
func (g *Connection) interceptTasks() func([]*executor.Task, func() []error) bool {
	if g.interceptAll == nil {
		return nil
	}
	return func(tasks []*executor.Task, verbs func() []error) bool {
		values := make([]KeyValue, len(tasks))
		for i, t := range tasks {
			values[i] = KeyValue{t.Op.Node.Key(), kind.Message(t.Op.New)}
		}
		return g.interceptAll(values, verbs)
	}
}

func (g *Connection) reason(err error) string { return g.name + ": " + err.Error() }

// Lost reports that the connection is lost, and the reason. It never blocks. A further
// call replaces the reason, which PENDING values show.
func (g *Connection) Lost(why error) { g.s.inbox.Connection(g, inbox.Change{Lost: why}) }

// Ready reports that the connection is established. It never blocks. The values of the
// connection are read back before any verb of it is called. Those that cannot be read back are gone.
func (g *Connection) Ready() { g.s.inbox.Connection(g, inbox.Change{Ready: true, Other: true}) }

// ReadyAgain is Ready for a connection to the same system as before it was lost. Values that cannot be read
// back stand.
func (g *Connection) ReadyAgain() { g.s.inbox.Connection(g, inbox.Change{Ready: true}) }

// disconnect marks the connection as lost, or replaces the reason of a lost one. The retries of its
// values end, because the values are read back and reconciled as soon as the connection is ready.
func (s *Scheduler) disconnect(g *Connection, why error) {
	if g.of.Lost() {
		s.log.Info("connection is not available; its values wait", "connection", g.name, "err", why)
	} else {
		s.log.Warn("connection lost; its values wait", "connection", g.name, "err", why)
	}
	g.why = why.Error()
	s.graph.Disconnect(&g.of.Connection, g.reason(why))
	s.publishConnections()
	for _, d := range s.registry.All {
		if d.Connection == g.of {
			s.shown.Drop(d)
		}
	}
	for n := range s.graph.Changed(0) {
		if d := kind.Of(n); d != nil && d.Connection == g.of {
			s.retries.Drop(n.Key())
		}
	}
}

// updateReason publishes a new reason for a connection that is already lost.
func (s *Scheduler) updateReason(g *Connection, why error) {
	s.land()
	s.disconnect(g, why)
	r := &run{rec: &Record{Start: time.Now()}}
	for n := range s.graph.Touched() {
		s.note(r, n)
	}
}

// handleConnection handles a change of a connection.
func (s *Scheduler) handleConnection(ctx context.Context, g *Connection, news inbox.Change) {
	g.of.Other = g.of.Other || news.Other
	if news.Lost != nil && !news.Ready && g.of.Lost() {
		s.updateReason(g, news.Lost)
		return
	}
	if news.Lost == nil && !news.Ready {
		return // it is lost again
	}
	r := s.begin(Notification)
	if news.Lost != nil {
		r.rec.Description = g.reason(news.Lost)
		s.disconnect(g, news.Lost)
	}
	if news.Ready {
		s.log.Info("connection ready", "connection", g.name)
		r.rec.Description, r.rec.Refresh = g.name+": ready", true
		s.reader.Want(&r.reading, s.reader.EverythingAfter(g.of), g.of)
	}
	s.finish(ctx, r)
}
