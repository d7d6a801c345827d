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

// coming returns the values that changes declare. They count as desired when they are read back before that.
func coming(changes []Change) readback.Coming {
	return readback.NewComing(func(yield func(*graph.Value) bool) {
		for _, c := range changes {
			if c.Value != nil && c.Value.v.Err() == nil && !yield(c.Value.v) {
				return
			}
		}
	})
}

// readBack replaces the known actual state by what r reads back. It returns false if r must wait
// before it calls readBack again.
func (s *Scheduler) readBack(ctx context.Context, r *run) bool {
	progress := s.reader.Go(ctx, &r.reading)
	if progress != readback.Yields {
		s.publishConnections()
	}
	if progress != readback.Done {
		return false
	}
	r.rec.RefreshErrors = append(r.rec.RefreshErrors, r.reading.TakeErrors()...)
	s.notice(r)
	s.counters.Phase(counters.Refresh, r.reading.Began)
	return true
}
