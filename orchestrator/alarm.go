package orchestrator

import "time"

// An alarm is a timer that is set to moments.
type alarm struct {
	timer *time.Timer
	at    time.Time // zero: it is not set
}

// newAlarm returns one that is not set. The caller stops it.
func newAlarm() *alarm {
	a := &alarm{timer: time.NewTimer(time.Hour)}
	a.timer.Stop()
	return a
}

func (a *alarm) stop() { a.timer.Stop() }

// set has the timer fire at a moment, or not at all if that is zero.
func (a *alarm) set(at time.Time) {
	if at.Equal(a.at) {
		return
	}
	if a.at = at; at.IsZero() {
		a.timer.Stop()
		return
	}
	a.timer.Reset(time.Until(at))
}
