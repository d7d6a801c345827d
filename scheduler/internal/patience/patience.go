// Package patience has a timer that fires after a time without progress. It is set once per
// period, not once per step of progress, since setting a timer costs as much as a fast step.
package patience

import "time"

// A Timer fires after Period without progress. Progress is a number that grows with each step.
// One goroutine owns a Timer; a Timer with a Period is ready.
type Timer struct {
	Period time.Duration

	timer *time.Timer
	due   time.Time // zero: the timer is not set
	mark  uint64    // the progress when it was set

	now func() time.Time // tests set it; nil: time.Now
}

// C returns the channel of the timer. The timer is set if it is not.
func (p *Timer) C(progress uint64) <-chan time.Time {
	if p.due.IsZero() {
		p.set(progress)
	}
	return p.timer.C
}

// set starts a new period. The timer may fire later than due, so Exhausted compares the clock with due and
// not the channel. It must not fire earlier: Exhausted would be false, and the timer would not fire again. So
// due comes first, however long the goroutine is kept from setting the timer.
func (p *Timer) set(progress uint64) {
	p.due, p.mark = p.clock().Add(p.Period), progress
	if p.timer == nil {
		p.timer = time.NewTimer(p.Period)
	} else {
		p.timer.Reset(p.Period)
	}
}

func (p *Timer) clock() time.Time {
	if p.now != nil {
		return p.now()
	}
	return time.Now()
}

// Exhausted reports whether there was no progress since the timer was set. If there was
// some when the timer has fired, it is set again.
func (p *Timer) Exhausted(progress uint64) bool {
	if p.clock().Before(p.due) {
		return false
	}
	if p.mark != progress {
		p.set(progress)
		return false
	}
	p.due = time.Time{}
	return true
}
