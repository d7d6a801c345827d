package kvdbsync

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/keyplane/keyplane/internal/guard"
)

// A Life is what a Session of a store with keys that expire has: it lasts as long as
// it is renewed. Sessions embed it; Begin comes first.
type Renewal struct {
	ttl     time.Duration
	renew   func(ctx context.Context) error
	lost    chan struct{}
	lose    func() // closes lost, once
	release context.CancelFunc
	held    sync.WaitGroup

	ending sync.Once
	ended  error // what End returns
}

// Begin begins a life of ttl, for which the store was asked at a certain time, and starts
// the goroutine that renews it until End: three times in ttl, and more often while that
// fails. It is lost when renew returns ErrSessionOver, or has failed for ttl. What
// else ends ctx does not end the life.
func (l *Renewal) Begin(ctx context.Context, ttl time.Duration, asked time.Time, renew func(ctx context.Context) error) {
	l.ttl, l.renew, l.lost = ttl, renew, make(chan struct{})
	l.lose = sync.OnceFunc(func() { close(l.lost) })
	ctx, l.release = context.WithCancel(context.WithoutCancel(ctx))
	l.held.Go(func() { l.hold(ctx, asked.Add(ttl)) })
}

func (l *Renewal) hold(ctx context.Context, end time.Time) {
	timer := time.NewTimer(l.ttl / 3)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		asked := time.Now()
		err := l.renewed(ctx, min(l.ttl/3, time.Until(end)))
		pause := l.ttl / 3
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			end = asked.Add(l.ttl)
		case errors.Is(err, ErrSessionOver), !time.Now().Before(end):
			l.lose()
			return
		default:
			pause = l.ttl / 10
		}
		timer.Reset(min(pause, time.Until(end)))
	}
}

func (l *Renewal) renewed(ctx context.Context, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return guard.Run(func() error { return l.renew(ctx) })
}

// Lost is closed once the life is over: see Session.
func (l *Renewal) Lost() <-chan struct{} { return l.lost }

// Lose says that the store has ended it.
func (l *Renewal) Lose() { l.lose() }

// Over is ErrSessionOver once the life is over.
func (l *Renewal) Over() error {
	select {
	case <-l.lost:
		return ErrSessionOver
	default:
		return nil
	}
}

// End ends the renewing, and then calls end, once; later calls return what that did.
func (l *Renewal) End(end func() error) error {
	l.ending.Do(func() {
		l.release()
		l.held.Wait()
		l.lose()
		l.ended = end()
	})
	return l.ended
}
