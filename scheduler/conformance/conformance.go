// Package conformance has the tests that every descriptor must pass. It is test code: no
// product package imports it.
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
// The cases call the descriptor like the scheduler, but one function at a time and with
// more checks: messages are compared before and after each call, verbs are called twice
// and concurrently, and the result of Retrieve is compared with the desired values. The
// effect of a descriptor on its system is not tested here; its own tests do that.
//
// Without Retrieve the actual state is unknown; then only the results of the functions are
// checked.
//
// Tests of this package: a descriptor over a map passes, and for each case there is a
// fault that the case detects.
package conformance

import (
	"cmp"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/scheduler"
)

// A Suite describes a descriptor for Run.
type Suite[V proto.Message, M any] struct {
	// New returns the descriptor over a system that has no item of Values, but all their
	// dependencies. Each case gets its own descriptor. Goroutines of New end with t.
	New func(t *testing.T) scheduler.Descriptor[V, M]
	// Values are valid and do not depend on each other. At least two are required. Key
	// defaults to the model's key of Value.
	Values []scheduler.Desired[V]
	// Changes has one change for each kind of change that the descriptor distinguishes, at
	// least one. Each changes one value.
	Changes []Change[V]
	// Parts creates the derived values of a created value, like their own descriptors
	// would, in the system of the last descriptor from New. Required if derived values
	// have verbs and no Retrieve. Defaults to none.
	Parts func(t *testing.T, base scheduler.Desired[V], meta M, parts []scheduler.KeyValue)
	// Alone reports whether a derived value has a Retrieve of its own. Defaults to false.
	Alone func(key string) bool
	// SameMeta reports whether the metadata that Create returned and that Retrieve reports for
	// the same item mean the same. Defaults to reflect.DeepEqual.
	SameMeta func(created, retrieved M) bool
	// Break makes the system of the last descriptor from New unreadable, such as by closing
	// its connection. Without it, a Retrieve that swallows its errors is not found.
	Break func(t *testing.T)
	// Invalid are values that Validate refuses. Defaults to none if there is no Validate.
	Invalid []Invalid[V]

	declared []scheduler.Desired[V] // all of the above and an empty value, before Normalize
}

// A Change replaces a value by another version. Both are valid. Key defaults to the
// model's key, which both must have.
type Change[V proto.Message] struct {
	Name     string
	Key      string
	From, To V
	How      How
}

// How is the way in which a descriptor follows a change.
type How uint8

const (
	Updated   How = iota // in place, by Update
	Recreated            // by Delete and Create
	Unchanged            // no verb: the versions are equivalent
)

// String is the word that errors use.
func (h How) String() string { return [...]string{"updated", "recreated", "unchanged"}[h] }

// An Invalid is a value with the paths of all its invalid fields, in any order.
type Invalid[V proto.Message] struct {
	Name   string
	Key    string // Defaults to the first key of Values
	Value  V
	Fields []string
}

// Run runs all cases that apply to the descriptor.
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

// A testCase gets its own bench with an empty system.
type testCase[V proto.Message, M any] struct {
	name string
	run  func(b *bench[V, M])
}

// run gives each case a descriptor of its own, so that a failed case leaves nothing to
// others.
func run[V proto.Message, M any](t *testing.T, s Suite[V, M], cases []testCase[V, M]) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.run(&bench[V, M]{T: t, suite: s, d: s.New(t)}) })
	}
}

// complete adds the default keys, and fails if the suite tests too little.
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

// missing lists the parts that the suite needs for features of the descriptor.
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

// keyOf returns the key of a value of the suite: the given one, or that of the model.
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
