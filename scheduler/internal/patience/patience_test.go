package patience_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/scheduler/internal/patience"
)

// The timer is exhausted after a period without progress, and is set again after progress.
func TestTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := patience.Timer{Period: 100 * time.Millisecond}
		begun := time.Now()
		fired := p.C(1)
		<-time.After(50 * time.Millisecond)
		if p.C(2) != fired || p.Exhausted(2) {
			t.Error("the timer was set twice, or fired early")
		}
		<-fired
		if p.Exhausted(2) {
			t.Error("exhausted in spite of progress")
		}
		<-p.C(2)
		if took := time.Since(begun); !p.Exhausted(2) || took != 200*time.Millisecond {
			t.Errorf("not exhausted after %s", took)
		}
	})
}
