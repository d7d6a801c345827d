// Package history has the history of a store and of the agent that follows it, and one
// function for each guarantee that checks it.
//
//	h.Writes = append(h.Writes, history.Write{...})  // by the writer of the store
//	h.Seen = append(h.Seen, history.Seen{...})       // by the observers of the agent
//	for _, v := range history.Ordered(h) { t.Error(v) }
//
// Texts are unique: no two writes leave the same text under a key. So each observation
// belongs to one write, and an observer cannot see it before. Everything here is pure.
// Tests give each validator a history that breaks its guarantee.
package history

import (
	"fmt"
	"time"
)

// A Change is the new text of a key; an empty Text deletes the key.
type Change struct{ Key, Text string }

// A Write is one change of the store by its one writer.
type Write struct {
	From, To time.Duration // times of call and return
	Changes  []Change      // made at once
	// All: the store holds nothing but Changes then, because it was wiped or restored from
	// a copy. Such a write is no group.
	All bool
}

// A Seen is one observation of one observer.
type Seen struct {
	At      time.Duration
	Who     string // the observer, "source"; a second life is another observer, "source 2"
	Changes []Change
	// All: keys that are not in Changes do not exist.
	All bool
}

// A History has writes and observations, each by time.
type History struct {
	Writes []Write
	Seen   []Seen
	// Distrusted: the store became another one, for example a restored copy. Then the
	// removal of a key that a listing lacks waits, and may be seen after the rest of its
	// group.
	Distrusted bool
}

// A Violation is an observation that breaks a guarantee.
type Violation struct {
	Guarantee string
	At        time.Duration
	Who, Key  string
	What      string
}

// Error names the guarantee, the key, the time and the observer.
func (v Violation) Error() string {
	return fmt.Sprintf("%s: %s at %v: %s: %s", v.Guarantee, v.Who, v.At.Round(time.Microsecond), v.Key, v.What)
}

// The guarantees.
const (
	GuaranteeOrdered   = "ordered"
	GuaranteeComplete  = "complete"
	GuaranteeAtomic    = "atomic groups"
	GuaranteeNoPhantom = "no phantom delete"
)

// Ordered returns the observations of texts that no write made, that a write made only
// later, or that are older than an earlier observation.
func Ordered(h History) []Violation {
	return walk(h, func(v *view, c Change, at time.Duration) *Violation {
		if c.Text == "" {
			return nil
		}
		return &Violation{Guarantee: GuaranteeOrdered, What: v.why(c, at)}
	})
}

// NoPhantom returns the observed removals of keys that the store has held all the time
// since the observer's last value.
func NoPhantom(h History) []Violation {
	return walk(h, func(v *view, c Change, at time.Duration) *Violation {
		if c.Text != "" {
			return nil
		}
		return &Violation{Guarantee: GuaranteeNoPhantom, What: "removed, while the store held " + v.held(c.Key, at)}
	})
}

// Complete returns the names that differ between the store and the southbound in the end.
func Complete(held, standing map[string]string) (out []Violation) {
	for key, want := range held {
		if got := standing[key]; got != want {
			out = append(out, Violation{Guarantee: GuaranteeComplete, Who: "end", Key: key, What: fmt.Sprintf("%q stands, the store holds %q", short(got), short(want))})
		}
	}
	for key, got := range standing {
		if held[key] == "" {
			out = append(out, Violation{Guarantee: GuaranteeComplete, Who: "end", Key: key, What: fmt.Sprintf("%q stands, the store holds nothing", short(got))})
		}
	}
	return out
}

// walk follows the observations of each observer, and calls check for the impossible ones.
func walk(h History, check func(*view, Change, time.Duration) *Violation) (out []Violation) {
	views := newViews(h)
	for _, s := range h.Seen {
		v := views.of(s.Who)
		for _, c := range v.expand(s) {
			if v.advance(c, s.At) {
				continue
			}
			if bad := check(v, c, s.At); bad != nil {
				bad.At, bad.Who, bad.Key = s.At, s.Who, c.Key
				out = append(out, *bad)
			}
			v.resume(c)
		}
	}
	return out
}

// short cuts a text for errors: values at the limit of a store have megabytes.
func short(text string) string {
	const most = 40
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}
