// Package history is what happened between a store that is written and an agent
// that follows it, and the judgement of it: one function for each guarantee.
//
//	h.Writes = append(h.Writes, history.Write{...})  // by who writes the store
//	h.Seen = append(h.Seen, history.Seen{...})       // by who looks at the agent
//	for _, v := range history.Ordered(h) { t.Error(v) }
//
// Texts are unique: no two writes leave the same text under a key. So it is known
// which write an observer has seen, and which it can only see later. Everything
// here is pure; tests give each validator a history that breaks its guarantee.
package history

import (
	"fmt"
	"time"
)

// A Change is what stands under a key from then on; an empty Text: nothing.
type Change struct{ Key, Text string }

// A Write is one change of the store by its one writer.
type Write struct {
	From, To time.Duration // when it was called, and when it had returned
	Changes  []Change      // made at once
	// All says that the store holds nothing but Changes then: it was wiped, or
	// restored from a copy. Such a write is no group.
	All bool
}

// A Seen is what one observer was told at once.
type Seen struct {
	At      time.Duration
	Who     string // the observer, "source"; a second life is another observer, "source 2"
	Changes []Change
	// All says that what is not in Changes is not there.
	All bool
}

// A History is what was written and seen, each in the order of time.
type History struct {
	Writes []Write
	Seen   []Seen
	// Distrusted says that the store became another one, such as a restored copy. Then the
	// removal of a key that a listing lacks waits, and may be seen after the rest of its group.
	Distrusted bool
}

// A Violation is what no correct agent could have seen.
type Violation struct {
	Guarantee string
	At        time.Duration
	Who, Key  string
	What      string
}

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

// Ordered tells where an observer saw what was never written, what was written
// only later, or what came before something it had seen already.
func Ordered(h History) []Violation {
	return walk(h, func(v *view, c Change, at time.Duration) *Violation {
		if c.Text == "" {
			return nil
		}
		return &Violation{Guarantee: GuaranteeOrdered, What: v.why(c, at)}
	})
}

// NoPhantom tells where an observer saw a key go that the store has held ever
// since the value that the observer had.
func NoPhantom(h History) []Violation {
	return walk(h, func(v *view, c Change, at time.Duration) *Violation {
		if c.Text != "" {
			return nil
		}
		return &Violation{Guarantee: GuaranteeNoPhantom, What: "removed, while the store held " + v.held(c.Key, at)}
	})
}

// Complete tells what does not stand as the store holds it in the end.
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

// walk has each observer go through what it saw, and judges what cannot be.
func walk(h History, judge func(*view, Change, time.Duration) *Violation) (out []Violation) {
	views := newViews(h)
	for _, s := range h.Seen {
		v := views.of(s.Who)
		for _, c := range v.expand(s) {
			if v.advance(c, s.At) {
				continue
			}
			if bad := judge(v, c, s.At); bad != nil {
				bad.At, bad.Who, bad.Key = s.At, s.Who, c.Key
				out = append(out, *bad)
			}
			v.resume(c)
		}
	}
	return out
}

func short(text string) string {
	const most = 40
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}
