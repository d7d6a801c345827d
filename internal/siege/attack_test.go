package siege

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keyplane/keyplane/internal/testkit"
)

// An attack harms one target until its context ends.
type attack struct {
	name string
	// run strikes again and again, and calls target.struck for each strike. The refusal of
	// a strike is no error: an error says that the attack itself is broken.
	run func(ctx context.Context, t *target) error
}

// A front is an attack that takes place.
type front struct {
	attack
	strikes atomic.Int64
	begun   chan struct{} // closed by the first strike
}

func newFront(a attack) *front { return &front{attack: a, begun: make(chan struct{})} }

// strike counts one.
func (f *front) strike() {
	if f.strikes.Add(1) == 1 {
		close(f.begun)
	}
}

// chosen are the attacks whose names match the flag.
func chosen(t testing.TB, all []attack) (out []*front) {
	t.Helper()
	only, err := regexp.Compile(*opts.only)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if only.MatchString(a.name) {
			out = append(out, newFront(a))
		}
	}
	return out
}

// last returns a context that ends after some time, and not before each attack has struck, or is not going to. A hostile
// server strikes when the agent connects: the longer the agent has found no server, the later it tries again.
func last(ctx context.Context, length time.Duration, fronts []*front) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(ctx)
	go func() {
		defer stop()
		late := time.After(length + testkit.Patience)
		done := time.After(length)
		for _, f := range fronts {
			select {
			case <-f.begun:
			case <-late:
				return // wage says which has not struck
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-done:
		case <-ctx.Done():
		}
	}()
	return ctx, stop
}

// wage runs all attacks at once until ctx ends.
func wage(ctx context.Context, t *target, fronts []*front) error {
	errs, begun := make([]error, len(fronts)), time.Now()
	var all sync.WaitGroup
	for i, f := range fronts {
		all.Go(func() {
			mine := *t
			mine.struck = f.strike
			err := f.run(ctx, &mine)
			switch {
			case err != nil && ctx.Err() == nil:
				errs[i] = fmt.Errorf("attack %q: %w", f.name, err)
			case f.strikes.Load() == 0:
				errs[i] = fmt.Errorf("attack %q has not struck within %v: the agent has not connected", f.name, time.Since(begun).Round(time.Second))
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// every strikes at once and then once in each period, until ctx ends. A strike gets its
// number, from 0.
func (t *target) every(ctx context.Context, period time.Duration, strike func(n int) error) error {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for n := 0; ; n++ {
		t.struck() // now, as an agent under attack may take longer to answer than the attack lasts
		if err := strike(n); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// together runs functions until all have ended.
func together(run ...func() error) error {
	errs := make([]error, len(run))
	var all sync.WaitGroup
	for i, f := range run {
		all.Go(func() { errs[i] = f() })
	}
	all.Wait()
	return errors.Join(errs...)
}
