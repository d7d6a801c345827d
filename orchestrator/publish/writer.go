package publish

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/keyplane/keyplane/internal/backoff"
	"github.com/keyplane/keyplane/internal/guard"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/scheduler"
)

// errLost reports that the store ended the session.
var errLost = errors.New("the store ended the session")

// A writer executes the writes of the queue in one store. Its goroutine owns the
// queue.
type writer struct {
	Options
	queue     *writeQueue
	watch     *scheduler.Watch[*scheduler.Status]
	retry     backoff.Backoff
	nextWrite time.Time // no write before this time
	doubted   bool      // the store may have other texts than were written
	batchSize int       // maximum size of the next batch; halved to find refused keys
	health    health
	// refusalLogged: a refusal of single keys was logged, so that recovery is logged
	// too.
	refusalLogged bool
}

// health is the state of the store that was logged last. Each change is logged once.
type health int

const (
	unknownHealth health = iota
	working
	failing
)

// run writes in one session after the other, until ctx ends or the store is
// read-only.
func (w *writer) run(ctx context.Context) {
	for ctx.Err() == nil {
		err := guard.Run(func() error { return w.session(ctx) })
		switch {
		case errors.Is(err, kvdbsync.ErrReadOnly):
			w.Log.Warn("cannot publish status into this store: it is read-only", "source", w.Name, "err", err)
			return
		case ctx.Err() == nil:
			w.backOff(err)
		}
		for ctx.Err() == nil && time.Now().Before(w.nextWrite) {
			w.wait(ctx, nil, w.nextWrite)
		}
	}
}

// session writes in one session until it is lost or ctx ends.
func (w *writer) session(ctx context.Context) error {
	s, end, err := w.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	w.doubted = false
	held, err := w.list(ctx, s, w.prefix())
	if err != nil {
		return err
	}
	w.queue.beginSession(held)
	for !sessionEnded(ctx, s) {
		if err := w.step(ctx, s); err != nil {
			return err
		}
	}
	return errLost
}

// begin opens a session. The timeout covers only the opening: the session's context
// lasts until end, which removes the session's keys.
func (o Options) begin(ctx context.Context) (s kvdbsync.Session, end func(), err error) {
	lasting, cancel := context.WithCancel(ctx)
	slow := time.AfterFunc(o.Timeout, cancel)
	s, err = o.Store.Session(lasting, o.TTL)
	slow.Stop()
	if err != nil {
		cancel()
		return nil, nil, fmt.Errorf("beginning a session: %w", err)
	}
	return s, func() {
		defer cancel()
		ctx, done := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer done()
		if err := guard.Run(func() error { return s.Close(ctx) }); err != nil {
			o.Log.Debug("published status remains until its time to live ends", "source", o.Name, "err", err, "ttl", o.TTL)
		}
	}, nil
}

// listTimeout bounds a listing. It is long: Redis reads all keys of its database, also those of
// other agents. A connector ends a listing itself when its store is silent.
const listTimeout = 10 * time.Minute

// list returns the pairs that the store has under a prefix. The listing ends early if the session
// is lost.
func (o Options) list(ctx context.Context, s kvdbsync.Session, prefix string) ([]kvdbsync.Pair, error) {
	limited, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	go func() {
		select {
		case <-s.Lost():
			cancel()
		case <-limited.Done():
		}
	}()
	pairs, err := s.List(limited, prefix)
	switch {
	case sessionEnded(ctx, s):
		return nil, errLost
	case err != nil:
		return nil, fmt.Errorf("listing: %w", err)
	}
	return pairs, nil
}

// closeTimeout bounds the end of a session, so that a store cannot delay the end of
// the agent.
const closeTimeout = time.Second

// step writes one batch, or waits for work. An error ends the session.
func (w *writer) step(ctx context.Context, s kvdbsync.Session) error {
	now := time.Now()
	if now.Before(w.nextWrite) {
		w.wait(ctx, s.Lost(), w.nextWrite)
		return nil
	}
	if w.doubted {
		return w.compare(ctx, s)
	}
	writes := w.queue.next(now, w.batchSize)
	if len(writes) > 0 {
		return w.write(ctx, s, writes)
	}
	w.logRecovered()
	w.wait(ctx, s.Lost(), w.queue.nextTime(now))
	return nil
}

// compare finds out which texts the store has lost.
func (w *writer) compare(ctx context.Context, s kvdbsync.Session) error {
	w.doubted = false
	held, err := w.list(ctx, s, w.prefix())
	if err != nil {
		return err
	}
	w.queue.compare(held)
	return nil
}

// write executes one batch. After an error of the store, the result of the batch is unknown.
// write returns only an error that ends the session.
func (w *writer) write(ctx context.Context, s kvdbsync.Session, writes []write) error {
	pairs := make([]kvdbsync.Pair, len(writes))
	for i, one := range writes {
		pairs[i] = one.Pair
	}
	limited, cancel := context.WithTimeout(ctx, w.Timeout)
	defer cancel()
	began := time.Now()
	if err := s.Apply(limited, pairs); err != nil {
		w.queue.noteFailed(writes)
		err = fmt.Errorf("writing %d keys, %s the first: %w", len(pairs), pairs[0].Key, err)
		if endsSession(ctx, s, err) {
			return err // the next session writes all statuses
		}
		w.handleFailure(ctx, s, writes, err)
		return nil
	}
	now := time.Now()
	w.queue.noteWritten(now, writes)
	w.batchSize = min(2*w.batchSize, kvdbsync.MaxApply)
	w.nextWrite = now.Add(max(w.BatchInterval, 4*now.Sub(began)))
	w.logRecovered()
	return nil
}

// handleFailure distinguishes a store that is unreachable from one that refuses a
// key. A refused key must not block the others, so the batch is halved until it is
// found.
func (w *writer) handleFailure(ctx context.Context, s kvdbsync.Session, writes []write, err error) {
	began := time.Now()
	if !w.storeResponds(ctx, s, w.prefix()) {
		w.backOff(err)
		return
	}
	now := time.Now()
	w.nextWrite = now.Add(max(w.BatchInterval, 4*now.Sub(began)))
	if len(writes) > 1 {
		w.batchSize = len(writes) / 2
		return
	}
	w.queue.noteRefused(now, writes[0])
	level := slog.LevelDebug
	if !w.refusalLogged {
		w.refusalLogged, level = true, slog.LevelWarn
	}
	w.Log.Log(ctx, level, "the store refuses the status of a key; it is retried every minute", "source", w.Name, "err", err)
}

// storeResponds sends a cheap request to find out whether the store works.
func (o Options) storeResponds(ctx context.Context, s kvdbsync.Session, prefix string) bool {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	_, err := s.Get(ctx, prefix+"-") // no key is that
	return err == nil || errors.Is(err, kvdbsync.ErrNotFound)
}

// wait receives statuses, or returns at a given time (zero: never), when the store was listed anew or the
// session is lost, or when ctx ends.
func (w *writer) wait(ctx context.Context, lost <-chan struct{}, until time.Time) {
	var alarm <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		alarm = timer.C
	}
	select {
	case <-w.watch.Ready():
		w.update()
	case <-w.Listed:
		w.doubted = true
	case <-alarm:
	case <-lost:
	case <-ctx.Done():
	}
}

// update passes the changed statuses to the queue.
func (w *writer) update() {
	for _, st := range w.watch.Take() {
		w.queue.update(st)
	}
}

// logRecovered logs that all earlier failures are resolved.
func (w *writer) logRecovered() {
	if w.queue.failed > 0 {
		return
	}
	w.retry.Reset()
	if w.refusalLogged && w.queue.refusedRows == 0 {
		w.refusalLogged = false
		w.Log.Info("the store takes the status of all keys", "source", w.Name)
	}
	if w.health != working {
		w.Log.Info("status is published", "source", w.Name, "below", w.prefix())
		w.health = working
	}
}

// backOff delays the next request. The first failure is a warning, later ones are at
// debug level.
func (w *writer) backOff(err error) {
	wait := w.retry.Next()
	w.nextWrite = time.Now().Add(wait)
	level := slog.LevelDebug
	if w.health != failing {
		level = slog.LevelWarn
	}
	w.health = failing
	w.Log.Log(context.Background(), level, "cannot publish status", "source", w.Name, "err", err, "retry_in", wait)
}

// endsSession reports whether a write failed because the session is over. Then its error says
// nothing about the keys.
func endsSession(ctx context.Context, s kvdbsync.Session, err error) bool {
	return errors.Is(err, kvdbsync.ErrSessionOver) || sessionEnded(ctx, s)
}

// sessionEnded reports whether the session is lost or ctx has ended.
func sessionEnded(ctx context.Context, s kvdbsync.Session) bool {
	select {
	case <-s.Lost():
		return true
	default:
		return ctx.Err() != nil
	}
}
