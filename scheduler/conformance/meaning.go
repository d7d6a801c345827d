package conformance

import (
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/limits"
	"github.com/keyplane/keyplane/scheduler"
)

// runMeaning checks the pure functions.
func runMeaning[V proto.Message, M any](t *testing.T, s Suite[V, M]) {
	run(t, s, []testCase[V, M]{
		{"it can be registered and has the keys", registered[V, M]},
		{"normalizing twice gives the same", normalized[V, M]},
		{"values are valid", valid[V, M]},
		{"Validate names every invalid field", invalid[V, M]},
		{"dependencies are labelled and distinct", dependencies[V, M]},
		{"derived values have keys of their own", derived[V, M]},
		{"claims name their resource and their field", claims[V, M]},
		{"changes are followed as declared", followed[V, M]},
		{"pure functions change nothing", pure[V, M]},
		{"pure functions take any message", total[V, M]},
	})
}

// registered checks that the descriptor accepts the keys of its own values.
func registered[V proto.Message, M any](b *bench[V, M]) {
	s := b.scheduler()
	for _, w := range b.suite.Values {
		if _, err := s.Value(w.Key, w.Value); err != nil {
			b.Errorf("%s: %v", w.Key, err)
		}
	}
}

// normalized checks that normalizing twice changes nothing. Retrieved values are
// normalized too; a second change would make every value differ from itself.
func normalized[V proto.Message, M any](b *bench[V, M]) {
	if b.d.Normalize == nil {
		return
	}
	for _, w := range b.suite.declared {
		changed := lend(w.Value)
		once, warnings := b.d.Normalize(w.Key, w.Value)
		if err := changed(); err != nil {
			b.Errorf("%s: %v", w.Key, err)
		}
		if len(warnings) > 0 && proto.Equal(once, w.Value) {
			b.Errorf("%s: warnings %q, but nothing of %v is ignored", w.Key, warnings, w.Value)
		}
		if twice, more := b.d.Normalize(w.Key, once); !proto.Equal(once, twice) || len(more) > 0 {
			b.Errorf("%s: normalized once it is %v, twice %v, with warnings %q", w.Key, once, twice, more)
		}
	}
}

// valid checks that no value of the suite is refused.
func valid[V proto.Message, M any](b *bench[V, M]) {
	check := func(key string, v V) {
		if err := b.validate(key, v); err != nil {
			b.Errorf("%s: %v: %v", key, v, err)
		}
	}
	for _, w := range b.suite.Values {
		check(w.Key, w.Value)
	}
	for _, c := range b.suite.Changes {
		check(c.Key, c.From)
		check(c.Key, c.To)
	}
}

// validate is Validate; without it, every value is valid.
func (b *bench[V, M]) validate(key string, v V) error {
	if b.d.Validate == nil {
		return nil
	}
	return b.d.Validate(key, v)
}

// outside returns the fields that the limits of a built-in model refuse.
func (b *bench[V, M]) outside(v V) []string {
	if b.d.Model.Model == nil {
		return nil
	}
	return models.Fields(limits.Validation(b.d.Model.Model)(v))
}

// invalid expects all invalid fields at once, so that a user can fix all of them together. Those
// that the limits of the model refuse need no check of the descriptor.
func invalid[V proto.Message, M any](b *bench[V, M]) {
	for _, v := range b.suite.Invalid {
		got, want := models.Fields(b.validate(v.Key, v.Value)), slices.Clone(v.Fields)
		for _, field := range b.outside(v.Value) {
			if slices.Contains(want, field) {
				got = append(got, field)
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(slices.Compact(got), slices.Compact(want)) {
			b.Errorf("%s: Validate names the fields %q, want %q", v.Name, got, want)
		}
	}
}

// dependencies checks the form of each dependency. Its label is all that people see of it,
// so it is required, and unique within a value.
func dependencies[V proto.Message, M any](b *bench[V, M]) {
	for _, w := range b.versions() {
		labels := map[string]bool{}
		for _, d := range b.dependencies(w) {
			switch {
			case d.Label == "":
				b.Errorf("%s: a dependency on %q%q%q has no label", w.Key, d.Key, d.Keys, d.Prefixes)
			case labels[d.Label]:
				b.Errorf("%s: two dependencies are labelled %q", w.Key, d.Label)
			case forms(d) != 1:
				b.Errorf("%s: %s: want one of Key, Keys and Prefixes, not %q, %q and %q", w.Key, d.Label, d.Key, d.Keys, d.Prefixes)
			case d.Key == w.Key || slices.Contains(d.Keys, w.Key):
				b.Errorf("%s: %s: it depends on itself", w.Key, d.Label)
			}
			labels[d.Label] = true
		}
	}
}

// dependencies is Dependencies; without it, there are none.
// forms counts the forms in which d says how it is met.
func forms(d scheduler.Dependency) (n int) {
	for _, has := range []bool{d.Key != "", len(d.Keys) > 0, len(d.Prefixes) > 0} {
		if has {
			n++
		}
	}
	return n
}

func (b *bench[V, M]) dependencies(w scheduler.Desired[V]) []scheduler.Dependency {
	if b.d.Dependencies == nil {
		return nil
	}
	return b.d.Dependencies(w.Key, w.Value)
}

// derived checks the form of each derived value. A key that comes twice would be two
// values of which the scheduler keeps one.
func derived[V proto.Message, M any](b *bench[V, M]) {
	for _, w := range b.versions() {
		keys := map[string]bool{w.Key: true}
		for _, kv := range b.derived(w) {
			switch {
			case kv.Key == "":
				b.Errorf("%s: a derived value has no key", w.Key)
			case keys[kv.Key]:
				b.Errorf("%s: derived key %s is its own or comes twice", w.Key, kv.Key)
			case kv.Value == nil || !kv.Value.ProtoReflect().IsValid():
				b.Errorf("%s: derived %s has no value", w.Key, kv.Key)
			}
			keys[kv.Key] = true
		}
	}
}

// derived is Derived; without it, there are none.
func (b *bench[V, M]) derived(w scheduler.Desired[V]) []scheduler.KeyValue {
	if b.d.Derived == nil {
		return nil
	}
	return b.d.Derived(w.Key, w.Value)
}

// claims checks that each claim can be explained to people if it is lost.
func claims[V proto.Message, M any](b *bench[V, M]) {
	for _, w := range b.versions() {
		for _, c := range b.claims(w) {
			if c.Resource == "" || c.Field == "" || c.Want == "" {
				b.Errorf("%s: %+v: Resource, Field and Want are required", w.Key, c)
			}
		}
	}
}

// claims is Claims; without it, there are none.
func (b *bench[V, M]) claims(w scheduler.Desired[V]) []scheduler.Claim {
	if b.d.Claims == nil {
		return nil
	}
	return b.d.Claims(w.Key, w.Value)
}

// versions returns all valid values of the suite.
func (b *bench[V, M]) versions() []scheduler.Desired[V] { return b.suite.versions() }

// versions returns all valid values: those of Values, and both sides of each change.
func (s *Suite[V, M]) versions() []scheduler.Desired[V] {
	out := slices.Clone(s.Values)
	for _, c := range s.Changes {
		out = append(out, version(c, c.From), version(c, c.To))
	}
	return out
}

// followed checks Equivalent and Recreate without metadata.
func followed[V proto.Message, M any](b *bench[V, M]) {
	for _, w := range b.versions() {
		if !b.equivalent(w.Key, w.Value, proto.Clone(w.Value).(V)) {
			b.Errorf("%s: %v is not equivalent to itself", w.Key, w.Value)
		}
	}
	for _, c := range b.suite.Changes {
		var none M
		how := Updated
		switch {
		case b.equivalent(c.Key, c.From, c.To):
			how = Unchanged
		case b.recreate(c.Key, c.From, c.To, none):
			how = Recreated
		}
		if how != c.How {
			b.Errorf("%s: the value is %s, want %s", c.Name, how, c.How)
		}
	}
}

// think calls each pure function and renders the results.
func (b *bench[V, M]) think(w scheduler.Desired[V]) string {
	var none M
	other := b.suite.Values[0].Value
	return fmt.Sprint(b.validate(w.Key, w.Value), b.equivalent(w.Key, w.Value, other), b.recreate(w.Key, w.Value, other, none),
		labels(b.dependencies(w)), b.derived(w), b.claims(w))
}

// labels renders the comparable part of dependencies.
func labels(deps []scheduler.Dependency) (out []string) {
	for _, d := range deps {
		out = append(out, d.Label+" "+d.Key+fmt.Sprint(d.Keys, d.Prefixes))
	}
	return out
}

// pure calls the pure functions twice. They must answer the same, and change no message.
func pure[V proto.Message, M any](b *bench[V, M]) {
	for _, w := range b.everything() {
		changed := lend(w.Value, b.suite.Values[0].Value)
		first, second := b.think(w), b.think(w)
		if err := changed(); err != nil {
			b.Errorf("%s: %v", w.Key, err)
		}
		if first != second {
			b.Errorf("%s: asked twice, the functions said different things:\n%s\n%s", w.Key, first, second)
		}
	}
}

// total checks that invalid values do no harm to the pure functions.
func total[V proto.Message, M any](b *bench[V, M]) {
	for _, w := range b.everything() {
		func() {
			defer func() {
				if p := recover(); p != nil {
					b.Errorf("%s: panic on %v: %v", w.Key, w.Value, p)
				}
			}()
			b.think(w)
		}()
	}
}

// everything returns all values of the suite, including invalid ones and an empty one.
func (b *bench[V, M]) everything() []scheduler.Desired[V] { return b.suite.everything() }

// everything returns the valid values, the invalid ones, and an empty message: functions
// are called for invalid values, too, and must not panic.
func (s *Suite[V, M]) everything() []scheduler.Desired[V] {
	out := s.versions()
	for _, v := range s.Invalid {
		out = append(out, scheduler.Desired[V]{Key: v.Key, Value: v.Value})
	}
	first := s.Values[0]
	empty := first.Value.ProtoReflect().New().Interface().(V)
	return append(out, scheduler.Desired[V]{Key: first.Key, Value: empty})
}
