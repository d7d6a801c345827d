package history

import (
	"fmt"
	"slices"
	"time"
)

// A point is the text of a key from one write to the next.
type point struct {
	text string
	from time.Duration // time at which the write was called
	made int           // index in History.Writes; -1: before the first
}

// timelines returns the texts that the store ever held under each key, by time. The first
// point is the empty text of the beginning.
func timelines(writes []Write) map[string][]point {
	lines := map[string][]point{}
	add := func(key, text string, w Write, i int) {
		if lines[key] == nil {
			lines[key] = []point{{made: -1}}
		}
		lines[key] = append(lines[key], point{text: text, from: w.From, made: i})
	}
	for i, w := range writes {
		if w.All {
			w.Changes = everything(lines, w.Changes)
		}
		for _, c := range w.Changes {
			add(c.Key, c.Text, w, i)
		}
	}
	return lines
}

// everything returns changes, and removals of all other keys that have existed.
func everything(lines map[string][]point, changes []Change) []Change {
	has := map[string]bool{}
	for _, c := range changes {
		has[c.Key] = true
	}
	out := slices.Clone(changes)
	for key, line := range lines {
		if !has[key] && line[len(line)-1].text != "" {
			out = append(out, Change{Key: key})
		}
	}
	return out
}

// A view is the progress of one observer. Its observations of a key must be a selection of
// the key's timeline, in order. The view takes the earliest point that fits, which leaves
// all later ones possible.
type view struct {
	lines map[string][]point
	at    map[string]int // by key, index in its timeline
}

// views has one view for each observer, over the same timelines.
type views struct {
	lines map[string][]point
	byWho map[string]*view
}

// newViews returns the views before any observation.
func newViews(h History) *views {
	return &views{lines: timelines(h.Writes), byWho: map[string]*view{}}
}

// of returns the view of an observer, which begins at the first call.
func (vs *views) of(who string) *view {
	v := vs.byWho[who]
	if v == nil {
		v = &view{lines: vs.lines, at: map[string]int{}}
		vs.byWho[who] = v
	}
	return v
}

// expand returns the changes of s, with the removals that it implies.
func (v *view) expand(s Seen) []Change {
	if !s.All {
		return s.Changes
	}
	has := map[string]bool{}
	for _, c := range s.Changes {
		has[c.Key] = true
	}
	out := slices.Clone(s.Changes)
	for key := range v.at {
		if !has[key] && v.now(key) != "" {
			out = append(out, Change{Key: key})
		}
	}
	return out
}

// now returns the observer's text of a key.
func (v *view) now(key string) string {
	line := v.lines[key]
	if line == nil {
		return ""
	}
	return line[v.at[key]].text
}

// advance goes to the first fitting point at or after the present one. It returns whether
// that point existed at the time of the observation.
func (v *view) advance(c Change, at time.Duration) bool {
	line := v.lines[c.Key]
	if line == nil {
		return c.Text == ""
	}
	for i := v.at[c.Key]; i < len(line) && line[i].from <= at; i++ {
		if line[i].text == c.Text {
			v.at[c.Key] = i
			return true
		}
	}
	return false
}

// last returns the last point that fits the observer's text at a time. Equal empty points
// may all fit.
func (v *view) last(key string, at time.Duration) int {
	line, best := v.lines[key], v.at[key]
	for i := best + 1; i < len(line) && line[i].from <= at; i++ {
		if line[i].text == line[best].text {
			best = i
		}
	}
	return best
}

// removedSince returns whether the write made, or one after it up to a time, removed the
// key.
func (v *view) removedSince(key string, made int, at time.Duration) bool {
	return slices.ContainsFunc(v.lines[key], func(p point) bool { return p.made >= made && p.text == "" && p.from <= at })
}

// resume continues after a violation, at any point that fits the observation.
func (v *view) resume(c Change) {
	i := slices.IndexFunc(v.lines[c.Key], func(p point) bool { return p.text == c.Text })
	if i >= 0 {
		v.at[c.Key] = i
	}
}

// held describes the store's text at a time and the observer's text, for people.
func (v *view) held(key string, at time.Duration) string {
	line := v.lines[key]
	i := len(line) - 1
	for i > 0 && line[i].from > at {
		i--
	}
	return fmt.Sprintf("%q and the observer had %q", short(line[i].text), short(v.now(key)))
}

// why describes the violation of an observation.
func (v *view) why(c Change, at time.Duration) string {
	i := slices.IndexFunc(v.lines[c.Key], func(p point) bool { return p.text == c.Text })
	switch {
	case i < 0:
		return fmt.Sprintf("%q was never written", short(c.Text))
	case v.lines[c.Key][i].from > at:
		return fmt.Sprintf("%q is seen before it is written", short(c.Text))
	}
	return fmt.Sprintf("%q is seen after %q", short(c.Text), short(v.now(c.Key)))
}
