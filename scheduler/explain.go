package scheduler

import (
	"fmt"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/internal/nearest"
	"github.com/keyplane/keyplane/internal/printable"
	"github.com/keyplane/keyplane/proto/ligato/kvscheduler"
)

// An Explanation says how a value is, and if it is not applied, why: down to
// the causes that somebody can do something about.
type Explanation struct {
	Key     string
	State   State  // NONEXISTENT: nobody declares it
	Text    string // one sentence about Key
	Because []Explanation
}

// String is the explanation as indented lines, the causes below what they cause.
func (e Explanation) String() string {
	var b strings.Builder
	e.write(&b, "")
	return b.String()
}

func (e Explanation) write(b *strings.Builder, indent string) {
	fmt.Fprintf(b, "%s%s\n", indent, printable.Line(e.Text))
	for _, c := range e.Because {
		c.write(b, indent+"  ")
	}
}

// Explain says why the value under key is not applied, as of one moment, and which verb of it
// or of a cause runs and for how long. No transaction waits for it.
func (s *Scheduler) Explain(key string) Explanation {
	x := explainer{running: s.Running, byKey: map[string]*Status{}, derives: map[string]*Status{}, path: map[string]bool{}, told: map[string]bool{}}
	for st := range s.statuses.All() {
		x.byKey[st.Key] = st
		for _, d := range st.Derived() {
			x.derives[d] = st
		}
	}
	return x.explain(key)
}

// explainer knows all statuses of one moment.
type explainer struct {
	running func(key string) (RunningVerb, bool)
	byKey   map[string]*Status
	derives map[string]*Status // by derived key: the base that has or will have it
	path    map[string]bool    // on the way to where we are
	told    map[string]bool    // explained already
}

func (x *explainer) explain(key string) Explanation {
	st := x.byKey[key]
	if st == nil {
		return x.absent(key)
	}
	e := Explanation{Key: key, State: st.State, Text: fmt.Sprintf("%s is %s", key, st.State)}
	if st.Err != nil {
		e.Text += ": " + firstLine(st.Err)
	}
	for _, w := range warnings(st.value) {
		e.Text += "; " + w
	}
	if r, ok := x.running(key); ok {
		e.Text += "; " + r.String()
	}
	switch {
	case x.path[key]:
		e.Text = key + " waits for itself: a ring"
		return e
	case x.told[key]:
		e.Text += ", see above"
		return e
	}
	x.path[key], x.told[key] = true, true
	defer delete(x.path, key)
	if st.State == kvscheduler.ValueState_PENDING || st.State == kvscheduler.ValueState_MISSING {
		for _, d := range st.Waits {
			e.Because = append(e.Because, x.unmet(d))
		}
	}
	for _, key := range rivals(st.Err) {
		e.Because = append(e.Because, x.explain(key))
	}
	return e
}

// unmet says why a dependency is not met.
func (x *explainer) unmet(d Dependency) Explanation {
	key := d.Key
	if key == "" {
		key = x.first(d.MetBy)
	}
	switch {
	case key != "":
		e := x.explain(key)
		e.Text = d.Label + ": " + e.Text
		return e
	case len(d.Prefixes) == 0 && d.Match != nil:
		return Explanation{Text: d.Label + ": needs any value with a key that it accepts, and there is none"}
	case len(d.Prefixes) == 0:
		return Explanation{Text: d.Label}
	}
	prefixes := strings.Join(d.Prefixes, "*, ")
	if key := x.first(func(key string) bool { return underAny(key, d.Prefixes) }); key != "" {
		return Explanation{Text: fmt.Sprintf("%s: no value under %s* will do, such as %s", d.Label, prefixes, key)}
	}
	return Explanation{Text: fmt.Sprintf("%s: needs any value under %s*, and there is none", d.Label, prefixes)}
}

// first is the first key, of those that are there or will be derived, for which is holds.
func (x *explainer) first(is func(key string) bool) (out string) {
	for _, keys := range []map[string]*Status{x.byKey, x.derives} {
		for key := range keys {
			if is(key) && (out == "" || key < out) {
				out = key
			}
		}
	}
	return out
}

func underAny(key string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(key, p) {
			return true
		}
	}
	return false
}

// absent says why there is nothing under key.
func (x *explainer) absent(key string) Explanation {
	if r, ok := x.running(key); ok {
		return Explanation{Key: key, Text: key + " is not there yet; " + r.String()}
	}
	if base := x.derives[key]; base != nil {
		e := x.explain(base.Key)
		return Explanation{Key: key, Text: fmt.Sprintf("%s will come with %s", key, base.Key), Because: []Explanation{e}}
	}
	text := key + ", which nobody declares"
	if near := x.nearest(key); near != "" {
		text += "; the nearest that is declared: " + near
	}
	return Explanation{Key: key, Text: text}
}

// nearest is the key that differs least, in the same folder or else in the same
// part of the key space.
func (x *explainer) nearest(key string) string {
	folder := key[:strings.LastIndexByte(key, '/')+1]
	if near := x.nearestIn(folder, key); near != "" {
		return near
	}
	parts := strings.SplitAfterN(key, "/", 4)
	if len(parts) < 4 {
		return ""
	}
	return x.nearestIn(strings.Join(parts[:3], ""), key)
}

func (x *explainer) nearestIn(folder, key string) string {
	var words []string
	for _, keys := range []map[string]*Status{x.byKey, x.derives} {
		for k := range keys {
			if strings.HasPrefix(k, folder) {
				words = append(words, k[len(folder):])
			}
		}
	}
	slices.Sort(words)
	if near := nearest.Word(key[len(folder):], words); near != "" {
		return folder + near
	}
	return ""
}
