package kvdbsync

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/keyplane/keyplane/internal/guard"
)

// A Renewal keeps the expiring keys of a session alive by renewing them. Sessions embed
// it, and call Begin first.
type Renewal struct {
	ttl     time.Duration
	renew   func(ctx context.Context) error
	lost    chan struct{}
	lose    func() // closes lost, once
	release context.CancelFunc
	held    sync.WaitGroup
	end     atomic.Pointer[time.Time] // the store may end the session then

	ending sync.Once
	ended  error // the result of End
}

// Begin starts the goroutine that renews the keys until End, three times per ttl, and more
// often after a failure. asked is the time at which the store was asked for ttl. The
// Renewal is lost if renew returns ErrSessionOver, or fails for ttl. The end of ctx does
// not end it.
func (l *Renewal) Begin(ctx context.Context, ttl time.Duration, asked time.Time, renew func(ctx context.Context) error) {
	l.ttl, l.renew, l.lost = ttl, renew, make(chan struct{})
	l.lose = sync.OnceFunc(func() { close(l.lost) })
	ctx, l.release = context.WithCancel(context.WithoutCancel(ctx))
	l.extend(asked)
	l.held.Go(func() { l.hold(ctx) })
}

// extend notes that the store was asked at a time, and has granted the TTL.
func (l *Renewal) extend(asked time.Time) { l.end.Store(new(asked.Add(l.ttl))) }

// expired reports whether the store may have ended the session. While a machine sleeps its monotonic
// clock stands still, so the time of day counts as well: if that has leapt, a session is lost too early.
func (l *Renewal) expired() bool {
	now, end := time.Now(), *l.end.Load()
	return !now.Before(end) || !now.Round(0).Before(end.Round(0))
}

// hold renews every third of the TTL, so two attempts may fail without a loss. It ends
// with ctx, or when the lease has surely expired.
func (l *Renewal) hold(ctx context.Context) {
	timer := time.NewTimer(l.ttl / 3)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		asked := time.Now()
		if l.Over() != nil {
			return
		}
		err := l.renewed(ctx, min(l.ttl/3, time.Until(*l.end.Load())))
		pause := l.ttl / 3
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			l.extend(asked)
		case errors.Is(err, ErrSessionOver), l.expired():
			l.lose()
			return
		default:
			pause = l.ttl / 10
		}
		timer.Reset(min(pause, time.Until(*l.end.Load())))
	}
}

// renewed makes one attempt; a panic of the connector is an error.
func (l *Renewal) renewed(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return guard.Run(func() error { return l.renew(ctx) })
}

// Lost is closed when the session is lost or ended; see Session.
func (l *Renewal) Lost() <-chan struct{} { return l.lost }

// Lose records that the store has ended the session.
func (l *Renewal) Lose() { l.lose() }

// Over returns ErrSessionOver if the session is lost or ended. A process that was paused finds here
// that its session may be over, before it asks the store.
func (l *Renewal) Over() error {
	if l.expired() {
		l.lose()
	}
	select {
	case <-l.lost:
		return ErrSessionOver
	default:
		return nil
	}
}

// End stops the goroutine and calls end once. Later calls return the same result.
func (l *Renewal) End(end func() error) error {
	l.ending.Do(func() {
		l.release()
		l.held.Wait()
		l.lose()
		l.ended = end()
	})
	return l.ended
}
