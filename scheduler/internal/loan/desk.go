package loan

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Attempts is the number of loans for one piece of work. After an interruption the work begins
// again after firstPause, then after twice that, and so on.
const (
	Attempts   = 5
	firstPause = 100 * time.Millisecond
)

// A Desk is where borrowers meet the owner.
type Desk struct {
	Offers chan *Loan      // the owner takes a loan from it, if it has no other work
	Ended  <-chan struct{} // closed when the owner has ended
	Err    error           // the error of borrowers after that
}

// borrow waits until the owner takes the loan.
func (d *Desk) borrow(ctx context.Context) (*Loan, error) {
	l := New(ctx)
	select {
	case d.Offers <- l:
		l.Begin()
		return l, nil
	case <-d.Ended:
		return nil, d.Err
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for the scheduler to begin: %w", ctx.Err())
	}
}

// Use calls use with a loan, which it gives back in any case. If use returns ErrCalledIn, it is
// called again later; Use returns the error of the last of the Attempts.
func (d *Desk) Use(ctx context.Context, use func(*Loan) error) error {
	for attempt, pause := 1, firstPause; ; attempt, pause = attempt+1, 2*pause {
		err := d.once(ctx, use)
		if !errors.Is(err, ErrCalledIn) || attempt == Attempts {
			return err
		}
		select {
		case <-time.After(pause):
		case <-d.Ended:
			return d.Err
		case <-ctx.Done():
			return fmt.Errorf("waiting for another attempt: %w", ctx.Err())
		}
	}
}

// once calls use with one loan.
func (d *Desk) once(ctx context.Context, use func(*Loan) error) error {
	l, err := d.borrow(ctx)
	if err != nil {
		return err
	}
	defer l.GiveBack()
	return use(l)
}
