package kvdbsync

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/keyplane/keyplane/internal/backoff"
	"github.com/keyplane/keyplane/internal/guard"
)

// Run watches the store until ctx ends, and then returns nil. Errors of the store never
// end it. It is called once.
func (s *Source) Run(ctx context.Context) error {
	pace := newPacer(s.o.MinBackoff, s.o.MaxBackoff)
	for {
		err := short(guard.Run(func() error { return s.watch(ctx) }))
		if ctx.Err() != nil {
			return nil
		}
		h := s.health.get()
		wait := pace.next(h.State, time.Since(h.Since))
		s.reportLost(err, wait)
		if !backoff.Sleep(ctx, wait) {
			return nil
		}
	}
}

// watch runs one watch from its beginning to its end. It always returns an error.
func (s *Source) watch(ctx context.Context) error {
	select {
	case <-s.relist.C(): // this watch begins with a listing
	default:
	}
	ctx, stop := context.WithCancelCause(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer stop(nil)
	decoder := predecoder{decode: s.o.Decode}
	defer decoder.stop()
	l := &listing{about: Listing{Began: time.Now()}, first: !s.synced, decoder: &decoder, tally: NewTally(s.o.Bounds)}
	defer func() { s.places.give(l.places) }()
	synced := false
	for b, err := range s.o.Connector.Watch(ctx, s.prefix) {
		if err != nil {
			return err
		}
		if synced {
			s.health.yielded(b)
			if err := s.apply(b); err != nil {
				return err
			}
			if b.Synced { // the connector has listed the store anew by itself
				s.o.Listed()
			}
			continue
		}
		s.health.listing()
		if err := s.gather(l, b); err != nil {
			return err
		}
		if !b.Synced {
			continue
		}
		s.replace(l)
		s.reportSynced()
		if !l.first {
			s.o.Listed()
		}
		l, synced = &listing{}, true
		beside.Go(func() {
			if err := guard.Run(func() error { s.check(ctx, stop); return nil }); err != nil {
				stop(err)
			}
		})
	}
	return endedBy(ctx)
}

// reportSynced logs the first complete listing and those after a loss.
func (s *Source) reportSynced() {
	h := s.health.get()
	s.o.Log.Info("store synced", "source", h.Source, "keys", h.Keys, "revision", h.Rev, "problems", h.Problems)
}

// reportLost logs the end of a watch: a new error as a warning, a repeated one at debug
// level.
func (s *Source) reportLost(err error, retryIn time.Duration) {
	level := slog.LevelDebug
	if s.health.record(err) {
		level = slog.LevelWarn
	}
	if stack := guard.Stack(err); stack != "" {
		s.o.Log.Log(context.Background(), level, "a watch panicked", "source", s.o.Name, "stack", stack)
	}
	s.o.Log.Log(context.Background(), level, "store watch ended", "source", s.o.Name, "err", err, "retry_in", retryIn)
}
