package counters

import "time"

// Timing has the durations of calls; see stats.Timing.
type Timing struct {
	Count           uint64
	Total, Min, Max time.Duration
	Buckets         [Buckets]uint64
}

// Buckets is the number of buckets of a Timing.
const Buckets = 16

// Bounds returns the upper bounds of the buckets.
func Bounds() [Buckets]time.Duration {
	const us, ms = time.Microsecond, time.Millisecond
	return [...]time.Duration{
		50 * us, 100 * us, 250 * us, 500 * us, 1 * ms, 2500 * us, 5 * ms, 10 * ms,
		25 * ms, 50 * ms, 100 * ms, 250 * ms, 1000 * ms, 2500 * ms, 10 * time.Second, 30 * time.Second,
	}
}

// add counts one call. It counts in one bucket only; a reader that wants cumulative
// buckets adds them up.
func (t *Timing) add(d time.Duration) {
	if t.Count == 0 || d < t.Min {
		t.Min = d
	}
	t.Count++
	t.Total += d
	t.Max = max(t.Max, d)
	for i, bound := range Bounds() {
		if d <= bound {
			t.Buckets[i]++
			return
		}
	}
}
