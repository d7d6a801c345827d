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
type Group struct {
	s    *Scheduler
	name string
	gate graph.Connection // owned by Run's goroutine

	around    func(key string, value proto.Message, verb func() error) error
	aroundAll func(values []KeyValue, verbs func() []error) bool
}

// ErrNotConnected is the first reason why a group is lost.
var ErrNotConnected = errors.New("not connected yet")

// Group makes the southbound of that name one that is reached by a connection. It
// must be called before the descriptors of that southbound are registered and before Run:
// see ErrRegistered and ErrRunning. A second call returns the same Group.
func (s *Scheduler) Group(name string) (*Group, error) {
	g := s.groups[name]
	switch {
	case g != nil:
		return g, nil
	case name == "":
		return nil, errors.New("group: the name of a southbound is required")
	case s.begun.Load():
		return nil, fmt.Errorf("group %q: %w: Group comes before it", name, ErrRunning)
	case s.bounds[name] != nil:
		return nil, fmt.Errorf("group %q: %w", name, ErrRegistered)
	}
	g = &Group{s: s, name: name}
	s.groups[name] = g
	s.graph.Disconnect(&g.gate, g.reason(ErrNotConnected))
	return g, nil
}

// Around has every verb of the group called by way of f: f calls verb and returns its
// error, or refuses with one of its own. The value is the one that is to stand or, of
// Delete, to go. It must be called before the descriptors are registered: see ErrRegistered.
func (g *Group) Around(f func(key string, value proto.Message, verb func() error) error) error {
	if err := g.unregistered(); err != nil {
		return err
	}
	g.around = f
	return nil
}

func (g *Group) unregistered() error {
	if g.s.bounds[g.name] != nil {
		return fmt.Errorf("group %q: %w", g.name, ErrRegistered)
	}
	return nil
}

// AroundAll has every CreateAll of the group called by way of f: f calls verbs, which
// returns the error of each value, in their order; or it returns false, and they are created one
// by one. It must be called before the descriptors are registered, with Around.
func (g *Group) AroundAll(f func(values []KeyValue, verbs func() []error) bool) error {
	if err := g.unregistered(); err != nil {
		return err
	}
	g.aroundAll = f
	return nil
}

func (g *Group) reason(err error) string { return g.name + ": " + err.Error() }

// Lost says that the connection is gone, and why. It never blocks.
func (g *Group) Lost(why error) { g.s.inbox.group(g, groupNews{lost: why}) }

// Ready says that the connection stands. It never blocks.
func (g *Group) Ready() { g.s.inbox.group(g, groupNews{ready: true}) }

// groupNews is what became of a group's connection: it was lost (and why), and
// is ready (again), or only one of the two.
type groupNews struct {
	lost  error
	ready bool
}

// then is n followed by m.
func (n groupNews) then(m groupNews) groupNews {
	if m.lost != nil {
		return m
	}
	return groupNews{lost: n.lost, ready: true}
}

func (in *inbox) group(g *Group, news groupNews) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.groups == nil {
		in.groups = map[*Group]groupNews{}
	}
	in.groups[g] = in.groups[g].then(news)
	in.wake()
}

// lostGroups takes out the groups that were lost, while a run goes on.
func (in *inbox) lostGroups() map[*Group]error {
	in.mu.Lock()
	defer in.mu.Unlock()
	var out map[*Group]error
	for g, news := range in.groups {
		if news.lost == nil {
			continue
		}
		if out == nil {
			out = map[*Group]error{}
		}
		out[g] = news.lost
		if news.lost = nil; news.ready {
			in.groups[g] = news
		} else {
			delete(in.groups, g)
		}
	}
	return out
}

// followGroups follows what was lost while a run goes on. What is in flight
// there will end by itself.
func (s *Scheduler) followGroups() {
	for g, why := range s.inbox.lostGroups() {
		s.lose(g, why)
	}
}

// lose shuts the gate of a group.
func (s *Scheduler) lose(g *Group, why error) {
	s.log.Warn("southbound lost", "southbound", g.name, "err", why)
	s.graph.Disconnect(&g.gate, g.reason(why))
	for n := range s.graph.Changed(0) {
		if d := descriptorOf(n); d != nil && d.gate == &g.gate {
			s.retries.drop(n.Key())
		}
	}
}

// stillLost has people shown why g is lost now. Nothing else changes.
func (s *Scheduler) stillLost(g *Group, why error) {
	s.log.Info("southbound is not there: what needs it waits", "southbound", g.name, "err", why)
	s.graph.Disconnect(&g.gate, g.reason(why))
	r := &run{rec: &Record{Start: time.Now()}}
	for n := range s.graph.Touched() {
		s.note(r, n)
	}
}

// regrouped follows what became of a group's connection.
func (s *Scheduler) regrouped(ctx context.Context, g *Group, news groupNews) {
	if news.lost != nil && !news.ready && g.gate.Down() {
		s.stillLost(g, news.lost)
		return
	}
	r := s.begin(Notification)
	if news.lost != nil {
		r.rec.Description = g.reason(news.lost)
		s.lose(g, news.lost)
	}
	if news.ready {
		s.log.Info("southbound ready", "southbound", g.name)
		r.rec.Description, r.rec.Refresh = g.name+": ready", true
		s.graph.Connect(&g.gate)
		s.refresh(ctx, r, s.everything(s.members(g)), nil)
	}
	s.finish(ctx, r)
}

// members are the descriptors behind g's gate.
func (s *Scheduler) members(g *Group) []*descriptor {
	return slices.DeleteFunc(slices.Clone(s.registry.order), func(d *descriptor) bool { return d.gate != &g.gate })
}
