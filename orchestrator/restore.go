package orchestrator

import (
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/scheduler"
)

// arrivalPatience is how long a layer that may be there at any moment is waited for
// before what is remembered of it counts.
const arrivalPatience = 3 * time.Second

// recollect reads the memory. A layer's content is made of it only if that is needed: the
// store may be there at once. A source that is no longer configured is forgotten.
func (o *Orchestrator) recollect() {
	if o.memory == nil {
		return
	}
	stale := o.memory.Stale()
	sources := map[string]bool{}
	for _, l := range o.layers {
		// A source says again what it declares. Old values of it could undo what was applied.
		sources[l.Name] = stale == nil || l.Local != nil
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
	o.save(maps.All(strays))
	if stale == nil {
		return
	}
	o.log.Warn("what sources declared before the restart is not used, as newer changes of it were lost; what stands stays until they are there", "keys", len(strays), "err", stale)
	if err := o.memory.Renew(); err != nil {
		o.log.Error("state cannot be marked as good again; the next start will not use it", "err", err)
	}
}

// tell gives the memory what was learned. It is called before that is applied: what the
// next start knows must not be older than what was applied.
func (o *Orchestrator) tell() {
	o.save(all(o.learned))
	o.learned = nil
}

func (o *Orchestrator) save(changes iter.Seq2[string, []byte]) {
	if o.memory == nil {
		return
	}
	if err := o.memory.Save(changes); err != nil {
		o.log.Error("what sources declare is not remembered", "err", err)
	}
}

// learn is what the memory is to learn of an event.
func (l *layer) learn(e *kvdbsync.Event, err error) lesson {
	old, past := l.entries[e.Key], l.past[e.Key]
	return lesson{l.Name, e, err, past.faulty() || old != nil && old.err != nil}
}

// next is the entry that an event makes, nil being nothing, and whether it is
// another than the one that is there.
func (o *Orchestrator) next(l *layer, e *kvdbsync.Event, d decoded) (next *entry, news bool) {
	old, past := l.entries[e.Key], l.past[e.Key]
	known := past.says(*e)
	if !known && o.memory != nil && l.Local == nil {
		o.learned = append(o.learned, l.learn(e, d.err))
	}
	delete(l.past, e.Key)
	if known && past.entry != nil {
		return nil, false
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
