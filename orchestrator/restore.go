package orchestrator

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/scheduler"
)

// listingPatience is how long a layer that is just being listed is waited for
// before what is remembered of it counts.
const listingPatience = 3 * time.Second

// recollect reads the memory. What it has of a layer is only looked at if that is
// needed: the store may be there at once. A source that is no longer configured is
// forgotten.
func (o *Orchestrator) recollect() {
	if o.memory == nil {
		return
	}
	sources := map[string]bool{}
	for _, l := range o.layers {
		sources[l.Name] = true
	}
	past, known, strays := readMemory(o.memory.Load(), sources)
	for _, l := range o.layers {
		l.past, l.data = past[l.Name], known[l.Name]
		l.had = len(l.past)
		if l.Local != nil {
			o.restore(l, "it is kept nowhere else")
			l.past = nil
		}
	}
	o.save(strays)
}

// tell gives the memory what was learned. That is put into notes only here, so that
// nobody waits for it while a transaction is prepared.
func (o *Orchestrator) tell() {
	learned := make(notes, len(o.learned))
	for _, one := range o.learned {
		learned.take(one)
	}
	o.learned = nil
	o.save(learned)
}

func (o *Orchestrator) save(learned notes) {
	if len(learned) == 0 {
		return
	}
	if err := o.memory.Save(learned); err != nil {
		o.log.Error("what sources declare is not remembered", "keys", len(learned), "err", err)
	}
}

// next is the entry that an event makes, nil being nothing, and whether it is
// another than the one that is there.
func (o *Orchestrator) next(l *layer, e *kvdbsync.Event, d decoded) (next *entry, news bool) {
	old, past := l.entries[e.Key], l.past[e.Key]
	delete(l.past, e.Key)
	if known := past.says(*e); known && past.entry != nil {
		return nil, false
	} else if !known && o.memory != nil {
		o.learned = append(o.learned, lesson{l.Name, e, d.err, past.faulty() || old != nil && old.err != nil})
	}
	switch {
	case e.Value == nil && e.Err == nil:
		return nil, true
	case d.err == nil:
		return &entry{valid: d.value}, true
	case old == nil && past != nil && past.valid != nil:
		return &entry{valid: o.decode(kvdbsync.Event{Key: e.Key, Value: past.valid}).value, err: d.err}, true
	case old == nil:
		return &entry{err: d.err}, true
	}
	return &entry{valid: old.valid, err: d.err}, true
}

// restore makes what is remembered of a layer its content, until its source says
// otherwise, and returns what that changes.
func (o *Orchestrator) restore(l *layer, because string) (out []scheduler.Change) {
	keys := slices.Sorted(maps.Keys(l.past))
	keys = slices.DeleteFunc(keys, func(key string) bool { return l.past[key].entry != nil })
	if len(keys) == 0 {
		return nil
	}
	decoded := o.decodeAll(len(keys), func(i int) kvdbsync.Event {
		return kvdbsync.Event{Key: keys[i], Value: l.past[keys[i]].valid}
	})
	for i, key := range keys {
		r := l.past[key]
		r.entry = o.recalled(key, r, decoded[i])
		if c, changed := o.put(l, key, r.entry); changed {
			out = append(out, c)
		}
	}
	l.restored = true
	o.log.Warn("what a source declared before the restart counts for now", "source", l.Name, "keys", len(keys), "because", because)
	return out
}

// recalled is the entry of a key of which valid is what was last valid. A newer
// agent may think otherwise than the one that refused what came after it.
func (o *Orchestrator) recalled(key string, r *recollection, valid decoded) *entry {
	switch {
	case r.fault != "":
		return &entry{valid: valid.value, err: errors.New(r.fault)}
	case r.newest == nil:
		return &entry{valid: valid.value, err: valid.err}
	}
	newest := o.decode(kvdbsync.Event{Key: key, Value: r.newest})
	if newest.err == nil {
		return &entry{valid: newest.value}
	}
	return &entry{valid: valid.value, err: newest.err}
}

// outgrow drops what is remembered of a layer and is not in its complete snapshot, if
// that is credible. As long as a problem may hide it there, it counts.
func (o *Orchestrator) outgrow(l *layer, c kvdbsync.Change) []scheduler.Change {
	if !c.Synced || len(l.past) == 0 {
		return nil
	}
	if len(c.Problems) > 0 {
		return o.restore(l, "it has problems")
	}
	missing := slices.Sorted(maps.Keys(l.past))
	others := len(l.entries)
	for _, key := range missing {
		if l.entries[key] != nil {
			others--
		}
	}
	why := o.disbelieve(finding{
		distrust: l.distrust, had: l.had, absent: len(missing), waiting: l.doubtedKeys(), shown: others,
	})
	if why == "" {
		changes, _ := o.merge(l, removals(l.past))
		l.past = nil
		return changes
	}
	changes := o.restore(l, why)
	o.putInDoubt(l, missing, l.had, why)
	l.past = nil
	return changes
}

// removals are events that remove all keys, sorted.
func removals[V any](keys map[string]V) []kvdbsync.Event {
	var out []kvdbsync.Event
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		out = append(out, kvdbsync.Event{Key: key})
	}
	return out
}

// incomplete is how a transaction is called before all layers are known.
func (o *Orchestrator) incomplete() string {
	var recalled []string
	for _, l := range o.layers {
		if l.restored && !l.synced {
			recalled = append(recalled, l.Name)
		}
	}
	if recalled == nil {
		return "not all sources are complete yet"
	}
	return "not all sources are complete yet; as remembered: " + strings.Join(recalled, ", ")
}
