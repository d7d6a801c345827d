package orchestrator

import (
	"bytes"
	"iter"
	"strings"

	"github.com/keyplane/keyplane/kvdbsync"
)

// A Memory keeps what layers had across restarts; *memory.File of
// scheduler/memory is one. Its keys are the Orchestrator's own.
type Memory interface {
	// Load yields all that is remembered.
	Load() iter.Seq2[string, []byte]
	// Save remembers the values that are not nil, and forgets the others. Nobody
	// changes them any more, and the map is the Memory's. It does not wait for a disk.
	Save(map[string][]byte) error
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
func readMemory(all iter.Seq2[string, []byte], sources map[string]bool) (past map[string]map[string]*recollection, known map[string]data, strays notes) {
	past, known, strays = map[string]map[string]*recollection{}, map[string]data{}, notes{}
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

// notes are changes for the Memory.
type notes map[string][]byte

// take notes what an event leaves under its key.
func (n notes) take(l lesson) {
	e := l.event
	if l.faulty {
		n[memoryKey(l.source, refused, e.Key)] = nil
		n[memoryKey(l.source, unreadable, e.Key)] = nil
	}
	switch {
	case e.Err != nil:
		n[memoryKey(l.source, unreadable, e.Key)] = []byte(e.Err.Error())
	case e.Value != nil && l.err != nil:
		n[memoryKey(l.source, refused, e.Key)] = e.Value
	default:
		n[memoryKey(l.source, lastValid, e.Key)] = e.Value
	}
}
