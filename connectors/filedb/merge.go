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

// merge makes one store of what all files say under a prefix. Where several have a
// key, the first counts, by path and then by line; a file that is gone counts after
// all others. It returns a problem for the entries that do not count, in that order.
func merge(files map[string]file, prefix string) (entries map[string]*entry, conflicts []error) {
	entries = map[string]*entry{}
	for _, path := range precedence(files) {
		if files[path].good == nil {
			continue
		}
		beaten := 0
		for i := range files[path].good.entries {
			e := &files[path].good.entries[i]
			if !strings.HasPrefix(e.key, prefix) {
				continue
			}
			first, taken := entries[e.key]
			if !taken {
				entries[e.key] = e
				continue
			}
			if beaten++; beaten <= mostConflicts && files[path].state != gone {
				conflicts = append(conflicts, fmt.Errorf("%s: key %s is also in %s, which counts because it comes first: remove one of the two", e.origin, e.key, first.origin))
			}
		}
		if beaten > mostConflicts && files[path].state != gone {
			conflicts = append(conflicts, fmt.Errorf("%s: so are %d more of its keys", path, beaten-mostConflicts))
		}
	}
	return entries, conflicts
}

// precedence sorts the paths by who counts first.
func precedence(files map[string]file) []string {
	return slices.SortedFunc(maps.Keys(files), func(a, b string) int {
		if ga, gb := files[a].state == gone, files[b].state == gone; ga != gb {
			if gb {
				return -1
			}
			return 1
		}
		return cmp.Compare(a, b)
	})
}

// diff returns the events that lead from one store to another, by key.
func diff(old, now map[string]*entry) []kvdbsync.Event {
	var out []kvdbsync.Event
	if old == nil {
		out = make([]kvdbsync.Event, 0, len(now))
	}
	for key, e := range now {
		if before, there := old[key]; !there || !same(before, e) {
			out = append(out, kvdbsync.Event{Key: key, Value: e.value, Origin: e.origin, Err: e.err})
		}
	}
	for key := range old {
		if _, there := now[key]; !there {
			out = append(out, kvdbsync.Event{Key: key})
		}
	}
	slices.SortFunc(out, func(a, b kvdbsync.Event) int { return cmp.Compare(a.Key, b.Key) })
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
