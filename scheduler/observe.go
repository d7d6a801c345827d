package scheduler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/scheduler/internal/executor"
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
// that the item is gone; the scheduler creates it again, with its dependents. The changes
// of one call are handled together. Observe never blocks; only the newest observation of a
// key counts. One that waits while a verb of the key ends may be older than the effect of the
// verb: if they contradict each other, the descriptor is read back. An observation is logged as
// an error and ignored if no descriptor has its key, or if Value or Meta has another type than
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
	var reading readback.Reading
	if in.Refresh.Asked && s.reader.WantSoon(&reading, s.registry.Named(in.Refresh.Names())) {
		r := s.begin(Notification)
		r.rec.Refresh, r.reading = true, reading
		s.finish(ctx, r)
	}
}

// outdate notes that an observation which waits may be older than the effect of a verb.
func (s *Scheduler) outdate(t *executor.Task) {
	if key := t.Op.Node.Key(); !executor.NotBegun(t.Err) && s.observations.Has(key) {
		s.outdated[key] = true
	}
}

// takeObservations returns the valid observations that differ from the known state, and the descriptors that must be read back
// instead of others.
func (s *Scheduler) takeObservations() (seen []Observed, unclear []*descriptor) {
	for _, o := range s.observations.Take() {
		n := s.graph.Node(o.Key)
		if kind.Observation(o).IsCurrent(n) {
			s.reader.Learned(o.Key)
			continue
		}
		if err := s.registry.CheckObservation(kind.Observation(o)); err != nil {
			s.log.Error("observation is ignored", "key", o.Key, "err", err)
			continue
		}
		if by := readback.Instead(kind.Observation(o), s.registry.Of(o.Key), n, s.outdated[o.Key]); by != nil {
			unclear = append(unclear, by)
			continue
		}
		s.reader.Learned(o.Key)
		seen = append(seen, o)
	}
	clear(s.outdated)
	return seen, unclear
}

// handleObservations makes the observed values actual and reconciles them, in one run, which also reads back what is unclear.
func (s *Scheduler) handleObservations(ctx context.Context) {
	s.counters.Noticed(uint8(Notification))
	seen, unclear := s.takeObservations()
	var reading readback.Reading
	if !s.reader.WantSoon(&reading, unclear) && len(seen) == 0 {
		return
	}
	r := s.begin(Notification)
	r.reading = reading
	for _, o := range seen {
		if o.Value == nil {
			r.rec.Values = append(r.rec.Values, Change{Key: o.Key})
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
