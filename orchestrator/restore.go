package orchestrator

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/scheduler"
)

// arrivalWait is how long a source that is connecting or listing gets before its saved
// content is used.
const arrivalWait = 3 * time.Second

// loadMemory reads the saved content. It is decoded only when it is used, because the
// store may be complete sooner. Content of a source that is not configured any more stays;
// see unconfigured.go. Content of a layer that is not kept any more is deleted.
func (o *Orchestrator) loadMemory() {
	if o.memory == nil {
		return
	}
	stale := o.memory.Stale()
	sources := map[string]bool{}
	for _, l := range o.sources {
		// A source delivers its values again. Old ones could undo newer changes.
		sources[l.Name] = stale == nil || l.Local != nil
	}
	past, known, obsolete := readMemory(o.memory.Load(), func(name string) bool {
		_, layer := o.savedLayer(name)
		// Nobody delivers the values of an unconfigured source again. So even those that may be old are kept.
		return layer || sources[name] || o.isUnconfigured(name)
	})
	o.loadLayers(past)
	o.keepUnconfigured(past)
	for _, l := range o.fixed {
		l.saved, l.dataset = past[l.Name], known[l.Name]
		l.savedKeys = len(l.saved)
		if l.Local != nil {
			o.useSaved(l, "this is its only store")
			l.saved = nil
		}
	}
	o.save(maps.All(obsolete))
	if stale == nil {
		return
	}
	o.log.Warn("not using keys saved before the restart, because newer changes were lost; actual values stay until the sources are complete", "keys", len(obsolete), "err", stale)
	if err := o.memory.Renew(); err != nil {
		o.log.Error("saved keys cannot be marked as complete; the next start will not use them", "err", err)
	}
}

// loadLayers makes the saved layers again. A smaller LayerOptions.Max drops none of them:
// it only prevents new ones.
func (o *Orchestrator) loadLayers(past map[string]map[string]*savedKey) {
	most := o.layers.Max
	defer func() { o.layers.Max = most }()
	for _, name := range slices.Sorted(maps.Keys(past)) {
		layer, ok := o.savedLayer(name)
		if !ok {
			continue
		}
		o.layers.Max = max(most, o.layerCount()+1)
		l := o.layer(layer)
		l.saved = past[name]
		o.useSaved(l, "this is its only store")
		l.saved = nil
		l.publish()
	}
}

// A First is a change of a layer that is made before anything is applied.
type First struct {
	Request // without Revert and If, which have no meaning here
	// Made gets the error of a change that was not made, or that the next start will not know, or a
	// *scheduler.TxnError with the values that were refused. A change that is only not saved is in
	// effect until then, and the next request for its layer saves it too. Run's goroutine calls Made,
	// so it must not wait. Defaults to logging the error.
	Made func(error)
}

// makeFirst makes the changes of Options.First.
func (o *Orchestrator) makeFirst() {
	for _, q := range o.first {
		err := o.makeOne(q.Request)
		switch {
		case q.Made != nil:
			q.Made(err)
		case err != nil:
			o.log.Error("a change before the start was not made, or is not saved", "source", q.Layer, "err", err)
		}
	}
	o.first = nil
}

// makeOne makes a change of Options.First. Nothing has been applied yet, so removals need not
// wait for the other sources: a removed value is one that this run never had.
func (o *Orchestrator) makeOne(q Request) error {
	if _, kept := o.savedLayer(layerMark + q.Layer); !kept {
		return nil // this agent does not keep the layer any more
	}
	r := request{events: o.prepare(q, o.memory != nil), replace: q.Replace}
	if err := r.check(); err != nil {
		return err
	}
	l := o.layer(q.Layer)
	if l == nil {
		return o.tooManyLayers()
	}
	events := r.changes(l)
	o.decodeRequest(&r, events)
	unsaved := o.unsavedOf(l, events)
	err := o.record(l, unsaved)
	if err != nil {
		l.unrecorded = unsaved
	}
	for i := range events {
		old, d := l.entries.Get(events[i].Key), events[i].Decoded.(decoded)
		if d.value == nil && d.err == nil {
			l.set(events[i].Key, old, nil)
		} else {
			l.set(events[i].Key, old, d.entryAfter(events[i].Key, old))
		}
	}
	o.madeFirst = true
	l.publish()
	o.dropEmpty(l)
	return r.failure(err)
}

// saveUnsaved saves the changes that Memory has not learned yet. It is called before they
// are applied: the saved content must never be older than the applied one.
func (o *Orchestrator) saveUnsaved() {
	o.save(unsavedPairs(o.unsaved))
	o.unsaved = nil
}

// save saves changes before they are applied. A failure is logged, and the agent goes on:
// the state on disk only matters after the next start.
func (o *Orchestrator) save(changes iter.Seq2[string, []byte]) {
	if o.memory == nil {
		return
	}
	if err := o.memory.Save(changes); err != nil {
		o.log.Error("changes of sources cannot be saved", "err", err)
	}
}

// unsavedEvent returns the change of the Memory for an event.
func (l *source) unsavedEvent(e *kvdbsync.Event, d decoded) unsavedEvent {
	old, past := l.entries.Get(e.Key), l.saved[e.Key]
	return unsavedEvent{
		l.memoryName(), e, d,
		past.faulty() || old.err() != nil, len(old.labels()) > 0,
	}
}

// useSaved makes the saved content of a source its entries, until the source delivers
// others. It returns the changes of the desired state.
func (o *Orchestrator) useSaved(l *source, because string) (out []scheduler.Change) {
	keys := slices.Sorted(maps.Keys(l.saved))
	keys = slices.DeleteFunc(keys, func(key string) bool { return l.saved[key].entry != nil })
	if len(keys) == 0 {
		return nil
	}
	decoded := o.decodeAll(len(keys), func(i int) kvdbsync.Event {
		return kvdbsync.Event{Key: keys[i], Value: l.saved[keys[i]].valid}
	})
	for i, key := range keys {
		r := l.saved[key]
		r.entry = o.savedEntry(l, key, r, decoded[i])
		if c, changed := o.setEntry(l, key, r.entry); changed {
			out = append(out, c)
		}
	}
	o.saveUnsaved()
	l.usesSaved = true
	level := slog.LevelWarn
	if l.Feed == nil {
		level = slog.LevelInfo // as intended
	}
	o.log.Log(context.Background(), level, "using keys saved before the restart", "source", l.Name, "keys", len(keys), "because", because)
	return out
}

// savedEntry returns the entry of a saved key. valid is its last valid value. This agent
// may accept the newest value although an older agent refused it. Then the value is saved as the
// valid one: otherwise it would replace later values at each start.
func (o *Orchestrator) savedEntry(l *source, key string, r *savedKey, valid decoded) *entry {
	labels := savedLabels(r.labels)
	switch {
	case r.fault != "":
		return newEntry(key, valid.value, errors.New(r.fault), labels)
	case r.newest == nil:
		return newEntry(key, valid.value, valid.err, labels)
	}
	e := kvdbsync.Event{Key: key, Value: r.newest}
	newest := o.decode(e)
	if newest.err == nil {
		o.unsaved = append(o.unsaved, unsavedEvent{source: l.memoryName(), event: &e, faulty: true})
		r.valid, r.newest = r.newest, nil
		return newEntry(key, newest.value, nil, labels)
	}
	return newEntry(key, valid.value, newest.err, labels)
}

// dropStale removes saved keys that are missing from the first complete listing, if that
// listing is credible. While the source has problems, which may hide keys, they stay.
func (o *Orchestrator) dropStale(l *source, c kvdbsync.Change) []scheduler.Change {
	if len(c.Problems) > 0 {
		return o.useSaved(l, "it has problems")
	}
	missing := slices.Sorted(maps.Keys(l.saved))
	others := l.entries.Len()
	for _, key := range missing {
		if l.entries.Get(key) != nil {
			others--
		}
	}
	why := o.reasonToDoubt(absence{
		distrust: l.distrust, had: l.savedKeys, absent: len(missing), waiting: l.doubtedKeys(), shown: others,
	})
	if why == "" {
		changes, _ := o.merge(l, removals(l.saved))
		l.saved = nil
		return changes
	}
	changes := o.useSaved(l, why)
	o.putInDoubt(l, missing, l.savedKeys, why)
	l.saved = nil
	return changes
}

// removals returns events that delete all keys, sorted.
func removals[V any](keys map[string]V) []kvdbsync.Event {
	var out []kvdbsync.Event
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		out = append(out, kvdbsync.Event{Key: key})
	}
	return out
}

// removeAll returns events that delete all keys of the source, sorted.
func (l *source) removeAll() []kvdbsync.Event {
	out := make([]kvdbsync.Event, 0, l.entries.Len())
	for e := range l.entries.All() {
		out = append(out, kvdbsync.Event{Key: e.key()})
	}
	slices.SortFunc(out, func(a, b kvdbsync.Event) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// incomplete is the description of a transaction before phase known.
func (o *Orchestrator) incomplete() string {
	var recalled []string
	for _, l := range o.sources {
		if l.usesSaved && !l.synced {
			recalled = append(recalled, l.Name)
		}
	}
	if recalled == nil {
		return "not all sources are complete yet"
	}
	return "not all sources are complete yet; using keys saved before the restart: " + strings.Join(recalled, ", ")
}
