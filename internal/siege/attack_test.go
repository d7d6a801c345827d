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
			out = append(out, &front{attack: a})
		}
	}
	return out
}

// wage runs all attacks at once until ctx ends.
func wage(ctx context.Context, t *target, fronts []*front) error {
	errs := make([]error, len(fronts))
	var all sync.WaitGroup
	for i, f := range fronts {
		all.Go(func() {
			mine := *t
			mine.struck = func() { f.strikes.Add(1) }
			err := f.run(ctx, &mine)
			switch {
			case err != nil && ctx.Err() == nil:
				errs[i] = fmt.Errorf("attack %q: %w", f.name, err)
			case f.strikes.Load() == 0:
				errs[i] = fmt.Errorf("attack %q never struck: %w", f.name, err)
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
