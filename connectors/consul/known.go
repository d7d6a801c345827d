package consul

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/keyplane/keyplane/kvdbsync"
)

// A known records the keys of the last answer and their versions, without the values.
type known struct {
	count int
	// text has for each key, in ascending order: how many bytes it shares with the previous one, how many others
	// it has, these, and Consul's index of its last change. Numbers are uvarints. A key takes about 20 bytes;
	// as a string it would be a second copy of the one that the agent keeps.
	text []byte
}

// pageSize is the number of pairs of a first listing that are emitted at a time.
const pageSize = 1000

// differing records an answer and returns its differences from the previous one. In a
// whole answer every pair counts, because its indexes may not be comparable. If page is
// set, differing passes each full page to it and returns the rest.
func (k *known) differing(a *answer, whole bool, page func([]kvdbsync.Event) error) (events []kvdbsync.Event, err error) {
	var gone []string
	before := reader{rest: k.text}
	var now writer
	before.next()
	err = a.each(func(p *pair) error { // in ascending order of the keys
		for ; before.has && string(before.key) < p.Key; before.next() {
			gone = append(gone, string(before.key))
		}
		same := false
		if before.has && string(before.key) == p.Key {
			same = before.modified == p.ModifyIndex && !whole
			before.next()
		}
		now.add(p.Key, p.ModifyIndex)
		if same {
			return nil
		}
		value, err := p.value(a.bounds)
		e := kvdbsync.Event{Key: "/" + p.Key, Value: value, Rev: int64(p.ModifyIndex)}
		if errors.Is(err, kvdbsync.ErrTooMuch) {
			e.Value, e.Err, err = nil, err, nil
		}
		events = append(events, e)
		if err == nil && page != nil && len(events) == pageSize {
			err, events = page(events), nil
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for ; before.has; before.next() {
		gone = append(gone, string(before.key))
	}
	for _, key := range gone {
		// After a whole answer they are absent, because Consul may have lost them. Otherwise they were deleted.
		events = append(events, kvdbsync.Event{Key: "/" + key, Rev: int64(a.index), Absent: whole})
	}
	*k = known{now.count, slices.Clone(now.text)}
	return events, nil
}

// A reader reads the text of a known.
type reader struct {
	rest     []byte
	has      bool // there is a key
	key      []byte
	modified uint64
}

// next reads the next key, if there is one.
func (r *reader) next() {
	if r.has = len(r.rest) > 0; !r.has {
		return
	}
	shared := r.number()
	other := r.number()
	r.key = append(r.key[:shared], r.rest[:other]...)
	r.rest = r.rest[other:]
	r.modified = r.number()
}

func (r *reader) number() uint64 {
	n, bytes := binary.Uvarint(r.rest)
	r.rest = r.rest[bytes:]
	return n
}

// A writer makes a known.
type writer struct {
	known
	last []byte
}

// add adds a key that is greater than the last one.
func (w *writer) add(key string, modified uint64) {
	shared := 0
	for shared < len(w.last) && shared < len(key) && w.last[shared] == key[shared] {
		shared++
	}
	w.text = binary.AppendUvarint(w.text, uint64(shared))
	w.text = binary.AppendUvarint(w.text, uint64(len(key)-shared))
	w.text = append(w.text, key[shared:]...)
	w.text = binary.AppendUvarint(w.text, modified)
	w.last = append(w.last[:shared], key[shared:]...)
	w.count++
}
