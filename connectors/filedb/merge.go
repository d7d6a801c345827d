package filedb

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/kvdbsync"
)

// mostConflicts is how many keys of one file are told one by one to be elsewhere too.
const mostConflicts = 5

// A merger makes one store of what all files say under a prefix. Where several have a
// key, the first counts, by path and then by line; a file that is gone counts after
// all others. What it costs follows the files that changed, and those with conflicts.
type merger struct {
	prefix string
	files  map[string]file   // what is merged
	counts map[string]*entry // by key
	// rivals are of the keys that several files have: of each file the first entry, the one that counts first.
	rivals map[string][]*entry
	// repeats are the files that have a key more than once.
	repeats map[string]bool
}

func newMerger(prefix string) *merger {
	return &merger{prefix: prefix, rivals: map[string][]*entry{}, repeats: map[string]bool{}}
}

// update takes over what the files say now, and returns the events that lead there.
func (m *merger) update(files map[string]file) []kvdbsync.Event {
	old, first := m.files, m.files == nil
	if m.files = files; first {
		m.counts = make(map[string]*entry, size(files))
	}
	before := map[string]*entry{}
	for path, f := range old {
		if now, there := files[path]; !there || !f.countsAs(now) {
			m.each(f, func(e *entry) { m.touch(before, e.key); m.remove(e) })
			delete(m.repeats, path)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		f := files[path]
		if was, there := old[path]; there && was.countsAs(f) {
			continue
		}
		m.each(f, func(e *entry) {
			if !first {
				m.touch(before, e.key)
			}
			m.add(e)
		})
	}
	if first {
		return m.everything()
	}
	return m.since(before)
}

// size is how many entries files have.
func size(files map[string]file) (n int) {
	for _, f := range files {
		if f.good != nil {
			n += len(f.good.entries)
		}
	}
	return n
}

// each calls do for what a file says under the prefix.
func (m *merger) each(f file, do func(*entry)) {
	if f.good == nil {
		return
	}
	for i := range f.good.entries {
		if e := &f.good.entries[i]; strings.HasPrefix(e.key, m.prefix) {
			do(e)
		}
	}
}

// touch notes what counts for a key before it changes.
func (m *merger) touch(before map[string]*entry, key string) {
	if _, noted := before[key]; !noted {
		before[key] = m.counts[key]
	}
}

func (m *merger) add(e *entry) {
	first, taken := m.counts[e.key]
	if !taken {
		m.counts[e.key] = e
		return
	}
	all := m.rivals[e.key]
	if all == nil {
		all = []*entry{first}
	}
	at := len(all)
	for at > 0 && m.precedes(e, all[at-1]) {
		at--
	}
	if at > 0 && all[at-1].origin.File == e.origin.File {
		m.repeats[e.path()] = true
		return
	}
	all = slices.Insert(all, at, e)
	m.rivals[e.key], m.counts[e.key] = all, all[0]
}

func (m *merger) remove(e *entry) {
	all := m.rivals[e.key]
	if all == nil {
		if m.counts[e.key] == e {
			delete(m.counts, e.key)
		}
		return
	}
	at := slices.Index(all, e)
	if at < 0 {
		return // it is not the first of its file
	}
	all = slices.Delete(all, at, at+1)
	m.rivals[e.key], m.counts[e.key] = all, all[0]
	if len(all) == 1 {
		delete(m.rivals, e.key)
	}
}

// precedes tells whether a counts before b, which is not true of two in one file.
func (m *merger) precedes(a, b *entry) bool {
	if ga, gb := m.files[a.path()].state == gone, m.files[b.path()].state == gone; ga != gb {
		return gb
	}
	return a.path() < b.path()
}

// everything is all that counts, by place.
func (m *merger) everything() []kvdbsync.Event {
	out := make([]kvdbsync.Event, 0, len(m.counts))
	for _, path := range slices.Sorted(maps.Keys(m.files)) {
		m.each(m.files[path], func(e *entry) {
			if m.counts[e.key] == e {
				out = append(out, e.event())
			}
		})
	}
	return out
}

// since returns what is different from before, by key.
func (m *merger) since(before map[string]*entry) []kvdbsync.Event {
	var out []kvdbsync.Event
	for key, was := range before {
		switch now := m.counts[key]; {
		case now == nil && was == nil:
		case now == nil:
			out = append(out, kvdbsync.Event{Key: key})
		case was == nil || !same(was, now):
			out = append(out, now.event())
		}
	}
	slices.SortFunc(out, func(a, b kvdbsync.Event) int { return cmp.Compare(a.Key, b.Key) })
	return out
}

// conflicts returns a problem for the entries that do not count, by place. Those of
// files that are gone are none.
func (m *merger) conflicts() (out []error) {
	beaten := map[string]bool{}
	for path := range m.repeats {
		beaten[path] = m.files[path].state != gone
	}
	for _, all := range m.rivals {
		for _, e := range all[1:] {
			beaten[e.path()] = m.files[e.path()].state != gone
		}
	}
	for _, path := range slices.Sorted(maps.Keys(beaten)) {
		if beaten[path] {
			out = append(out, m.conflictsOf(path)...)
		}
	}
	return out
}

func (m *merger) conflictsOf(path string) (out []error) {
	beaten := 0
	m.each(m.files[path], func(e *entry) {
		first := m.counts[e.key]
		if first == e {
			return
		}
		if beaten++; beaten <= mostConflicts {
			out = append(out, fmt.Errorf("%s: key %s is also in %s, which counts because it comes first: remove one of the two", e.origin, e.key, first.origin))
		}
	})
	if beaten > mostConflicts {
		out = append(out, fmt.Errorf("%s: so are %d more of its keys", path, beaten-mostConflicts))
	}
	return out
}

// same tells whether two entries of a key say the same. Where they stand is told
// only to those whom the change of what they say concerns.
func same(a, b *entry) bool {
	if a.err != nil && b.err != nil {
		return a.err.Error() == b.err.Error()
	}
	return a.err == nil && b.err == nil && bytes.Equal(a.value, b.value)
}
