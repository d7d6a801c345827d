package scheduler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/inbox"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
	"github.com/keyplane/keyplane/scheduler/internal/readback"
)

// An Observed is a change in the system: the actual value of Key is now Value, or none if
// Value is nil.
type Observed struct {
	Key   string
	Value proto.Message
	// Meta is the metadata, of the descriptor's type M. If Meta is nil, known metadata is
	// kept. If none is known and the descriptor has Retrieve, the scheduler calls it
	// instead of using Value.
	Meta any
}

// Observe reports changes in the system. For a descriptor with verbs, a nil Value means
// that the item is gone; the scheduler creates it again, with its dependents. A descriptor
// with RetrieveSome is asked first, since who reports cannot know whether the scheduler has
// done so meanwhile. The changes of one call are handled together. Observe never blocks; only the newest observation of a
// key counts. One that waits while a verb of the key ends may be older than the effect of the
// verb: if they contradict each other, the key is read back. An observation is logged as an
// error and ignored if no descriptor has its key, or if Value or Meta has another type than
// the descriptor's.
func (s *Scheduler) Observe(seen ...Observed) {
	if len(seen) > 0 {
		s.counters.Observed()
	}
	s.observations.PutAll(func(o Observed) string { return o.Key }, seen...)
}

// Refresh requests that the named descriptors (none: all) are read back soon. After a read-back
// that Refresh or Observe has requested, the next one waits three times as long, and 0.3 s at
// most. Refresh never blocks. It returns ErrMisuse if a name is unknown; then nothing is read.
func (s *Scheduler) Refresh(descriptors ...string) error {
	if err := s.registry.CheckNames(descriptors); err != nil {
		return fmt.Errorf("refresh: %w", err)
	}
	s.inbox.Refresh(descriptors...)
	return nil
}

// handleInbox handles requests of other goroutines.
func (s *Scheduler) handleInbox(ctx context.Context, in inbox.Requests[*Connection]) {
	for _, g := range slices.SortedFunc(maps.Keys(in.Connections), func(a, b *Connection) int { return strings.Compare(a.name, b.name) }) {
		s.handleConnection(ctx, g, in.Connections[g])
	}
	if !in.Refresh.Asked {
		return
	}
	var reading readback.Reading
	if s.reader.WantSoon(&reading, s.registry.Named(in.Refresh.Names())) {
		r := s.begin(Notification)
		r.rec.Refresh, r.reading = true, reading
		s.finish(ctx, r)
	}
}

// mayBeOlder drops an observation that waits and contradicts the result of a verb, and reports whether there was one: it may be
// older than the effect of the verb. The value must be read back instead.
func (s *Scheduler) mayBeOlder(op graph.Op) bool {
	d := kind.OfOp(op)
	for n := op.Node.Base(); n != nil && (d == nil || d.Retrieve == nil); n = n.Base() {
		d = kind.Of(n) // a part without Retrieve is read back with its base
	}
	return d != nil && d.Retrieve != nil && s.observations.DropIf(op.Node.Key(), func(o Observed) bool {
		return !kind.Observation(o).IsCurrent(op.Node)
	})
}

// changedObservations returns the valid observations that differ from the known state.
func (s *Scheduler) changedObservations(seen []Observed) (out []Observed) {
	for _, o := range seen {
		s.reader.Learned(o.Key)
		if kind.Observation(o).IsCurrent(s.graph.Node(o.Key)) {
			continue
		}
		if err := s.registry.CheckObservation(kind.Observation(o)); err != nil {
			s.log.Error("observation is ignored", "key", o.Key, "err", err)
			continue
		}
		out = append(out, o)
	}
	return out
}

// handleObservations makes the observed values actual and reconciles them, in one run. An
// observation that cannot be used without reading back adds its descriptor to the readings
// of the run.
func (s *Scheduler) handleObservations(ctx context.Context, seen []Observed) {
	s.counters.Noticed(uint8(Notification))
	seen, unclear := s.usable(seen)
	var reading readback.Reading
	if !s.reader.WantSoon(&reading, unclear) && len(seen) == 0 {
		return
	}
	r := s.begin(Notification)
	r.reading = reading
	for _, o := range seen {
		if o.Value == nil {
			r.rec.Values = append(r.rec.Values, Change{Key: o.Key})
			if s.registry.Of(o.Key).RetrieveSome != nil {
				r.unclear = append(r.unclear, s.graph.Node(o.Key))
				continue
			}
			s.flaps.Lost(o.Key)
			continue
		}
		d := s.registry.Of(o.Key)
		meta, known := d.MetaOf(kind.Observation(o), s.graph.Node(o.Key))
		if !known {
			s.log.Warn("observed a value without metadata; verbs get none", "key", o.Key)
		}
		v := s.registry.Actual(d, o.Key, o.Value)
		r.rec.Values = append(r.rec.Values, Change{Key: o.Key, Value: &Value{v, s}})
		changed, vanished := s.graph.Found(v, meta, d.Passive())
		if changed {
			s.flaps.Changed(o.Key)
			vanished = nil // they have gone with the change
		}
		for _, key := range vanished {
			s.flaps.Vanished(key)
		}
	}
	s.notice(r)
	s.finish(ctx, r)
}

// usable returns the observations that can be used, and the descriptors of the others, which must be read back for their metadata.
func (s *Scheduler) usable(seen []Observed) (out []Observed, unclear []*descriptor) {
	for _, o := range seen {
		if o.Value != nil {
			d := s.registry.Of(o.Key)
			if _, known := d.MetaOf(kind.Observation(o), s.graph.Node(o.Key)); !known && d.Retrieve != nil {
				unclear = append(unclear, d)
				continue
			}
		}
		out = append(out, o)
	}
	return out, unclear
}

// notice publishes changes that were found in the system, before anything is done about
// them. It records values that were found as desired. It also records values of others,
// except in a resync, which may find any number of them. Changes by the run itself are
// published at its end.
func (s *Scheduler) notice(r *run) {
	s.flaps.Apply(r.rec.Seq)
	for n := range s.graph.Changed(r.known) {
		old := s.statuses.At(n.Slot)
		state := s.publish(r.rec.Start, n, old)
		if state == Configured && !r.didTo(old) || !r.rec.Refresh && (state == Obtained || State(old.Known().State) == Obtained) {
			r.recordNoop(n, old, state, false)
		}
	}
	r.known = s.graph.ChangedLen()
}
