package retry

import (
	"maps"
	"time"
)

// The bounds of flapping.
const (
	After        = 5
	Within       = time.Minute
	LongestPause = time.Minute

	firstPause = time.Second
)

// Flaps are the keys whose values were lost or changed recently. They know only keys and times, and have no clock.
//
// A value flaps after [After] losses within [Within]; a change counts as a loss. From then on
// there is a pause before it is put back. Each further loss doubles the pause, up to [LongestPause]. A
// value that then exists for [Within] after its pause flaps no longer. Without the
// pauses, two programs that both insist on an item would replace it without end.
//
// The zero value is empty.
type Flaps struct {
	byKey map[string]*flap
	swept time.Time
}

// A flap is what is known of one value.
type flap struct {
	losses []time.Time   // of the last minute, while it does not flap
	last   time.Time     // time of the last loss
	pause  time.Duration // before the next creation; 0: it does not flap
}

// Lost records that a value vanished or changed by itself. pause is the time before it is created
// again; begun reports that it flaps from now on.
func (fs *Flaps) Lost(key string, now time.Time) (pause time.Duration, begun bool) {
	fs.dropOld(now)
	f := fs.byKey[key]
	if f == nil || f.over(now) {
		f = &flap{}
		fs.byKey[key] = f
	}
	f.last = now
	if f.pause > 0 {
		f.pause = min(2*f.pause, LongestPause)
		return f.pause, false
	}
	for len(f.losses) > 0 && now.Sub(f.losses[0]) >= Within {
		f.losses = f.losses[1:]
	}
	f.losses = append(f.losses, now)
	if len(f.losses) < After {
		return 0, false
	}
	*f = flap{last: now, pause: firstPause}
	return f.pause, true
}

// Pause returns the present pause of a flapping value; 0: it does not flap.
func (fs *Flaps) Pause(key string, now time.Time) time.Duration {
	if f := fs.byKey[key]; f != nil && !f.over(now) {
		return f.pause
	}
	return 0
}

// Forget forgets the losses of a value that the agent itself has removed.
func (fs *Flaps) Forget(key string) { delete(fs.byKey, key) }

// over reports whether the value has existed long enough since its last loss.
func (f *flap) over(now time.Time) bool { return now.Sub(f.last) >= f.pause+Within }

// dropOld forgets the values that flap no longer, at most once a minute.
func (fs *Flaps) dropOld(now time.Time) {
	if fs.byKey == nil {
		fs.byKey = map[string]*flap{}
	}
	if now.Sub(fs.swept) < Within {
		return
	}
	fs.swept = now
	maps.DeleteFunc(fs.byKey, func(_ string, f *flap) bool { return f.over(now) })
}
