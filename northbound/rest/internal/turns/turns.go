// Package turns bounds how many requests do something at once: each takes a slot of a channel, and
// gives up after a time, with status 503.
package turns

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
)

// ErrBusy is the answer to a request that has got no turn in time.
var ErrBusy = errors.New("too many requests of this kind at once; try again later")

// Take waits for a slot until the given time. The caller releases it.
func Take(ctx context.Context, slots chan<- struct{}, until time.Time) error {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case slots <- struct{}{}:
		return nil
	case <-timer.C:
		return reply.Status(http.StatusServiceUnavailable, ErrBusy)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A Body is the turn of a request to have a large body in memory, until its answer. Of those that change
// or check values, one has it at a time. One goroutine uses it.
type Body struct {
	Slots chan struct{}
	Until time.Time // when the request gives up
	held  bool
}

// Take waits for the turn, once. A nil Body needs none.
func (b *Body) Take(ctx context.Context) error {
	if b == nil || b.held {
		return nil
	}
	err := Take(ctx, b.Slots, b.Until)
	b.held = err == nil
	return err
}

// Leave ends the turn, if it was taken.
func (b *Body) Leave() {
	if b.held {
		<-b.Slots
	}
}
