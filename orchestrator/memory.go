package orchestrator

import (
	"bytes"
	"iter"
	"strings"

	"github.com/keyplane/keyplane/kvdbsync"
)

// A Memory keeps what layers had across restarts; *statestore.Store is one. Its keys are
// the Orchestrator's own.
type Memory interface {
	// Load yields all that is remembered.
	Load() iter.Seq2[string, []byte]
	// Save remembers the values that are not nil, and forgets the others; of a key that
	// comes twice, the last counts. When it returns, either a kill of the process does not
	// lose them, or the next start will be told by Stale. It does not wait for a disk. The
	// values are not changed any more; changes is only good until Save returns.
	Save(changes iter.Seq2[string, []byte]) error
	// Record is Save, but what cannot be written is an error, and nothing of it is kept.
	Record(changes iter.Seq2[string, []byte]) error
	// Stale says why Load may yield less or older values than were saved; nil: it does not.
	// What Record was given is there in any case, unless a file was damaged.
	Stale() error
	// Renew says that what is remembered now is right, whatever Stale said.
	Renew() error
}

// What is remembered of a key of a layer, each under a key of its own: the bytes
// that were last valid, and the newest if they are not that.
const (
	lastValid  = 'v' // JSON
	refused    = 'r' // the bytes as they are
	unreadable = 'e' // the text of the event's Err
	dataOf     = 'd' // of no key: which data the source has
)

// A recollection is what is remembered of a key.
type recollection struct {
	valid  []byte
	newest []byte // refused; nil: there is none, or fault is set
	fault  string
	entry  *entry // that it was made into; nil: it has not been yet
}

// faulty tells that the newest was not valid.
func (r *recollection) faulty() bool { return r != nil && (r.newest != nil || r.fault != "") }

// says tells that an event brings what is remembered already.
func (r *recollection) says(e kvdbsync.Event) bool {
	switch {
	case r == nil:
		return false
	case e.Err != nil:
		return r.fault == e.Err.Error()
	case r.faulty():
		return e.Value != nil && r.newest != nil && bytes.Equal(r.newest, e.Value)
	}
	return e.Value != nil && bytes.Equal(r.valid, e.Value)
}

// memoryKey is where a Memory has what is remembered of a key.
func memoryKey(source string, what byte, key string) string {
	return source + "\x00" + string(what) + key
}

// readMemory sorts what is remembered by sources and keys. What belongs to no source
// is returned apart, to be forgotten.
func readMemory(all iter.Seq2[string, []byte], sources map[string]bool) (past map[string]map[string]*recollection, known map[string]data, strays map[string][]byte) {
	past, known, strays = map[string]map[string]*recollection{}, map[string]data{}, map[string][]byte{}
	for at, value := range all {
		source, rest, ok := strings.Cut(at, "\x00")
		if !ok || rest == "" || !sources[source] {
			strays[at] = nil
			continue
		}
		if rest == string(dataOf) {
			known[source] = data(value)
			continue
		}
		keys := past[source]
		if keys == nil {
			keys = map[string]*recollection{}
			past[source] = keys
		}
		r := keys[rest[1:]]
		if r == nil {
			r = &recollection{}
			keys[rest[1:]] = r
		}
		switch rest[0] {
		case lastValid:
			r.valid = value
		case refused:
			r.newest = value
		case unreadable:
			r.fault = string(value)
		}
	}
	return past, known, strays
}

// A lesson is what the Memory is to learn of a key of a source: the newest event, why it
// is refused, if it is, and whether what was there before was not valid.
type lesson struct {
	source string
	event  *kvdbsync.Event
	err    error
	faulty bool
}

// all yields what the Memory is to learn of lessons.
func all(lessons []lesson) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for i := range lessons {
			if !lessons[i].each(yield) {
				return
			}
		}
	}
}

// each yields what an event leaves under its key.
func (l *lesson) each(yield func(string, []byte) bool) bool {
	e := l.event
	if l.faulty && !(yield(memoryKey(l.source, refused, e.Key), nil) && yield(memoryKey(l.source, unreadable, e.Key), nil)) {
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
