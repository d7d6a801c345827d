// Package verbs calls the verbs of a descriptor directly, for tests, and checks the
// guarantees that every descriptor gives the scheduler. It is test code: no product
// package imports it.
//
// A Bench calls the verbs in the order in which the scheduler may call them, without its
// graph: so a test of one descriptor shows which verb is wrong. Tests of the order among
// descriptors run a whole Scheduler instead.
package verbs

import (
	"context"
	"maps"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/scheduler"
)

// A Bench holds a descriptor and the metadata of the values that its verbs have created.
// It also serves as the index of these values.
type Bench[V proto.Message, M any] struct {
	D     scheduler.Descriptor[V, M]
	metas map[string]M // by name
}

// Get returns the metadata of the value with that name.
func (b *Bench[V, M]) Get(name string) (M, bool) { m, ok := b.metas[name]; return m, ok }

// All returns the metadata of all values.
func (b *Bench[V, M]) All() map[string]M { return maps.Clone(b.metas) }

// Key returns the key of v, and fails the test if v is invalid.
func (b *Bench[V, M]) Key(t testing.TB, v V) string {
	t.Helper()
	key, err := b.D.Model.Key(v)
	if err == nil && b.D.Validate != nil {
		err = b.D.Validate(key, b.normal(key, v))
	}
	if err != nil {
		t.Fatalf("%v: %v", v, err)
	}
	return key
}

// normal returns v as the scheduler passes it to the descriptor.
func (b *Bench[V, M]) normal(key string, v V) V {
	if b.D.Normalize != nil {
		v, _ = b.D.Normalize(key, v)
	}
	return v
}

// name returns the name of a value within its model.
func (b *Bench[V, M]) name(t testing.TB, v V) string {
	t.Helper()
	name, ok := b.D.Model.NameOf(b.Key(t, v))
	if !ok {
		t.Fatalf("no name for %v", v)
	}
	return name
}

// Create creates v. It keeps the metadata, which later verbs get, as the scheduler does. A
// second Create of the same value must succeed: the answer to the first one may have been
// lost.
func (b *Bench[V, M]) Create(t testing.TB, v V) {
	t.Helper()
	key := b.Key(t, v)
	m, err := b.D.Create(t.Context(), key, b.normal(key, v))
	if err != nil {
		t.Fatalf("creating %v: %v", v, err)
	}
	if b.metas == nil {
		b.metas = map[string]M{}
	}
	b.metas[b.name(t, v)] = m
}

// Change turns old into new, in place or by Delete and Create, as the descriptor requires.
// It reports whether the change was in place.
func (b *Bench[V, M]) Change(t testing.TB, old, new V) (inPlace bool) {
	t.Helper()
	key, meta := b.Key(t, new), b.metas[b.name(t, old)]
	old, new = b.normal(key, old), b.normal(key, new)
	if b.D.Update == nil || b.D.Recreate != nil && b.D.Recreate(key, old, new, meta) {
		b.Delete(t, old)
		b.Create(t, new)
		return false
	}
	m, err := b.D.Update(t.Context(), key, old, new, meta)
	if err != nil {
		t.Fatalf("updating to %v: %v", new, err)
	}
	b.metas[b.name(t, new)] = m
	return true
}

// Delete deletes v. It runs even if the context of the test has ended, so that a cleanup
// works.
func (b *Bench[V, M]) Delete(t testing.TB, v V) {
	t.Helper()
	key := b.Key(t, v)
	if err := b.D.Delete(context.WithoutCancel(t.Context()), key, b.normal(key, v), b.metas[b.name(t, v)]); err != nil {
		t.Fatalf("deleting %v: %v", v, err)
	}
	delete(b.metas, b.name(t, v))
}

// Retrieve returns the retrieved values, by key. A key that is retrieved twice fails the
// test: the scheduler would ignore one of the values, and nobody could tell which.
func (b *Bench[V, M]) Retrieve(t testing.TB, desired ...V) map[string]scheduler.Found[V, M] {
	t.Helper()
	var ws []scheduler.Desired[V]
	for _, v := range desired {
		key := b.Key(t, v)
		ws = append(ws, scheduler.Desired[V]{Key: key, Value: b.normal(key, v)})
	}
	out := map[string]scheduler.Found[V, M]{}
	for f, err := range b.D.Retrieve(t.Context(), ws) {
		if err != nil {
			t.Fatalf("retrieving: %v", err)
		}
		if f.Learned != nil {
			f.Learned()
		}
		if any(f.Value) == any(*new(V)) { // only what was learned
			continue
		}
		if f.Key == "" {
			f.Key, err = b.D.Model.Key(f.Value)
		}
		if _, twice := out[f.Key]; err != nil || twice {
			t.Fatalf("retrieved %v, twice: %v, %v", f.Value, twice, err)
		}
		out[f.Key] = f
	}
	return out
}

// Expect checks that exactly the desired values exist, as desired.
func (b *Bench[V, M]) Expect(t testing.TB, desired ...V) {
	t.Helper()
	found := b.Retrieve(t, desired...)
	for _, v := range desired {
		key := b.Key(t, v)
		v = b.normal(key, v)
		f, ok := found[key]
		switch {
		case !ok:
			t.Errorf("%s does not exist; retrieved %v", key, slices.Collect(maps.Keys(found)))
		case !b.D.Equivalent(key, f.Value, v):
			t.Errorf("%s is\n%v\nwant\n%v", key, f.Value, v)
		case b.D.Derived != nil:
			b.expectDerived(t, key, f.Value, v)
		}
		delete(found, key)
	}
	for key, f := range found {
		t.Errorf("unexpected %s: %v", key, f.Value)
	}
}

// expectDerived checks that the retrieved and the desired value have equal derived values.
func (b *Bench[V, M]) expectDerived(t testing.TB, key string, found, desired V) {
	t.Helper()
	keysOf := func(v V) (keys []string) {
		for _, kv := range b.D.Derived(key, v) {
			keys = append(keys, kv.Key)
		}
		slices.Sort(keys)
		return keys
	}
	if f, w := keysOf(found), keysOf(desired); !slices.Equal(f, w) {
		t.Errorf("%s: derived from the retrieved value\n%v\nfrom the desired value\n%v", key, f, w)
	}
}

// Lifecycle runs a sequence that the scheduler may run with a value: create it twice, read
// it back, change it to each of the others, delete it twice.
func (b *Bench[V, M]) Lifecycle(t testing.TB, first V, others ...V) {
	t.Helper()
	b.Create(t, first)
	b.Create(t, first)
	b.Expect(t, first)
	v := first
	for _, next := range others {
		b.Change(t, v, next)
		b.Expect(t, next)
		v = next
	}
	meta := b.metas[b.name(t, v)]
	b.Delete(t, v)
	b.Expect(t)
	b.metas[b.name(t, v)] = meta
	b.Delete(t, v)
}
