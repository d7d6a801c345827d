// Package explain finds the reasons why a value is not applied.
//
//	fmt.Print(explain.Key(s, "mount/home"))
//
// An explanation is a tree: the status of the value, below it the values that it waits for or
// that hold its resources, and so on down to causes that somebody can remove. A value that is
// applied may have derived values that are not: those are below it too. It is computed
// from one snapshot of all statuses; no transaction waits for it.
package explain

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/internal/nearest"
	"github.com/keyplane/keyplane/internal/printable"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/inspect"
	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// An Explanation describes the status of one value and the causes of this status.
type Explanation struct {
	Key     string
	State   scheduler.State // NONEXISTENT: the value is not declared
	Text    string          // one sentence about Key
	Because []Explanation
}

// String renders the explanation as lines; causes are indented below their effect.
func (e Explanation) String() string {
	var b strings.Builder
	e.write(&b, "")
	return b.String()
}

// write renders one level; a line feed within a text would look like another cause.
func (e Explanation) write(b *strings.Builder, indent string) {
	fmt.Fprintf(b, "%s%s\n", indent, printable.Line(e.Text))
	for _, c := range e.Because {
		c.write(b, indent+"  ")
	}
}

// Key explains the value under key. It includes running verbs of the value and its causes.
func Key(s *scheduler.Scheduler, key string) Explanation { return newExplainer(s).explain(key) }

// Roots returns for each of the keys the explanations without further causes: the leaves of its
// tree, at most so many. A value without causes, such as one whose verb has failed, has none.
// Unlike Key it does not search for similar keys, so it can explain many values at once.
func Roots(s *scheduler.Scheduler, keys []string, most int) map[string][]Explanation {
	x := newExplainer(s)
	x.terse = true
	out := map[string][]Explanation{}
	for _, key := range keys {
		clear(x.explained)
		var leaves []Explanation
		for leaf := range x.explain(key).leaves() {
			if slices.ContainsFunc(leaves, func(e Explanation) bool { return e.Key != "" && e.Key == leaf.Key }) {
				continue // two dependencies with one cause
			}
			if leaves = append(leaves, leaf); len(leaves) == most {
				break
			}
		}
		out[key] = leaves
	}
	return out
}

// leaves yields the explanations below e that have no causes.
func (e Explanation) leaves() iter.Seq[Explanation] {
	return func(yield func(Explanation) bool) { e.visit(yield) }
}

// visit calls yield for each leaf below e until it returns false.
func (e Explanation) visit(yield func(Explanation) bool) bool {
	for _, c := range e.Because {
		if len(c.Because) == 0 && !yield(c) || !c.visit(yield) {
			return false
		}
	}
	return true
}

// newExplainer takes a snapshot of all statuses.
func newExplainer(s *scheduler.Scheduler) *explainer {
	x := &explainer{
		running: func(key string) (inspect.Verb, bool) { return inspect.Running(s, key) },
		kinds:   s.Inside().Registry, unknown: s.Unknown(),
		byKey: map[string]*scheduler.Status{}, derives: map[string]*scheduler.Status{},
		path: map[string]bool{}, explained: map[string]bool{},
	}
	for st := range s.All() {
		x.byKey[st.Key] = st
		for _, d := range st.Derived() {
			x.derives[d] = st
		}
	}
	return x
}

// explainer has a snapshot of all statuses. It belongs to one call of Key or Roots, so it needs
// no lock.
type explainer struct {
	running func(key string) (inspect.Verb, bool)
	kinds   *kind.Registry
	unknown map[string]scheduler.UnknownKind // by descriptor
	byKey   map[string]*scheduler.Status
	derives map[string]*scheduler.Status // by derived key: the base
	terse   bool                         // without the nearest key, which costs a pass over all keys
	// A key on the path again is a cycle; one that was explained elsewhere is not
	// explained twice, so the tree is not larger than the graph.
	path      map[string]bool // keys from the root to the present one
	explained map[string]bool
}

// explain explains a key, and its causes below it.
func (x *explainer) explain(key string) Explanation {
	st := x.byKey[key]
	if st == nil {
		return x.absent(key)
	}
	e := Explanation{Key: key, State: st.State, Text: x.statusText(st)}
	switch {
	case x.path[key]:
		e.Text = key + " waits for itself: a cycle"
		return e
	case x.explained[key]:
		e.Text += ", see above"
		return e
	}
	asked := len(x.path) == 0
	x.path[key], x.explained[key] = true, true
	defer delete(x.path, key)
	switch {
	case st.State == scheduler.Pending || st.State == scheduler.Missing:
		doubt := x.doubt(st)
		for _, d := range st.Waits {
			if doubt != nil && d.Key == "" && d.Label == doubt.Why {
				e.Because = append(e.Because, Explanation{Text: nobodyKnows + doubt.String()})
				continue
			}
			e.Because = append(e.Because, x.unmet(d))
		}
	case asked && applied(st.State):
		e.Because = x.unappliedParts(st)
	}
	for _, key := range holders(st.Err) {
		e.Because = append(e.Because, x.explain(key))
	}
	return e
}

// nobodyKnows introduces the reason why a value is unknown.
const nobodyKnows = "nobody knows whether it exists: "

// doubt returns the unknown kind that shows whether a value exists: its own, or that of its base; nil: it is known.
func (x *explainer) doubt(st *scheduler.Status) *scheduler.UnknownKind {
	if k, is := x.unknown[st.Descriptor]; is {
		return &k
	}
	if base := x.byKey[st.Base]; base != nil {
		return x.doubt(base)
	}
	return nil
}

// doubtOf returns the unknown kind of one of these descriptors; nil: none is unknown.
func (x *explainer) doubtOf(all iter.Seq[graph.Kind]) *scheduler.UnknownKind {
	for of := range all {
		if d, is := of.(*kind.Descriptor); is {
			if k, is := x.unknown[d.Name]; is {
				return &k
			}
		}
	}
	return nil
}

// statusText describes a status in one sentence.
func (x *explainer) statusText(st *scheduler.Status) string {
	text := fmt.Sprintf("%s is %s", st.Key, st.State)
	if st.Err != nil {
		text += ": " + firstLine(st.Err)
	}
	parts := []string{text}
	if st.State == scheduler.Invalid && len(x.path) == 0 { // causes are about other keys
		parts = append(parts, "in force: "+inForce(st))
	}
	parts = append(parts, st.Warnings()...)
	if r, ok := x.running(st.Key); ok {
		parts = append(parts, r.String())
	}
	return strings.Join(parts, "; ")
}

// unappliedParts explains the derived values that are not in the system although their base is.
func (x *explainer) unappliedParts(st *scheduler.Status) (out []Explanation) {
	for _, part := range st.Derived() {
		if d := x.byKey[part]; d != nil && !applied(d.State) {
			out = append(out, x.explain(part))
		}
	}
	return out
}

// applied reports whether a value in this state is in the system. Its derived values may not be.
func applied(s scheduler.State) bool {
	return s == scheduler.Configured || s == scheduler.Obtained || s == scheduler.Discovered
}

// maxInForce is the length in bytes after which a value in an explanation is cut.
const maxInForce = 200

// inForce shows the value that is applied in place of an invalid one: the last valid one, or none.
func inForce(st *scheduler.Status) string {
	if st.Actual == nil {
		return "(none)"
	}
	return printable.Cut(value.Line(st.Actual), maxInForce)
}

// unmet explains an unmet dependency.
func (x *explainer) unmet(d scheduler.Dependency) Explanation {
	key := d.Key
	if key == "" {
		key = x.first(d.MetBy)
	}
	switch {
	case key != "":
		e := x.explain(key)
		e.Text = d.Label + ": " + e.Text
		return e
	case len(d.Keys) > 0:
		return Explanation{Text: fmt.Sprintf("%s: needs any of %s, and there is none", d.Label, strings.Join(d.Keys, ", "))}
	case len(d.Prefixes) == 0 && d.Match != nil:
		return Explanation{Text: d.Label + ": needs any value with a key that it accepts, and there is none"}
	case len(d.Prefixes) == 0:
		return Explanation{Text: d.Label}
	}
	prefixes, remedy := strings.Join(d.Prefixes, "*, "), ""
	if d.Remedy != "" {
		remedy = "; " + d.Remedy
	}
	for _, prefix := range d.Prefixes {
		if k := x.doubtOf(x.kinds.KindsUnder(prefix)); k != nil {
			return Explanation{Text: fmt.Sprintf("%s: needs any value under %s*, and nobody knows whether there is one: %s", d.Label, prefixes, k)}
		}
	}
	e := Explanation{Text: fmt.Sprintf("%s: needs any value under %s*, and there is none%s", d.Label, prefixes, remedy)}
	if key := x.first(func(key string) bool { return underAny(key, d.Prefixes) }); key != "" {
		e.Text = fmt.Sprintf("%s: no value under %s* will do, such as %s%s", d.Label, prefixes, key, remedy)
	}
	for _, prefix := range d.Prefixes {
		if base := x.kinds.Origin(prefix); base != "" {
			e.Because = append(e.Because, x.without(base, prefix+"*"))
		}
	}
	return e
}

// without explains the value with which a missing key, or those with a prefix, would come: nobody can declare
// these themselves.
func (x *explainer) without(base, missing string) Explanation {
	e := x.explain(base)
	st := x.byKey[base]
	if st == nil || !applied(st.State) || len(e.Because) > 0 {
		return e
	}
	e.Text += ", without " + missing
	if x.terse {
		return e
	}
	if near := nearest.Word(missing, st.Derived()); near != "" {
		e.Text += "; the nearest that it has: " + near
	}
	return e
}

// first returns the first known or derived key that is accepts.
func (x *explainer) first(is func(key string) bool) (out string) {
	for _, keys := range []map[string]*scheduler.Status{x.byKey, x.derives} {
		for key := range keys {
			if is(key) && (out == "" || key < out) {
				out = key
			}
		}
	}
	return out
}

// underAny reports whether the key begins with one of the prefixes.
func underAny(key string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(key, p) {
			return true
		}
	}
	return false
}

// absent explains a key without a status.
func (x *explainer) absent(key string) Explanation {
	if r, ok := x.running(key); ok {
		return Explanation{Key: key, Text: key + " is not there yet; " + r.String()}
	}
	if base := x.derives[key]; base != nil {
		e := x.explain(base.Key)
		return Explanation{Key: key, Text: fmt.Sprintf("%s will come with %s", key, base.Key), Because: []Explanation{e}}
	}
	if k := x.doubtOf(func(yield func(graph.Kind) bool) { yield(x.kinds.KindOf(key)) }); k != nil {
		return Explanation{Key: key, Text: key + ": " + nobodyKnows + k.String()}
	}
	if base := x.kinds.Origin(key); base != "" {
		return Explanation{Key: key, Text: key + " comes with " + base, Because: []Explanation{x.without(base, key)}}
	}
	text, others := key+", which nobody declares", "is declared"
	if d := x.kinds.Of(key); d != nil && d.Absent != nil {
		text, others = key+" does not exist: "+d.Absent(key), "exists"
	}
	again := x.explained[key]
	x.explained[key] = true
	switch {
	case again:
		return Explanation{Key: key, Text: text + ", see above"}
	case x.terse:
		return Explanation{Key: key, Text: text}
	}
	if near := x.nearest(key); near != "" {
		text += "; the nearest that " + others + ": " + near
	}
	return Explanation{Key: key, Text: text}
}

// nearest returns the most similar key, in the same folder or else in the same part of the
// key space.
func (x *explainer) nearest(key string) string {
	// A mistake in the last part of a key is the most frequent one.
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

// nearestIn returns the most similar key in a folder. Keys are sorted first, so that one
// of two equally similar keys is always the same.
func (x *explainer) nearestIn(folder, key string) string {
	var words []string
	for _, keys := range []map[string]*scheduler.Status{x.byKey, x.derives} {
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

// holders returns the keys of the values that hold claimed resources, according to err.
func holders(err error) (out []string) {
	switch e := err.(type) { //nolint:errorlint // it unwraps what it meets itself
	case *kind.Conflict:
		out = append(out, e.Holder)
	case interface{ Unwrap() error }:
		out = holders(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			out = append(out, holders(one)...)
		}
	}
	return out
}

// maxErrorText is the maximum length of an error, in bytes. Longer texts are cut.
const maxErrorText = 1 << 10

// firstLine returns the first line of an error, within maxErrorText: the rest is in the
// status.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return printable.Cut(line, maxErrorText)
}
