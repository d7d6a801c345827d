package orchestrator

import (
	"bytes"
	"encoding/json"
	"iter"
	"strings"

	"github.com/keyplane/keyplane/kvdbsync"
)

// A Memory keeps the content of sources across restarts; *statestore.Store is one. The
// Orchestrator chooses its keys.
type Memory interface {
	// Load yields all saved values.
	Load() iter.Seq2[string, []byte]
	// Save saves non-nil values and deletes the others. The last value of a key counts.
	// After Save has returned, a kill of the process does not lose the values, or Stale
	// reports it to the next start. It does not wait for a disk. The values are immutable;
	// changes is valid until Save returns.
	Save(changes iter.Seq2[string, []byte]) error
	// Record is Save, but it fails if a value cannot be written, and then saves none.
	Record(changes iter.Seq2[string, []byte]) error
	// Stale reports why Load may yield fewer or older values than were saved; nil: it does
	// not. Values of Record are complete in any case, unless a file was damaged.
	Stale() error
	// Renew declares the saved values complete again.
	Renew() error
}

// Kinds of saved values. Each key has one of its own per kind.
const (
	lastValid  = 'v' // the last valid value, in JSON
	refused    = 'r' // the newest value, if it was refused: the bytes
	unreadable = 'e' // the newest event, if it had an error: its text
	labelled   = 'l' // the labels of a layer's value, in JSON
	dataOf     = 'd' // without a key: the dataset of the source
)

// A savedKey is the saved content of a key.
type savedKey struct {
	valid  []byte
	newest []byte // refused; nil: none, or fault is set
	fault  string
	labels []byte
	entry  *entry // made from this; nil: not used yet
}

// faulty reports that the newest value was refused.
func (r *savedKey) faulty() bool { return r != nil && (r.newest != nil || r.fault != "") }

// confirmedBy reports that an event, which was decoded, says what was saved; nil: nothing was.
func (r *savedKey) confirmedBy(e kvdbsync.Event, d decoded) bool {
	return r != nil && r.matches(e) && !(r.faulty() && d.err == nil)
}

// matches reports that an event delivers the saved content.
func (r *savedKey) matches(e kvdbsync.Event) bool {
	switch {
	case e.Err != nil:
		return r.fault == e.Err.Error()
	case r.faulty():
		return e.Value != nil && r.newest != nil && bytes.Equal(r.newest, e.Value)
	}
	return e.Value != nil && bytes.Equal(r.valid, e.Value)
}

// memoryKey is the key of a saved value in the Memory.
func memoryKey(source string, what byte, key string) string {
	return source + "\x00" + string(what) + key
}

// readMemory groups the saved values by source and key. Values of unknown sources, and of empty keys,
// which an earlier version has accepted, are returned in obsolete, to be deleted.
func readMemory(all iter.Seq2[string, []byte], known func(source string) bool) (past map[string]map[string]*savedKey, datasets map[string]dataset, obsolete map[string][]byte) {
	past, datasets, obsolete = map[string]map[string]*savedKey{}, map[string]dataset{}, map[string][]byte{}
	for at, value := range all {
		source, rest, ok := strings.Cut(at, "\x00")
		isKnown := ok && known(source)
		if isKnown && rest == string(dataOf) {
			datasets[source] = dataset(value)
			continue
		}
		if !isKnown || len(rest) < 2 {
			obsolete[at] = nil
			continue
		}
		keys := past[source]
		if keys == nil {
			keys = map[string]*savedKey{}
			past[source] = keys
		}
		r := keys[rest[1:]]
		if r == nil {
			r = &savedKey{}
			keys[rest[1:]] = r
		}
		switch rest[0] {
		case lastValid:
			r.valid = value
		case refused:
			r.newest = value
		case unreadable:
			r.fault = string(value)
		case labelled:
			r.labels = value
		}
	}
	return past, datasets, obsolete
}

// An unsavedEvent is a change that the Memory has to learn: the newest event of a key, its
// error and labels, whether the saved value was refused, and whether it had labels.
type unsavedEvent struct {
	source string
	event  *kvdbsync.Event
	decoded
	faulty, hadLabels bool
}

// unsavedPairs yields the changes of the Memory.
func unsavedPairs(unsaved []unsavedEvent) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for i := range unsaved {
			if !unsaved[i].each(yield) {
				return
			}
		}
	}
}

// each yields the changes of one event.
func (l *unsavedEvent) each(yield func(string, []byte) bool) bool {
	e := l.event
	if l.faulty && !(yield(memoryKey(l.source, refused, e.Key), nil) && yield(memoryKey(l.source, unreadable, e.Key), nil)) {
		return false
	}
	if (l.hadLabels || len(l.labels) > 0) && !yield(memoryKey(l.source, labelled, e.Key), labelText(l.labels)) {
		return false
	}
	switch {
	case e.Err != nil:
		return yield(memoryKey(l.source, unreadable, e.Key), []byte(e.Err.Error()))
	case e.Value != nil && l.err != nil:
		return yield(memoryKey(l.source, refused, e.Key), e.Value)
	}
	return yield(memoryKey(l.source, lastValid, e.Key), e.Value)
}

// labelText returns labels as the Memory has them; nil: there are none.
func labelText(labels map[string]string) []byte {
	if len(labels) == 0 {
		return nil
	}
	text, err := json.Marshal(labels)
	if err != nil { // a map of texts has a JSON form
		return nil
	}
	return text
}

// savedLabels is the inverse of labelText. Damaged labels are none: they change no value.
func savedLabels(text []byte) (labels map[string]string) {
	if len(text) > 0 && json.Unmarshal(text, &labels) != nil {
		return nil
	}
	return labels
}
