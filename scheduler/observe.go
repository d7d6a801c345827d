package scheduler

import (
	"context"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/proto/ligato/kvscheduler"
	"github.com/keyplane/keyplane/scheduler/internal/graph"
)

// Observed is what the southbound did by itself: under Key stands Value now, or
// nothing (nil).
type Observed struct {
	Key   string
	Value proto.Message
}

// Observe tells the scheduler what changed by itself in the southbound. For a
// key of a descriptor with verbs, a nil Value says that what was made is gone:
// it will be made again, with all that stands on it. What is told at once is seen
// at once. It never blocks; of a key that changes often the newest counts.
func (s *Scheduler) Observe(seen ...Observed) {
	s.seen.putAll(func(o Observed) string { return o.Key }, seen...)
}

// Refresh has the scheduler soon read again what the descriptors with these
// names retrieve (none: all). It never blocks.
func (s *Scheduler) Refresh(descriptors ...string) { s.inbox.refresh.add(s.inbox, descriptors) }

// Retry has the scheduler try failed values of these descriptors (none: all)
// again now, without waiting for their back-off. It never blocks.
func (s *Scheduler) Retry(descriptors ...string) { s.inbox.retry.add(s.inbox, descriptors) }

// inbox holds what others asked for and Run has not yet taken.
type inbox struct {
	mu    sync.Mutex
	ready chan struct{} // holds a token while there is something
	notes
}

type notes struct {
	refresh names
	retry   names
	groups  map[*Group]groupNews
}

// names are those of descriptors; asked with none: all.
type names struct {
	asked bool
	all   bool
	of    map[string]bool
}

func newInbox() *inbox { return &inbox{ready: make(chan struct{}, 1)} }

func (n *names) add(in *inbox, descriptors []string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	n.asked = true
	n.all = n.all || len(descriptors) == 0
	if n.of == nil {
		n.of = map[string]bool{}
	}
	for _, d := range descriptors {
		n.of[d] = true
	}
	in.wake()
}

func (n *names) set() map[string]bool {
	if n.all {
		return nil
	}
	return n.of
}

func (in *inbox) wake() {
	select {
	case in.ready <- struct{}{}:
	default:
	}
}

func (in *inbox) take() notes {
	in.mu.Lock()
	defer in.mu.Unlock()
	out := in.notes
	in.notes = notes{}
	return out
}

// notified follows what others asked for.
func (s *Scheduler) notified(ctx context.Context, in notes) {
	for g, news := range in.groups {
		s.regrouped(ctx, g, news)
	}
	if in.refresh.asked {
		r := s.begin(Notification)
		r.rec.Refresh = true
		s.refresh(ctx, r, s.everything(s.registry.named(in.refresh.set())), nil)
		s.finish(ctx, r)
	}
	if in.retry.asked {
		s.retry(ctx, s.failedOf(in.retry.set()), s.opts.Retry)
	}
}

// news are those observations that say something else than is known.
func (s *Scheduler) news(seen []Observed) (out []Observed) {
	for _, o := range seen {
		key := o.Key
		var have *graph.Value
		if n := s.graph.Node(key); n != nil {
			have = n.Have()
		}
		if o.Value == nil && have == nil || o.Value != nil && have != nil && proto.Equal(o.Value, message(have)) {
			continue
		}
		if s.registry.of(key) == nil {
			s.log.Warn("observed a key that no descriptor has", "key", key)
			continue
		}
		out = append(out, o)
	}
	return out
}

func (s *Scheduler) observed(ctx context.Context, seen []Observed) {
	if len(seen) == 0 {
		return
	}
	r := s.begin(Notification)
	for _, o := range seen {
		if o.Value == nil {
			r.rec.Values = append(r.rec.Values, Change{Key: o.Key})
			s.vanish(o.Key)
			continue
		}
		d := s.registry.of(o.Key)
		v := s.prepare(d, o.Key, o.Value)
		r.rec.Values = append(r.rec.Values, Change{Key: o.Key, Value: &Value{v}})
		s.graph.Found(v, nil, d.passive())
	}
	s.notice(r)
	s.finish(ctx, r)
}

// notice shows what was found to have changed by itself, before anything is
// done about it. What is not ours is recorded, except by a resync, which may find
// any number of it. What the run itself has changed is shown in its end.
func (s *Scheduler) notice(r *run) {
	const obtained = kvscheduler.ValueState_OBTAINED
	s.contain(r)
	for n := range s.graph.Changed(r.known) {
		old := s.board.at(n.Slot)
		state := s.publish(r.rec.Start, n, old)
		if !r.rec.Refresh && (state == obtained || old.shown().state == obtained) {
			r.tell(n, old, state)
		}
	}
	r.known = s.graph.ChangedLen()
}
