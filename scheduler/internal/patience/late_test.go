package patience

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestSetLate: the goroutine is kept from running for a moment while it sets the timer. When the timer fires,
// the period is over: it fires once, so whoever waits for it would wait for ever otherwise.
func TestSetLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := 10 * time.Millisecond
		p := Timer{Period: time.Second, now: func() time.Time {
			<-time.After(late)
			late = 0
			return time.Now()
		}}
		<-p.C(1)
		if !p.Exhausted(1) {
			t.Error("the timer has fired, and the period is not over")
		}
	})
}
