package orchestrator

import (
	"maps"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/scheduler"
)

// A verdict is what holds for a key, and the entry that would if it were valid.
type verdict struct {
	value   *scheduler.Value
	refused *entry
}

func (v verdict) change(key string) scheduler.Change {
	out := scheduler.Change{Key: key, Value: v.value}
	if v.refused != nil {
		out.Err = v.refused.err
	}
	return out
}

// effective is what holds for key, over all layers.
func (o *Orchestrator) effective(key string) verdict { return over(o.stack(key)) }

// stack is what the layers have under key, the highest first. It is good until the
// next one.
func (o *Orchestrator) stack(key string) []*entry {
	o.stacked = o.stacked[:0]
	for _, l := range o.layers {
		o.stacked = append(o.stacked, l.entries[key])
	}
	return o.stacked
}

func over(stack []*entry) (out verdict) {
	for _, e := range stack {
		if e == nil {
			continue
		}
		if e.err != nil && out.refused == nil {
			out.refused = e
		}
		if e.valid != nil {
			out.value = e.valid
			return out
		}
	}
	return out
}

// merge takes events into their layer, and returns what they change in the
// effective intent, and what each of them says.
func (o *Orchestrator) merge(l *layer, events []kvdbsync.Event) (out []scheduler.Change, said []decoded) {
	said = o.decodeAll(len(events), func(i int) kvdbsync.Event { return events[i] })
	if len(l.entries) == 0 {
		l.entries = make(map[string]*entry, len(events))
		out = make([]scheduler.Change, 0, len(events))
	}
	if o.memory != nil && len(l.past) == 0 {
		o.learned = slices.Grow(o.learned, len(events))
	}
	for i := range events {
		next, news := o.next(l, &events[i], said[i])
		if !news {
			continue
		}
		if c, changed := o.put(l, events[i].Key, next); changed {
			out = append(out, c)
		}
	}
	return out, said
}

// put replaces what a layer has under a key, nil being nothing, and returns what
// that changes. As long as not every layer is known, removals are held.
func (o *Orchestrator) put(l *layer, key string, e *entry) (c scheduler.Change, changed bool) {
	stack := o.stack(key)
	before := over(stack)
	l.set(key, stack[l.rank], e)
	stack[l.rank] = e
	after := over(stack)
	if before == after {
		return c, false
	}
	if !o.known {
		after = o.hold(key, before, after)
	}
	return after.change(key), before != after
}

// hold is what holds for key as long as not every layer is known: what was there
// stays, be it of ours or, where nothing valid is known, as it was found.
func (o *Orchestrator) hold(key string, before, after verdict) verdict {
	if after.value != nil {
		return after
	}
	if before.value != nil {
		o.held[key] = before.value
	}
	after.value = o.held[key]
	if after == (verdict{}) {
		o.held[key] = nil
		return before
	}
	return after
}

// released are the removals that were held, and that nothing has come to undo.
func (o *Orchestrator) released() []scheduler.Change {
	var out []scheduler.Change
	for _, key := range slices.Sorted(maps.Keys(o.held)) {
		if o.effective(key) == (verdict{}) {
			out = append(out, scheduler.Unwant(key))
		}
	}
	o.held = nil
	return out
}

// all is the whole of the effective intent, sorted by key.
func (o *Orchestrator) all() []scheduler.Change {
	var out []scheduler.Change
	for rank, l := range o.layers {
		out = slices.Grow(out, len(l.entries))
		for key := range l.entries {
			stack := o.stack(key)
			if slices.IndexFunc(stack, func(e *entry) bool { return e != nil }) == rank {
				out = append(out, over(stack).change(key))
			}
		}
	}
	return sorted(out)
}

// sorted is changes, sorted by key; what stores list often is.
func sorted(changes []scheduler.Change) []scheduler.Change {
	byKey := func(a, b scheduler.Change) int { return strings.Compare(a.Key, b.Key) }
	if !slices.IsSortedFunc(changes, byKey) {
		slices.SortFunc(changes, byKey)
	}
	return changes
}
