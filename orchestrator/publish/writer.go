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

// errLost says that a session ended at the store.
var errLost = errors.New("the store ended the session")

// A writer brings one store to what the ledger says.
type writer struct {
	Options
	queue     *writeQueue
	news      chan []*scheduler.Status
	retry     backoff.Backoff
	nextWrite time.Time // when the store may be written to again
	batchSize int       // of the next batch, at most
	health    health
	// refuses says that a refusal of single keys was logged.
	refusalLogged bool
}

// health is what has been told of the store.
type health int

const (
	unknownHealth health = iota
	working
	failing
)

// run begins one session after the other, until ctx ends, or the store has no place
// for status.
func (w *writer) run(ctx context.Context) {
	for ctx.Err() == nil {
		err := guard.Run(func() error { return w.session(ctx) })
		switch {
		case errors.Is(err, kvdbsync.ErrReadOnly):
			w.Log.Warn("status cannot be published into this store", "source", w.Name, "err", err)
			return
		case ctx.Err() == nil:
			w.backOff(err)
		}
		for ctx.Err() == nil && time.Now().Before(w.nextWrite) {
			w.wait(ctx, nil, w.nextWrite)
		}
	}
}

// session writes in one session, until it is lost or ctx ends.
func (w *writer) session(ctx context.Context) error {
	s, end, err := w.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	held, err := w.list(ctx, s)
	if err != nil {
		return fmt.Errorf("listing: %w", err)
	}
	w.queue.beginSession(held)
	for !sessionEnded(ctx, s) {
		w.step(ctx, s)
	}
	return errLost
}

func (w *writer) list(ctx context.Context, s kvdbsync.Session) ([]kvdbsync.Pair, error) {
	ctx, cancel := context.WithTimeout(ctx, w.Timeout)
	defer cancel()
	return s.List(ctx, w.prefix())
}

// begin begins a session; end takes away what it has written.
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
			o.Log.Debug("published status is left to its time to live", "source", o.Name, "err", err, "ttl", o.TTL)
		}
	}, nil
}

// closing is how long the end of a session may hold up that of the agent.
const closeTimeout = time.Second

// step writes what may be written now, or waits for something to do.
func (w *writer) step(ctx context.Context, s kvdbsync.Session) {
	now := time.Now()
	if now.Before(w.nextWrite) {
		w.wait(ctx, s.Lost(), w.nextWrite)
		return
	}
	writes := w.queue.next(now, w.batchSize)
	if len(writes) > 0 {
		w.write(ctx, s, writes)
		return
	}
	w.logRecovered()
	w.wait(ctx, s.Lost(), w.queue.nextTime(now))
}

// write makes one batch of changes.
func (w *writer) write(ctx context.Context, s kvdbsync.Session, writes []write) {
	pairs := make([]kvdbsync.Pair, len(writes))
	for i, one := range writes {
		pairs[i] = one.Pair
	}
	limited, cancel := context.WithTimeout(ctx, w.Timeout)
	defer cancel()
	began := time.Now()
	if err := s.Apply(limited, pairs); err != nil {
		w.queue.noteFailed(writes)
		if ctx.Err() == nil {
			w.handleFailure(ctx, s, writes, fmt.Errorf("writing %d keys, %s the first: %w", len(pairs), pairs[0].Key, err))
		}
		return
	}
	now := time.Now()
	w.queue.noteWritten(now, writes)
	w.batchSize = min(2*w.batchSize, kvdbsync.MaxApply)
	w.nextWrite = now.Add(max(w.BatchInterval, 4*now.Sub(began)))
	w.logRecovered()
}

// failed finds out whether the store is away or refuses one of the keys. A key that it refuses
// must not keep the others from being written.
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
	w.Log.Log(ctx, level, "the store refuses the status of a key; it is tried again every minute", "source", w.Name, "err", err)
}

// answers tells whether the store takes requests: about keys that do not exist.
func (o Options) storeResponds(ctx context.Context, s kvdbsync.Session, prefix string) bool {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	_, err := s.List(ctx, prefix+"-") // no key begins so
	return err == nil
}

// wait takes in news, or else waits until some time (zero: for ever), or for lost or
// the end of ctx.
func (w *writer) wait(ctx context.Context, lost <-chan struct{}, until time.Time) {
	var alarm <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		alarm = timer.C
	}
	select {
	case news := <-w.news:
		w.update(news)
	case <-alarm:
	case <-lost:
	case <-ctx.Done():
	}
}

func (w *writer) update(news []*scheduler.Status) {
	for _, st := range news {
		w.queue.update(st)
	}
}

// settled tells that all that failed has been made good, if that is news.
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

// fail sees to it that the store is left alone for a while. The first failure is
// news, more of them are for those who look closer.
func (w *writer) backOff(err error) {
	wait := w.retry.Next()
	w.nextWrite = time.Now().Add(wait)
	level := slog.LevelDebug
	if w.health != failing {
		level = slog.LevelWarn
	}
	w.health = failing
	w.Log.Log(context.Background(), level, "status cannot be published", "source", w.Name, "err", err, "retry_in", wait)
}

func sessionEnded(ctx context.Context, s kvdbsync.Session) bool {
	select {
	case <-s.Lost():
		return true
	default:
		return ctx.Err() != nil
	}
}
