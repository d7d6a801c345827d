package backoff_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/internal/backoff"
)

func TestBoundsDoubleUpToMax(t *testing.T) {
	b := backoff.Backoff{Min: 100, Max: 450}
	for round := range 2 {
		for i, bound := range []time.Duration{100, 200, 400, 450, 450} {
			if longest := i > 2; b.Longest() != longest {
				t.Errorf("round %d, wait %d: longest is %v", round, i, b.Longest())
			}
			if wait := b.Next(); wait < 0 || wait >= bound {
				t.Errorf("round %d, wait %d is %d, want it below %d", round, i, wait, bound)
			}
		}
		b.Reset()
	}
}

// A Max that was lowered bounds the next wait.
func TestALowerMaxCountsAtOnce(t *testing.T) {
	for range 20 { // a random wait may be short by chance
		b := backoff.Backoff{Min: time.Millisecond, Max: 30 * time.Second}
		for !b.Longest() {
			b.Next()
		}
		b.Max = time.Second
		if wait := b.Next(); wait >= b.Max {
			t.Errorf("the wait is %v, want it below %v", wait, b.Max)
		}
	}
}

func TestSleepEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := time.Now()
		if !backoff.Sleep(ctx, time.Second/2) || time.Since(begun) != time.Second/2 {
			t.Errorf("slept for %v", time.Since(begun))
		}
		if backoff.Sleep(ctx, time.Hour) || time.Since(begun) != time.Second {
			t.Errorf("slept for %v", time.Since(begun))
		}
	})
}
