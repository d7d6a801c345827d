package history

import (
	"fmt"
	"time"
)

// Atomic returns the observations that contain some of the changes of one write, and not
// yet the others.
func Atomic(h History) (out []Violation) {
	groups, wiped := groupsByKey(h.Writes), wipes(h.Writes)
	views := newViews(h)
	for _, s := range h.Seen {
		v := views.of(s.Who)
		changed := v.expand(s)
		for _, c := range changed {
			if !v.advance(c, s.At) {
				v.resume(c)
			}
		}
		asked := map[int]bool{}
		for _, c := range changed {
			for _, g := range groups[c.Key] {
				if asked[g] {
					continue
				}
				asked[g] = true
				if bad := v.torn(h.Writes[g], g, wiped[g], s.At, h.Distrusted); bad != nil {
					bad.At, bad.Who = s.At, s.Who
					out = append(out, *bad)
				}
			}
		}
	}
	return out
}

// groupsByKey returns, for each key, the writes that changed it together with other keys.
func groupsByKey(writes []Write) map[string][]int {
	out := map[string][]int{}
	for i, w := range writes {
		if w.All || len(w.Changes) < 2 {
			continue
		}
		for _, c := range w.Changes {
			out[c.Key] = append(out[c.Key], i)
		}
	}
	return out
}

// wipes returns, for each write, the index of the next one that replaced the whole content
// of the store.
func wipes(writes []Write) []int {
	out, next := make([]int, len(writes)), len(writes)
	for i := len(writes) - 1; i >= 0; i-- {
		out[i] = next
		if writes[i].All {
			next = i
		}
	}
	return out
}

// torn returns a violation if the view surely includes the write's change of one key, or a
// later one, and surely lacks its change of another key. A state after the wipe of the
// store proves nothing: an observer that doubts the wipe may never see the write, and
// keeps the older value. A later removal proves nothing either, if removals may be
// distrusted.
func (v *view) torn(w Write, made, wiped int, at time.Duration, distrusted bool) *Violation {
	var after, before string
	for _, c := range w.Changes {
		line := v.lines[c.Key]
		if seen := line[v.at[c.Key]].made; seen >= wiped {
			return nil
		} else if seen >= made {
			after = c.Key
		} else if line[v.last(c.Key, at)].made < made && !(distrusted && v.removedSince(c.Key, made, at)) {
			before = c.Key
		}
	}
	if after == "" || before == "" {
		return nil
	}
	return &Violation{Guarantee: GuaranteeAtomic, Key: before, What: fmt.Sprintf("is as before the write at %v, and %s is not", w.From, after)}
}
