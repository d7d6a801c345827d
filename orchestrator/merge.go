package orchestrator

import (
	"maps"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/scheduler"
)

// A resolution is the effective value of a key, and the refused entry that would otherwise
// be effective.
type resolution struct {
	value   *scheduler.Value
	refused *entry
}

// change returns the change of the scheduler's intent: the value, its removal, or the
// error that keeps the last valid value.
func (v resolution) change(key string) scheduler.Change {
	out := scheduler.Change{Key: key, Value: v.value}
	if v.refused != nil {
		out.Err = v.refused.err()
	}
	return out
}

// resolve returns the resolution of key over all sources.
func (o *Orchestrator) resolve(key string) resolution { return resolveStack(o.stack(key)) }

// stack returns the entries of key, the highest priority first. The next call reuses the
// slice.
func (o *Orchestrator) stack(key string) []*entry {
	o.stacked = o.stacked[:0]
	for _, l := range o.sources {
		o.stacked = append(o.stacked, l.entries.Get(key))
	}
	return o.stacked
}

// resolveStack returns the first valid value of a key, by priority, and the first refused
// one above it. A refused value never hides a valid one of a lower source.
func resolveStack(stack []*entry) (out resolution) {
	for _, e := range stack {
		if e == nil {
			continue
		}
		if e.err() != nil && out.refused == nil {
			out.refused = e
		}
		if out.value = e.valid(); out.value != nil {
			return out
		}
	}
	return out
}

// merge stores events in their source. It returns the changes of the desired state, and
// the decoded events.
func (o *Orchestrator) merge(l *source, events []kvdbsync.Event) (out []scheduler.Change, said []decoded) {
	said = o.decodeAll(len(events), func(i int) kvdbsync.Event { return events[i] })
	if l.entries.Len() == 0 {
		l.entries.Grow(len(events))
		out = make([]scheduler.Change, 0, len(events))
	}
	if o.memory != nil && len(l.saved) == 0 {
		o.unsaved = slices.Grow(o.unsaved, len(events))
	}
	for i := range events {
		next, news := o.nextEntry(l, &events[i], said[i])
		if !news {
			continue
		}
		if c, changed := o.setEntry(l, events[i].Key, next); changed {
			out = append(out, c)
		}
	}
	return out, said
}

// setEntry replaces the entry of a key in a source; nil deletes it. It returns the
// resulting change. Before phase known, removals are deferred.
func (o *Orchestrator) setEntry(l *source, key string, e *entry) (c scheduler.Change, changed bool) {
	stack := o.stack(key)
	before := resolveStack(stack)
	l.set(key, stack[l.rank], e)
	stack[l.rank] = e
	after := resolveStack(stack)
	if before == after {
		return c, false
	}
	if o.phase < known {
		after = o.deferRemoval(key, before, after)
	}
	return after.change(key), before != after
}

// deferRemoval returns the resolution of key before phase known. The previous value stays:
// a declared one, or the actual one if no valid value is known.
func (o *Orchestrator) deferRemoval(key string, before, after resolution) resolution {
	if after.value != nil {
		return after
	}
	if before.value != nil {
		o.deferred[key] = before.value
	}
	after.value = o.deferred[key]
	if after == (resolution{}) {
		o.deferred[key] = nil
		return before
	}
	return after
}

// deferredRemovals returns the deferred removals that still apply.
func (o *Orchestrator) deferredRemovals() []scheduler.Change {
	var out []scheduler.Change
	for _, key := range slices.Sorted(maps.Keys(o.deferred)) {
		if o.resolve(key) == (resolution{}) {
			out = append(out, scheduler.Unwant(key))
		}
	}
	o.deferred = nil
	return out
}

// all returns the whole desired state, sorted by key.
func (o *Orchestrator) all() []scheduler.Change {
	var out []scheduler.Change
	for rank, l := range o.sources {
		out = slices.Grow(out, l.entries.Len())
		for e := range l.entries.All() {
			key := e.key()
			stack := o.stack(key)
			if slices.IndexFunc(stack, func(e *entry) bool { return e != nil }) == rank {
				out = append(out, resolveStack(stack).change(key))
			}
		}
	}
	return sorted(out)
}

// sorted returns changes sorted by key. Listings are often sorted already.
func sorted(changes []scheduler.Change) []scheduler.Change {
	byKey := func(a, b scheduler.Change) int { return strings.Compare(a.Key, b.Key) }
	if !slices.IsSortedFunc(changes, byKey) {
		slices.SortFunc(changes, byKey)
	}
	return changes
}

// nextEntry returns the entry that an event makes (nil: none), and whether it differs from
// the present one.
func (o *Orchestrator) nextEntry(l *source, e *kvdbsync.Event, d decoded) (next *entry, news bool) {
	old, past := l.entries.Get(e.Key), l.saved[e.Key]
	known := past.confirmedBy(*e, d)
	if !known && o.memory != nil && l.Feed != nil {
		o.unsaved = append(o.unsaved, l.unsavedEvent(e, d))
	}
	delete(l.saved, e.Key)
	if known && past.entry != nil {
		past.entry.rev = e.Rev
		return nil, false
	}
	switch {
	case e.Value == nil && e.Err == nil:
		return nil, true
	case d.err != nil && old == nil && past != nil && past.valid != nil:
		last := o.decode(kvdbsync.Event{Key: e.Key, Value: past.valid}).value
		next = newEntry(e.Key, last, d.err, nil)
	default:
		next = d.entryAfter(e.Key, old)
	}
	next.rev = e.Rev
	return next, true
}

// entryAfter returns the entry of a key with the content d, after the entry old; nil: there was none.
// A refused value leaves the last valid one in effect.
func (d decoded) entryAfter(key string, old *entry) *entry {
	valid := d.value
	if d.err != nil {
		valid = old.valid()
	}
	return newEntryBy(d.by, key, valid, d.err, d.labels)
}
