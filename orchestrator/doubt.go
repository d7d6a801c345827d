package orchestrator

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
)

// A key that is missing from a listing may have been deleted. Or the store was emptied, is
// still being filled, or is another store. So a removal without a delete event is followed
// only if the listing is credible. Otherwise the key is in doubt.
//
// A doubt has a deadline: the grace time after it began. A key that returns, or that is
// deleted by an event, leaves the doubt. For the others a listing decides that begins
// after the deadline. It is requested then, and again until one is complete. A listing
// that began earlier decides nothing. Keys that go missing while others are in doubt are
// in doubt too. They share a second doubt, whose deadline is one grace time after the
// first. So each key stays for at least one and at most two grace times, and one listing
// decides about many keys.
type doubt struct {
	until time.Time
	keys  map[string]bool
}

// An absence counts the keys that are missing from a source without a delete event.
type absence struct {
	distrust error // why the source may show another dataset
	had      int   // keys that the source had
	absent   int   // of these: newly missing keys
	waiting  int   // of these: missing keys that are in doubt already
	shown    int   // keys that the source shows, or a part of them
}

// withholdDoubtful removes implausible removals from a change and puts their keys in
// doubt. It adds the removals that the listing of the change has confirmed.
func (o *Orchestrator) withholdDoubtful(l *source, c *kvdbsync.Change) {
	var absent []string
	found := absence{distrust: c.Distrust}
	for _, e := range c.Events {
		switch {
		case !isAbsent(e):
			l.endDoubt(e.Key)
			found.shown += count(e)
		case l.entries.Get(e.Key) != nil && !l.isDoubted(e.Key):
			absent = append(absent, e.Key)
		}
	}
	decided := l.decided(c)
	found.had, found.absent, found.waiting = l.entries.Len()-len(decided), len(absent), l.doubtedKeys()
	found.shown += found.had - found.absent - found.waiting
	if why := o.reasonToDoubt(found); why != "" {
		o.putInDoubt(l, absent, found.had, why)
	}
	if len(l.doubts) > 0 {
		c.Events = slices.DeleteFunc(slices.Clone(c.Events), func(e kvdbsync.Event) bool { return isAbsent(e) && l.isDoubted(e.Key) })
	}
	if len(decided) > 0 {
		o.log.Warn("source still lacks keys; removing their items", "source", l.Name, "keys", len(decided))
		c.Events = append(c.Events, removals(decided)...)
	}
}

// isAbsent reports whether the key is only missing from a listing: nobody has seen its
// removal.
func isAbsent(e kvdbsync.Event) bool { return e.Absent && e.Value == nil && e.Err == nil }

// count is the number of keys that an event shows.
func count(e kvdbsync.Event) int {
	if e.Value == nil && e.Err == nil {
		return 0
	}
	return 1
}

// reasonToDoubt returns why missing keys are not taken as deleted; empty: they are.
func (o *Orchestrator) reasonToDoubt(f absence) string {
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

// putInDoubt keeps the keys until a listing decides.
func (o *Orchestrator) putInDoubt(l *source, keys []string, had int, why string) {
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
	o.log.Warn("source lacks keys that may not have been deleted; keeping their items for now",
		"source", l.Name, "keys", len(keys), "of", had, "because", why, "for", until.Sub(now).Round(time.Millisecond))
}

// deadline is the deadline of keys that are put in doubt now: one to two grace times from
// now.
func (l *source) deadline(now time.Time, grace time.Duration) time.Time {
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

// decided removes the keys from doubt about which the listing of the change decides, and
// returns them.
func (l *source) decided(c *kvdbsync.Change) map[string]bool {
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

// endDoubt removes a key from its doubt.
func (l *source) endDoubt(key string) {
	for i, d := range l.doubts {
		if delete(d.keys, key); len(d.keys) == 0 {
			l.doubts = slices.Delete(l.doubts, i, i+1)
			return
		}
	}
}

// isDoubted reports whether the removal of the key is withheld.
func (l *source) isDoubted(key string) bool {
	return slices.ContainsFunc(l.doubts, func(d *doubt) bool { return d.keys[key] })
}

// doubtedKeys is the number of keys in doubt.
func (l *source) doubtedKeys() (n int) {
	for _, d := range l.doubts {
		n += len(d.keys)
	}
	return n
}

// due is when to request a listing because of doubts; zero: never.
func (l *source) due(grace time.Duration) time.Time {
	switch {
	case len(l.doubts) == 0:
		return time.Time{}
	case l.asked.Before(l.doubts[0].until):
		return l.doubts[0].until
	}
	return l.asked.Add(grace) // the last requested listing may have failed
}

// nextDue is the earliest due time of all sources; zero: none.
func (o *Orchestrator) nextDue() (next time.Time) {
	for _, l := range o.sources {
		if due := l.due(o.grace); !due.IsZero() && (next.IsZero() || due.Before(next)) {
			next = due
		}
	}
	return next
}

// relist requests a listing from each source that is due.
func (o *Orchestrator) relist(now time.Time) {
	for _, l := range o.sources {
		if due := l.due(o.grace); due.IsZero() || due.After(now) {
			continue
		}
		l.asked = now
		if source, ok := l.Feed.(relister); ok {
			source.Relist()
		}
	}
}
