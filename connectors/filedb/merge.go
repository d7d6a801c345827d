package filedb

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/kvdbsync"
)

// mostConflicts is the number of keys per file that are reported one by one as duplicates.
const mostConflicts = 5

// A merger merges the content of all files under a prefix. If several files have a key,
// the first takes effect, by path and then by line. A file that is gone comes after all
// others. The cost depends on the files that changed and on the conflicts.
type merger struct {
	prefix string
	files  files             // merged so far
	counts map[string]*entry // the effective entries, by key
	// rivals are the keys that several files have, with the first entry of each file, the
	// effective one first.
	rivals map[string][]*entry
	// repeats are the files with a repeated key.
	repeats map[string]bool
	// found are the conflicts, unless they are stale. Most changes are about keys of one file.
	found []error
	stale bool
}

// newMerger returns a merger without files.
func newMerger(prefix string) *merger {
	return &merger{prefix: prefix, rivals: map[string][]*entry{}, repeats: map[string]bool{}}
}

// update takes over the present files, and returns the resulting events.
func (m *merger) update(all files) []kvdbsync.Event {
	old, first := m.files, m.files == nil
	m.files = all
	if first {
		m.counts = make(map[string]*entry, size(all))
	}
	before := map[string]*entry{}
	for path, f := range old {
		if now, there := all[path]; !there || !f.countsAs(now) {
			m.each(f, func(e *entry) { m.touch(before, e.key); m.remove(e) })
			m.stale = m.stale || m.repeats[path]
			delete(m.repeats, path)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(all)) {
		f := all[path]
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

// size returns the number of entries.
func size(all files) (n int) {
	for _, f := range all {
		if f.good != nil {
			n += len(f.good.entries)
		}
	}
	return n
}

// each calls do for each entry of a file under the prefix.
func (m *merger) each(f *file, do func(*entry)) {
	if f == nil || f.good == nil {
		return
	}
	for i := range f.good.entries {
		if e := &f.good.entries[i]; strings.HasPrefix(e.key, m.prefix) {
			do(e)
		}
	}
}

// touch saves the effective entry of a key before it changes.
func (m *merger) touch(before map[string]*entry, key string) {
	if _, noted := before[key]; !noted {
		before[key] = m.counts[key]
	}
}

// add puts an entry in its place among the entries of its key. Most keys are in one file;
// only the others have a list.
func (m *merger) add(e *entry) {
	first, taken := m.counts[e.key]
	if !taken {
		m.counts[e.key] = e
		return
	}
	m.stale = true
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

// remove takes an entry out; the next one of its key counts then, if there is one.
func (m *merger) remove(e *entry) {
	all := m.rivals[e.key]
	if all == nil {
		if m.counts[e.key] == e {
			delete(m.counts, e.key)
		}
		return
	}
	m.stale = true
	at := slices.Index(all, e)
	if at < 0 {
		return // not the first entry of its file
	}
	all = slices.Delete(all, at, at+1)
	m.rivals[e.key], m.counts[e.key] = all, all[0]
	if len(all) == 1 {
		delete(m.rivals, e.key)
	}
}

// precedes reports whether a takes effect before b. It is false for two entries of one
// file.
func (m *merger) precedes(a, b *entry) bool {
	if ga, gb := m.files.at(a.path()).state == gone, m.files.at(b.path()).state == gone; ga != gb {
		return gb
	}
	return a.path() < b.path()
}

// everything returns all effective entries, by place.
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

// since returns the differences from before, by key.
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

// conflicts returns a problem for each entry without effect, by place. Entries of files
// that are gone are ignored.
func (m *merger) conflicts() []error {
	if m.stale {
		m.found, m.stale = m.allConflicts(), false
	}
	return m.found
}

// allConflicts is conflicts, made anew.
func (m *merger) allConflicts() (out []error) {
	beaten := map[string]bool{}
	for path := range m.repeats {
		beaten[path] = m.files.at(path).state != gone
	}
	for _, all := range m.rivals {
		for _, e := range all[1:] {
			beaten[e.path()] = m.files.at(e.path()).state != gone
		}
	}
	for _, path := range slices.Sorted(maps.Keys(beaten)) {
		if beaten[path] {
			out = append(out, m.conflictsOf(path)...)
		}
	}
	return out
}

// conflictsOf returns an error for each key of a file for which another file counts. It
// names the first ones, and the number of the others.
func (m *merger) conflictsOf(path string) (out []error) {
	beaten := 0
	m.each(m.files[path], func(e *entry) {
		first := m.counts[e.key]
		if first == e {
			return
		}
		beaten++
		if beaten <= mostConflicts {
			out = append(out, fmt.Errorf("%s: key %s is also in %s, which counts because it comes first: remove one of the two", e.origin, e.key, first.origin))
		}
	})
	if beaten > mostConflicts {
		out = append(out, fmt.Errorf("%s: so are %d more of its keys", path, beaten-mostConflicts))
	}
	return out
}

// same reports whether two entries of a key have the same content. A changed line number
// alone is no event.
func same(a, b *entry) bool {
	if a.err != nil && b.err != nil {
		return a.err.Error() == b.err.Error()
	}
	return a.err == nil && b.err == nil && a.value.Equal(b.value)
}
