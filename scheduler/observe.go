package scheduler

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/internal/wake"
	"github.com/keyplane/keyplane/proto/ligato/kvscheduler"
)

// Observed is what the southbound did by itself: under Key stands Value now, or
// nothing (nil).
type Observed struct {
	Key   string
	Value proto.Message
	// Meta is the metadata, of the descriptor's type M. Nil: what is known stays; if nothing
	// stood before and the descriptor has Retrieve, it is asked instead of Value.
	Meta any
}

// Observe tells the scheduler what changed by itself in the southbound. For a
// key of a descriptor with verbs, a nil Value says that what was made is gone:
// it will be made again, with all that stands on it. What is told at once is seen
// at once. It never blocks; of a key that changes often the newest counts. An observation
// with a key that no descriptor has, or with a Value or Meta of another type than the
// descriptor's, is logged as an error and not followed.
func (s *Scheduler) Observe(seen ...Observed) {
	s.observations.PutAll(func(o Observed) string { return o.Key }, seen...)
}

// Refresh has the scheduler soon read again what the descriptors with these
// names retrieve (none: all). It never blocks. The error is ErrUnknownDescriptor if
// one of the names is; then nothing is read.
func (s *Scheduler) Refresh(descriptors ...string) error {
	if err := s.registry.checkNames(descriptors); err != nil {
		return fmt.Errorf("refresh: %w", err)
	}
	s.inbox.refresh.add(s.inbox, descriptors)
	return nil
}

// Retry has the scheduler try failed values of these descriptors (none: all)
// again now, without waiting for their back-off. It never blocks. The error is
// ErrUnknownDescriptor if one of the names is; then nothing is tried.
func (s *Scheduler) Retry(descriptors ...string) error {
	if err := s.registry.checkNames(descriptors); err != nil {
		return fmt.Errorf("retry: %w", err)
	}
	s.inbox.retry.add(s.inbox, descriptors)
	return nil
}

// inbox holds what others asked for and Run has not yet taken.
type inbox struct {
	mu    sync.Mutex
	ready wake.Signal // set when notes are added
	notes
}

type notes struct {
	refresh     names
	retry       names
	connections map[*Connection]connectionChange
}

// names are those of descriptors; asked with none: all.
type names struct {
	asked bool
	all   bool
	of    map[string]bool
}

func newInbox() *inbox { return &inbox{ready: wake.New()} }

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
	in.ready.Set()
}

func (in *inbox) drain() notes {
	in.mu.Lock()
	defer in.mu.Unlock()
	out := in.notes
	in.notes = notes{}
	return out
}

// notified follows what others asked for.
func (s *Scheduler) handleInbox(ctx context.Context, in notes) {
	for g, news := range in.connections {
		s.handleConnection(ctx, g, news)
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
func (s *Scheduler) changedObservations(seen []Observed) (out []Observed) {
	for _, o := range seen {
		if s.isCurrent(o) {
			continue
		}
		if err := s.checkObservation(o); err != nil {
			s.log.Error("observation cannot be followed", "key", o.Key, "err", err)
			continue
		}
		out = append(out, o)
	}
	return out
}

func (s *Scheduler) isCurrent(o Observed) bool {
	n := s.graph.Node(o.Key)
	if n == nil || n.Actual() == nil {
		return o.Value == nil
	}
	return o.Value != nil && proto.Equal(o.Value, message(n.Actual())) && (o.Meta == nil || reflect.DeepEqual(o.Meta, n.Meta()))
}

// acceptable says what is wrong with an observation as such.
func (s *Scheduler) checkObservation(o Observed) error {
	d := s.registry.of(o.Key)
	switch {
	case d == nil:
		return ErrUnimplemented
	case o.Value == nil:
		return nil
	case o.Meta != nil && !d.isMeta(o.Meta):
		return fmt.Errorf("metadata is a %T, which is not that of descriptor %q", o.Meta, d.name)
	}
	return d.accepts(o.Value)
}

func (s *Scheduler) handleObservations(ctx context.Context, seen []Observed) {
	if len(seen) == 0 {
		return
	}
	r := s.begin(Notification)
	var unclear []*descriptor // to be asked what stands
	for _, o := range seen {
		if o.Value == nil {
			r.rec.Values = append(r.rec.Values, Change{Key: o.Key})
			s.markVanished(o.Key)
			continue
		}
		d := s.registry.of(o.Key)
		meta, known := s.metaOf(d, o)
		if !known && d.retrieve != nil {
			unclear = append(unclear, d)
			continue
		}
		if !known {
			s.log.Warn("observed a value without its metadata: other verbs are given none", "key", o.Key)
		}
		v := s.prepare(d, o.Key, o.Value)
		r.rec.Values = append(r.rec.Values, Change{Key: o.Key, Value: &Value{v, s}})
		s.graph.Found(v, meta, d.passive())
	}
	s.notice(r)
	if len(unclear) > 0 {
		s.refresh(ctx, r, s.everything(unclear), nil)
	}
	s.finish(ctx, r)
}

// metaOf is the metadata of an observed value: what it carries, else what is known;
// false: verbs of it need metadata, and it is not known.
func (s *Scheduler) metaOf(d *descriptor, o Observed) (meta any, known bool) {
	n := s.graph.Node(o.Key)
	switch {
	case o.Meta != nil:
		return o.Meta, true
	case n != nil && n.Actual() != nil:
		return n.Meta(), true
	}
	return nil, d.passive() || !d.learns
}

// notice shows what was found to have changed by itself, before anything is
// done about it. A value that was found as it is wanted is recorded. What is not ours is
// recorded too, except by a resync, which may find any number of it. What the run itself has
// changed is shown in its end.
func (s *Scheduler) notice(r *run) {
	const obtained, configured = kvscheduler.ValueState_OBTAINED, kvscheduler.ValueState_CONFIGURED
	s.delayContested(r)
	for n := range s.graph.Changed(r.known) {
		old := s.statuses.At(n.Slot)
		state := s.publish(r.rec.Start, n, old)
		if state == configured && !r.didTo(old) || !r.rec.Refresh && (state == obtained || old.shown().state == obtained) {
			r.recordNoop(n, old, state)
		}
	}
	r.known = s.graph.ChangedLen()
}
