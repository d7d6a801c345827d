package orchestrator

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
)

// A key that is missing from a listing was perhaps deleted; or the store was emptied, is
// still being filled, or is another one. So a removal that nobody is known to have
// asked for is obeyed only if the listing is credible, and otherwise put in doubt.
//
// A doubt has a deadline, the grace time after it began. It ends for each key that
// returns, or that somebody deletes. For the others a listing decides that begins
// after the deadline: it is asked for then, and again until one is complete. A listing
// that began earlier decides nothing, however late it is complete. Keys that go
// missing while others are in doubt are in doubt, too. They share a doubt of their own,
// whose deadline is the grace time after the first one's. So each key has at least
// the grace time and at most twice that, and one listing serves many keys.
type doubt struct {
	until time.Time
	keys  map[string]bool
}

// A finding is what a source lacks, as far as nobody is known to have deleted it.
type finding struct {
	distrust error // why what the source shows may be other data than before
	had      int   // keys that the source had
	absent   int   // of these: keys that are missing, and were there before
	waiting  int   // of these: keys that are missing, and in doubt already
	shown    int   // keys that the source shows, or some of them
}

// doubtful takes removals that are not credible out of a change and puts their keys in
// doubt, and adds the removals of those keys in doubt that its listing has decided about.
func (o *Orchestrator) doubtful(l *layer, c *kvdbsync.Change) {
	var absent []string
	found := finding{distrust: c.Distrust}
	for _, e := range c.Events {
		switch {
		case !isAbsent(e):
			l.trust(e.Key)
			found.shown += count(e)
		case l.entries[e.Key] != nil && !l.isDoubted(e.Key):
			absent = append(absent, e.Key)
		}
	}
	decided := l.decided(c)
	found.had, found.absent, found.waiting = len(l.entries)-len(decided), len(absent), l.doubtedKeys()
	found.shown += found.had - found.absent - found.waiting
	if why := o.disbelieve(found); why != "" {
		o.putInDoubt(l, absent, found.had, why)
	}
	if len(l.doubts) > 0 {
		c.Events = slices.DeleteFunc(slices.Clone(c.Events), func(e kvdbsync.Event) bool { return isAbsent(e) && l.isDoubted(e.Key) })
	}
	if len(decided) > 0 {
		o.log.Warn("keys of a source are still missing: their items are removed", "source", l.Name, "keys", len(decided))
		c.Events = append(c.Events, removals(decided)...)
	}
}

func isAbsent(e kvdbsync.Event) bool { return e.Absent && e.Value == nil && e.Err == nil }

// count is how many keys an event shows.
func count(e kvdbsync.Event) int {
	if e.Value == nil && e.Err == nil {
		return 0
	}
	return 1
}

// disbelieve returns why keys that are absent are not believed to be deleted; empty:
// they are.
func (o *Orchestrator) disbelieve(f finding) string {
	gone := f.absent + f.waiting
	switch {
	case f.absent == 0:
		return ""
	case f.distrust != nil:
		return f.distrust.Error()
	case f.waiting > 0:
		return "other keys are in doubt"
	case f.shown == 0:
		return "all keys are missing"
	case gone >= o.graceKeys && 100*gone >= o.gracePercent*f.had:
		return fmt.Sprintf("%d of %d keys are missing at once", gone, f.had)
	}
	return ""
}

// putInDoubt has keys stay until a listing decides.
func (o *Orchestrator) putInDoubt(l *layer, keys []string, had int, why string) {
	now := time.Now()
	until := l.deadline(now, o.grace)
	at := slices.IndexFunc(l.doubts, func(d *doubt) bool { return d.until.Equal(until) })
	if at < 0 {
		at = len(l.doubts)
		l.doubts = append(l.doubts, &doubt{until: until, keys: map[string]bool{}})
	}
	for _, key := range keys {
		l.doubts[at].keys[key] = true
	}
	o.log.Warn("keys of a source are missing, but may not have been deleted: their items stay for now",
		"source", l.Name, "keys", len(keys), "of", had, "because", why, "for", until.Sub(now).Round(time.Millisecond))
}

// deadline is that of keys which are put in doubt now: between one and two times the
// grace time away.
func (l *layer) deadline(now time.Time, grace time.Duration) time.Time {
	for _, d := range l.doubts {
		if !d.until.Before(now.Add(grace)) {
			return d.until
		}
	}
	for _, d := range l.doubts {
		if d.until.After(now) {
			return d.until.Add(grace)
		}
	}
	return now.Add(grace)
}

// decided takes the keys out of doubt that a listing of the change has not shown, and that
// it may decide about.
func (l *layer) decided(c *kvdbsync.Change) map[string]bool {
	if !c.Resynced {
		return nil
	}
	out := map[string]bool{}
	l.doubts = slices.DeleteFunc(l.doubts, func(d *doubt) bool {
		if c.Listing.Began.Before(d.until) {
			return false
		}
		maps.Copy(out, d.keys)
		return true
	})
	return out
}

// trust takes a key out of doubt.
func (l *layer) trust(key string) {
	for i, d := range l.doubts {
		if delete(d.keys, key); len(d.keys) == 0 {
			l.doubts = slices.Delete(l.doubts, i, i+1)
			return
		}
	}
}

func (l *layer) isDoubted(key string) bool {
	return slices.ContainsFunc(l.doubts, func(d *doubt) bool { return d.keys[key] })
}

// doubtedKeys is how many keys are in doubt.
func (l *layer) doubtedKeys() (n int) {
	for _, d := range l.doubts {
		n += len(d.keys)
	}
	return n
}

// due is when to ask for a listing because of the doubts; zero: they need none.
func (l *layer) due(grace time.Duration) time.Time {
	switch {
	case len(l.doubts) == 0:
		return time.Time{}
	case l.asked.Before(l.doubts[0].until):
		return l.doubts[0].until
	}
	return l.asked.Add(grace) // the listing that was asked for may have failed
}

// nextDue is when the first of the layers is due; zero: none is.
func (o *Orchestrator) nextDue() (next time.Time) {
	for _, l := range o.layers {
		if due := l.due(o.grace); !due.IsZero() && (next.IsZero() || due.Before(next)) {
			next = due
		}
	}
	return next
}

// relist asks the layers that are due for a listing.
func (o *Orchestrator) relist(now time.Time) {
	for _, l := range o.layers {
		if due := l.due(o.grace); due.IsZero() || due.After(now) {
			continue
		}
		l.asked = now
		if source, ok := l.Input.(interface{ Relist() }); ok {
			source.Relist()
		}
	}
}
