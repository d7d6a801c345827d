package conformance

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/scheduler"
)

// A bench has the descriptor of one case and calls its verbs.
type bench[V proto.Message, M any] struct {
	*testing.T
	suite Suite[V, M]
	d     scheduler.Descriptor[V, M]
}

// errChanged means that a function changed a shared message.
var errChanged = errors.New("the message was changed: it is shared")

// lend returns a function that reports a change of messages since.
func lend(messages ...proto.Message) (changed func() error) {
	var before []proto.Message
	for _, m := range messages {
		before = append(before, proto.Clone(m))
	}
	return func() error {
		for i, m := range messages {
			if !proto.Equal(m, before[i]) {
				return fmt.Errorf("%w: from %v to %v", errChanged, before[i], m)
			}
		}
		return nil
	}
}

// tryCreate also returns an error if Create changed the message that it was lent.
func (b *bench[V, M]) tryCreate(w scheduler.Desired[V]) (M, error) {
	changed := lend(w.Value)
	m, err := b.d.Create(b.Context(), w.Key, w.Value)
	return m, errors.Join(err, changed())
}

// tryDelete also returns an error if Delete changed the message that it was lent.
func (b *bench[V, M]) tryDelete(w scheduler.Desired[V], m M) error {
	changed := lend(w.Value)
	err := b.d.Delete(b.Context(), w.Key, w.Value, m)
	return errors.Join(err, changed())
}

// create ends the case if Create fails.
func (b *bench[V, M]) create(w scheduler.Desired[V]) M {
	b.Helper()
	m, err := b.tryCreate(w)
	if err != nil {
		b.Fatalf("Create %s: %v", w.Key, err)
	}
	return m
}

// update ends the case if Update fails or changes a message that it was lent.
func (b *bench[V, M]) update(key string, old, new V, m M) M {
	b.Helper()
	changed := lend(old, new)
	m, err := b.d.Update(b.Context(), key, old, new, m)
	if err := errors.Join(err, changed()); err != nil {
		b.Fatalf("Update %s: %v", key, err)
	}
	return m
}

// delete ends the case if Delete fails.
func (b *bench[V, M]) delete(w scheduler.Desired[V], m M) {
	b.Helper()
	if err := b.tryDelete(w, m); err != nil {
		b.Fatalf("Delete %s: %v", w.Key, err)
	}
}

// standing returns our values from Retrieve, by key; wanted are the desired values.
func (b *bench[V, M]) standing(wanted ...scheduler.Desired[V]) map[string]scheduler.Found[V, M] {
	b.Helper()
	out := map[string]scheduler.Found[V, M]{}
	for f, err := range Taken(b.d.Retrieve(b.Context(), wanted)) {
		if err != nil {
			b.Fatalf("Retrieve: %v", err)
		}
		if f.Key == "" {
			f.Key = keyOf(b.T, b.d, "", f.Value)
		}
		if _, twice := out[f.Key]; twice {
			b.Errorf("Retrieve finds %s twice", f.Key)
		}
		if !f.Foreign {
			out[f.Key] = f
		}
	}
	return out
}

// expect fails unless the actual values are exactly wanted.
func (b *bench[V, M]) expect(wanted ...scheduler.Desired[V]) {
	b.Helper()
	if b.d.Retrieve == nil {
		return
	}
	found := b.standing(wanted...)
	for _, w := range wanted {
		f, ok := found[w.Key]
		switch {
		case !ok:
			b.Errorf("Retrieve does not find %s", w.Key)
		case !b.equivalent(w.Key, f.Value, w.Value):
			b.Errorf("Retrieve finds %s as %v, want it equivalent to %v", w.Key, f.Value, w.Value)
		}
		delete(found, w.Key)
	}
	if len(found) > 0 {
		b.Errorf("Retrieve finds deleted values: %v", slices.Sorted(maps.Keys(found)))
	}
}

// equivalent is Equivalent with its default, as the scheduler applies it.
func (b *bench[V, M]) equivalent(key string, old, new V) bool {
	if b.d.Equivalent == nil {
		return proto.Equal(old, new)
	}
	return b.d.Equivalent(key, old, new)
}

// recreate is Recreate with its default, as the scheduler applies it.
func (b *bench[V, M]) recreate(key string, old, new V, m M) bool {
	switch {
	case b.d.Update == nil:
		return true
	case b.d.Recreate == nil:
		return false
	}
	return b.d.Recreate(key, old, new, m)
}

// scheduler returns a scheduler with the descriptor. It knows the model of the descriptor,
// which may be that of another program.
func (b *bench[V, M]) scheduler() *scheduler.Scheduler {
	b.Helper()
	all := models.BuiltIn()
	if m := b.d.Model.Model; m != nil && !all.Has(m) {
		var err error
		if all, err = all.With(m); err != nil {
			b.Fatal(err)
		}
	}
	s := scheduler.New(scheduler.Options{Models: all})
	if _, err := scheduler.Register(s, b.d); err != nil {
		b.Fatal(err)
	}
	return s
}

// version returns one version of a change as a desired value.
func version[V proto.Message](c Change[V], v V) scheduler.Desired[V] {
	return scheduler.Desired[V]{Key: c.Key, Value: v}
}

// Taken reads like a scheduler that takes what it reads as what is there: it calls Learned, and leaves out each Found
// that has nothing else.
func Taken[V proto.Message, M any](read scheduler.Retrieved[V, M]) scheduler.Retrieved[V, M] {
	return func(yield func(scheduler.Found[V, M], error) bool) {
		for f, err := range read {
			if f.Learned != nil && err == nil {
				f.Learned()
			}
			if nothing := any(f.Value) == any(*new(V)) && err == nil; !nothing && !yield(f, err) {
				return
			}
		}
	}
}
