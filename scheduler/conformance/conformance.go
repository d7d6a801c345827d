// Package conformance is what every descriptor must do, as tests.
//
//	func TestDescriptor(t *testing.T) {
//		conformance.Run(t, conformance.Suite[*Policer, uint32]{
//			New:     func(t *testing.T) scheduler.Descriptor[*Policer, uint32] { return descriptor(newDevice()) },
//			Values:  []scheduler.Desired[*Policer]{{Key: "policer/a", Value: &Policer{Name: "a", Kbps: 64}}},
//			Changes: []conformance.Change[*Policer]{{Name: "faster", ...}},
//			Invalid: []conformance.Invalid[*Policer]{{Name: "no rate", ...}},
//		})
//	}
//
// The cases call the descriptor as the scheduler does, but one function at a
// time and with more suspicion: messages are compared before and after each
// call, verbs are called twice and at once, and what Retrieve finds is held
// against what was asked for. What a single descriptor makes of its system is
// for its own tests.
//
// A descriptor without Retrieve cannot be asked what stands; then only what
// its functions return is checked.
//
// Tests of this package: a descriptor over a map passes, and for each case there
// is a fault in it that the case notices.
package conformance

import (
	"cmp"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/scheduler"
)

// A Suite is what Run has to know of a descriptor.
type Suite[V proto.Message, M any] struct {
	// New returns the descriptor, over a southbound in which none of Values
	// stands but all that they depend on does. Each case gets one of its own;
	// what New starts ends with t.
	New func(t *testing.T) scheduler.Descriptor[V, M]
	// Values are valid, at least two, and do not depend on each other. Key
	// defaults to what the descriptor's model makes of Value.
	Values []scheduler.Desired[V]
	// Changes are of one value each: at least one of each sort that the
	// descriptor tells apart.
	Changes []Change[V]
	// Parts creates the derived values of a value that was created, as their own descriptors would,
	// in the southbound of the descriptor that New returned last. Required where derived values
	// have verbs and no Retrieve; defaults to doing nothing.
	Parts func(t *testing.T, base scheduler.Desired[V], meta M, parts []scheduler.KeyValue)
	// Alone tells the derived values that have a Retrieve of their own. Defaults to none.
	Alone func(key string) bool
	// Invalid are values that Validate refuses. Defaults to none, where there is
	// no Validate.
	Invalid []Invalid[V]

	declared []scheduler.Desired[V] // all of the above and an empty value, before Normalize
}

// A Change of a value from one version to another, both valid. Key defaults to
// what the descriptor's model makes of both.
type Change[V proto.Message] struct {
	Name     string
	Key      string
	From, To V
	How      How
}

// How a descriptor follows a change.
type How uint8

const (
	Updated   How = iota // in place, by Update
	Recreated            // by Delete and Create
	Unchanged            // not at all: the versions are equivalent
)

func (h How) String() string { return [...]string{"updated", "recreated", "unchanged"}[h] }

// Invalid is a value with the paths of all its invalid fields, in any order.
type Invalid[V proto.Message] struct {
	Name   string
	Key    string // Defaults to the first of Values'
	Value  V
	Fields []string
}

// Run runs every case that applies to the descriptor.
func Run[V proto.Message, M any](t *testing.T, s Suite[V, M]) {
	d := s.New(t)
	s.complete(t, d)
	runMeaning(t, s)
	if d.Create != nil {
		runVerbs(t, s)
	}
	if d.Retrieve != nil {
		runRetrieve(t, s)
	}
}

// a testCase gets a bench of its own, with nothing on it.
type testCase[V proto.Message, M any] struct {
	name string
	run  func(b *bench[V, M])
}

func run[V proto.Message, M any](t *testing.T, s Suite[V, M], cases []testCase[V, M]) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.run(&bench[V, M]{T: t, suite: s, d: s.New(t)}) })
	}
}

// complete fills in keys, and fails where the suite would show too little.
func (s *Suite[V, M]) complete(t *testing.T, d scheduler.Descriptor[V, M]) {
	t.Helper()
	if missing := s.missing(d); missing != "" {
		t.Fatal(missing)
	}
	for i, w := range s.Values {
		s.Values[i].Key = keyOf(t, d, w.Key, w.Value)
	}
	for i, c := range s.Changes {
		s.Changes[i].Key = keyOf(t, d, c.Key, c.From)
	}
	for i, v := range s.Invalid {
		s.Invalid[i].Key = cmp.Or(v.Key, s.Values[0].Key)
	}
	s.declared = s.everything()
	if d.Normalize == nil {
		return
	}
	normal := func(key string, v V) V { v, _ = d.Normalize(key, v); return v }
	for i, w := range s.Values {
		s.Values[i].Value = normal(w.Key, w.Value)
	}
	for i, c := range s.Changes {
		s.Changes[i].From, s.Changes[i].To = normal(c.Key, c.From), normal(c.Key, c.To)
	}
	for i, v := range s.Invalid {
		s.Invalid[i].Value = normal(s.Invalid[i].Key, v.Value)
	}
}

// missing says what the suite should have, because the descriptor has something
// that would not be tested.
func (s *Suite[V, M]) missing(d scheduler.Descriptor[V, M]) string {
	hows := map[How]bool{}
	for _, c := range s.Changes {
		hows[c.How] = true
	}
	switch {
	case len(s.Values) < 2:
		return "Values: expected at least two"
	case d.Validate != nil && len(s.Invalid) == 0:
		return "Invalid: expected some, the descriptor has Validate"
	case d.Update != nil && !hows[Updated]:
		return "Changes: expected one that is Updated, the descriptor has Update"
	case d.Update != nil && d.Recreate != nil && !hows[Recreated]:
		return "Changes: expected one that is Recreated, the descriptor has Recreate"
	case d.Equivalent != nil && !hows[Unchanged]:
		return "Changes: expected one that is Unchanged, the descriptor has Equivalent"
	}
	return ""
}

func keyOf[V proto.Message, M any](t *testing.T, d scheduler.Descriptor[V, M], key string, v V) string {
	t.Helper()
	if key != "" {
		return key
	}
	if d.Model.Model == nil {
		t.Fatalf("%v: expected a Key, the descriptor has no Model", v)
	}
	key, err := d.Model.Key(v)
	if err != nil {
		t.Fatalf("%v: %v", v, err)
	}
	return key
}
