package cli

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestSignalsEndCommandsThatHang cancels a command that notices it, and one that reads a pipe
// into which nobody writes.
func TestSignalsEndCommandsThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		never := make(chan struct{})
		defer close(never)
		for _, test := range []struct {
			name string
			run  func() int
			code int
			took time.Duration
		}{
			{"it ends by itself", func() int { return 7 }, 7, 0},
			{"it notices", func() int { <-ctx.Done(); return 3 }, 3, 0},
			{"it hangs", func() int { <-never; return 0 }, exitKilled, grace},
		} {
			if test.took > 0 || test.code == 3 {
				cancel()
			}
			begun := time.Now()
			if code, took := within(ctx, test.run), time.Since(begun); code != test.code || took != test.took {
				t.Errorf("%s: exit code %d after %v, want %d after %v", test.name, code, took, test.code, test.took)
			}
		}
	})
}
