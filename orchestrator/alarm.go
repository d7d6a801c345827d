package orchestrator

import "time"

// An alarm is a timer for a point in time.
type alarm struct {
	timer *time.Timer
	at    time.Time // zero: the alarm is off
}

// newAlarm returns an alarm that is off. The caller stops it.
func newAlarm() *alarm {
	a := &alarm{timer: time.NewTimer(time.Hour)}
	a.timer.Stop()
	return a
}

// stop makes the alarm never ring again, unless it is set anew.
func (a *alarm) stop() { a.timer.Stop() }

// set lets the timer fire at a time; zero turns it off.
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
