package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/scheduler/internal/graph"
)

// A Group is a southbound that is reached by a connection. While the connection
// is lost, as it is at first, nothing of the group stands, its values are
// PENDING with that reason, and none of its verbs is called. Everything else
// goes on. When it is ready again, what really stands is read back, and all is
// brought about again.
type Connection struct {
	s    *Scheduler
	name string
	link graph.Connection // owned by Run's goroutine

	intercept    func(key string, value proto.Message, verb func() error) error
	interceptAll func(values []KeyValue, verbs func() []error) bool
}

// ErrNotConnected is the first reason why a group is lost.
var ErrNotConnected = errors.New("not connected yet")

// Group makes the southbound of that name one that is reached by a connection. It
// must be called before the descriptors of that southbound are registered and before Run:
// see ErrRegistered and ErrRunning. A second call returns the same Group.
func (s *Scheduler) Connection(name string) (*Connection, error) {
	g := s.connections[name]
	switch {
	case g != nil:
		return g, nil
	case name == "":
		return nil, errors.New("connection: name is required")
	case s.begun.Load():
		return nil, fmt.Errorf("connection %q: %w: Connection comes before it", name, ErrRunning)
	case s.bounds[name] != nil:
		return nil, fmt.Errorf("connection %q: %w", name, ErrRegistered)
	}
	g = &Connection{s: s, name: name}
	s.connections[name] = g
	s.graph.Disconnect(&g.link, g.reason(ErrNotConnected))
	return g, nil
}

// Around has every verb of the group called by way of f: f calls verb and returns its
// error, or refuses with one of its own. The value is the one that is to stand or, of
// Delete, to go. It must be called before the descriptors are registered: see ErrRegistered.
func (g *Connection) Intercept(f func(key string, value proto.Message, verb func() error) error) error {
	if err := g.checkUnregistered(); err != nil {
		return err
	}
	g.intercept = f
	return nil
}

func (g *Connection) checkUnregistered() error {
	if g.s.bounds[g.name] != nil {
		return fmt.Errorf("connection %q: %w", g.name, ErrRegistered)
	}
	return nil
}

// AroundAll has every CreateAll of the group called by way of f: f calls verbs, which
// returns the error of each value, in their order; or it returns false, and they are created one
// by one. It must be called before the descriptors are registered, with Around.
func (g *Connection) InterceptAll(f func(values []KeyValue, verbs func() []error) bool) error {
	if err := g.checkUnregistered(); err != nil {
		return err
	}
	g.interceptAll = f
	return nil
}

func (g *Connection) reason(err error) string { return g.name + ": " + err.Error() }

// Lost says that the connection is gone, and why. It never blocks.
func (g *Connection) Lost(why error) { g.s.inbox.addConnection(g, connectionChange{lost: why}) }

// Ready says that the connection stands. It never blocks.
func (g *Connection) Ready() { g.s.inbox.addConnection(g, connectionChange{ready: true}) }

// groupNews is what became of a group's connection: it was lost (and why), and
// is ready (again), or only one of the two.
type connectionChange struct {
	lost  error
	ready bool
}

// then is n followed by m.
func (n connectionChange) merge(m connectionChange) connectionChange {
	if m.lost != nil {
		return m
	}
	return connectionChange{lost: n.lost, ready: true}
}

func (in *inbox) addConnection(g *Connection, news connectionChange) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.connections == nil {
		in.connections = map[*Connection]connectionChange{}
	}
	in.connections[g] = in.connections[g].merge(news)
	in.wake()
}

// lostGroups takes out the groups that were lost, while a run goes on.
func (in *inbox) takeLosses() map[*Connection]error {
	in.mu.Lock()
	defer in.mu.Unlock()
	var out map[*Connection]error
	for g, news := range in.connections {
		if news.lost == nil {
			continue
		}
		if out == nil {
			out = map[*Connection]error{}
		}
		out[g] = news.lost
		if news.lost = nil; news.ready {
			in.connections[g] = news
		} else {
			delete(in.connections, g)
		}
	}
	return out
}

// followGroups follows what was lost while a run goes on. What is in flight
// there will end by itself.
func (s *Scheduler) handleLosses() {
	for g, why := range s.inbox.takeLosses() {
		s.disconnect(g, why)
	}
}

// lose shuts the gate of a group.
func (s *Scheduler) disconnect(g *Connection, why error) {
	s.log.Warn("connection lost; its values wait", "connection", g.name, "err", why)
	s.graph.Disconnect(&g.link, g.reason(why))
	for n := range s.graph.Changed(0) {
		if d := descriptorOf(n); d != nil && d.link == &g.link {
			s.retries.drop(n.Key())
		}
	}
}

// stillLost has people shown why g is lost now. Nothing else changes.
func (s *Scheduler) updateReason(g *Connection, why error) {
	s.log.Info("connection is not available; its values wait", "connection", g.name, "err", why)
	s.graph.Disconnect(&g.link, g.reason(why))
	r := &run{rec: &Record{Start: time.Now()}}
	for n := range s.graph.Touched() {
		s.note(r, n)
	}
}

// regrouped follows what became of a group's connection.
func (s *Scheduler) handleConnection(ctx context.Context, g *Connection, news connectionChange) {
	if news.lost != nil && !news.ready && g.link.Down() {
		s.updateReason(g, news.lost)
		return
	}
	r := s.begin(Notification)
	if news.lost != nil {
		r.rec.Description = g.reason(news.lost)
		s.disconnect(g, news.lost)
	}
	if news.ready {
		s.log.Info("connection ready", "connection", g.name)
		r.rec.Description, r.rec.Refresh = g.name+": ready", true
		s.graph.Connect(&g.link)
		s.refresh(ctx, r, s.everything(s.descriptorsOf(g)), nil)
	}
	s.finish(ctx, r)
}

// members are the descriptors behind g's gate.
func (s *Scheduler) descriptorsOf(g *Connection) []*descriptor {
	return slices.DeleteFunc(slices.Clone(s.registry.order), func(d *descriptor) bool { return d.link != &g.link })
}
