package idle

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Attempts is how often a piece of work begins. After an interruption it begins again after firstPause, then after twice
// that, and so on.
const (
	Attempts   = 5
	firstPause = 100 * time.Millisecond
)

// A Runner runs work while the owner of some state has nothing to do.
type Runner struct {
	Offers chan *Work      // the owner takes one from it, if it has no other work
	Ended  <-chan struct{} // closed when the owner has ended
	Err    error           // the error of Run after that
}

// Run calls do when the owner is idle. If do returns ErrInterrupted, it is called again later; Run returns the error of
// the last of the Attempts.
func (r *Runner) Run(ctx context.Context, do func(*Work) error) error {
	for attempt, pause := 1, firstPause; ; attempt, pause = attempt+1, 2*pause {
		err := r.once(ctx, do)
		if !errors.Is(err, ErrInterrupted) || attempt == Attempts {
			return err
		}
		select {
		case <-time.After(pause):
		case <-r.Ended:
			return r.Err
		case <-ctx.Done():
			return fmt.Errorf("waiting for another attempt: %w", ctx.Err())
		}
	}
}

// once calls do once.
func (r *Runner) once(ctx context.Context, do func(*Work) error) error {
	w := newWork(ctx)
	select {
	case r.Offers <- w:
	case <-r.Ended:
		return r.Err
	case <-ctx.Done():
		return fmt.Errorf("waiting for the scheduler to begin: %w", ctx.Err())
	}
	w.begun = time.Now()
	defer close(w.done)
	return do(w)
}
