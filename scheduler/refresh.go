package scheduler

import (
	"context"
	"time"

	"github.com/keyplane/keyplane/scheduler/internal/counters"
	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
	"github.com/keyplane/keyplane/scheduler/internal/readback"
)

// newReader returns the reader of s.
func (s *Scheduler) newReader() *readback.Reader {
	return readback.New(readback.Options{
		Log: s.log, Graph: s.graph, Registry: &s.registry, Ledger: s.ledger, Timeout: s.opts.VerbTimeout,
		Again:    s.inbox.Refresh,
		Vanished: s.flaps.Vanished,
		Changed:  s.flaps.Changed,
		Shown: func(d *kind.Descriptor, found []kind.Found) {
			s.shown.Replace(d, found, time.Now(), uint8(Obtained))
		},
	})
}

// refresh reads back values while all other work waits. coming has changes of the current
// transaction, which count as desired.
func (s *Scheduler) refresh(ctx context.Context, r *run, parts []readback.Part, coming []Change) {
	before := r.phase
	r.phase = readingBack
	r.reading.Coming = readback.NewComing(func(yield func(*graph.Value) bool) {
		for _, c := range coming {
			if c.Value != nil && c.Value.v.Err() == nil && !yield(c.Value.v) {
				return
			}
		}
	})
	s.reader.Want(&r.reading, parts, nil)
	for !s.readBack(ctx, r) {
		s.await(ctx, r, false)
	}
	r.phase, r.reading.Coming = before, nil
}

// readBack replaces the known actual state by what r reads back. It returns false if r must wait
// before it calls readBack again.
func (s *Scheduler) readBack(ctx context.Context, r *run) bool {
	progress := s.reader.Go(ctx, &r.reading)
	s.publishConnections()
	switch progress {
	case readback.Waits:
		return false
	case readback.Yields:
		r.yields = true
		return false
	case readback.Done:
	}
	r.rec.RefreshErrors = append(r.rec.RefreshErrors, r.reading.TakeErrors()...)
	s.notice(r)
	s.counters.Phase(counters.Refresh, r.reading.Began)
	return true
}
