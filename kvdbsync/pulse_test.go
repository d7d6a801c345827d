package kvdbsync_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
)

// An answer may take as long as it likes, if only some of it comes in time again and again.
func TestPulseBoundsSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p kvdbsync.Pulse
		silent := errors.New("silent")
		ctx, end := p.Bound(t.Context(), 3*time.Second, silent)
		defer end()
		for range 10 {
			elapse(2 * time.Second)
			if ctx.Err() != nil {
				t.Fatalf("ended while there was a beat: %v", context.Cause(ctx))
			}
			p.Beat()
		}
		begun := time.Now()
		<-ctx.Done()
		if took := time.Since(begun); took != 3*time.Second || !errors.Is(context.Cause(ctx), silent) {
			t.Errorf("ended %v after the last beat for %v; want 3s, %v", took, context.Cause(ctx), silent)
		}
	})
}

// What was heard before a question says nothing about the answer.
func TestPulseOfBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p kvdbsync.Pulse
		begun := time.Now()
		if p.After(begun) || p.Quiet(begun) != 0 {
			t.Error("a pulse without a beat")
		}
		p.Beat()
		elapse(time.Second)
		begun = time.Now()
		elapse(time.Second)
		if p.After(begun) || p.Quiet(begun) != time.Second {
			t.Errorf("heard since: %v, quiet for %v", p.After(begun), p.Quiet(begun))
		}
		ctx, end := p.Bound(t.Context(), time.Second, errors.New("silent"))
		end()
		synctest.Wait()
		if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
			t.Errorf("ended for %v", cause)
		}
	})
}
