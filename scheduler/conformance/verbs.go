package conformance

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/scheduler"
)

// runVerbs checks the effects of Create, Update and Delete.
func runVerbs[V proto.Message, M any](t *testing.T, s Suite[V, M]) {
	run(t, s, []testCase[V, M]{
		{"a created value exists until it is deleted", lifecycle[V, M]},
		{"changes arrive", changes[V, M]},
		{"Create may be repeated", createTwice[V, M]},
		{"Delete may be repeated", deleteTwice[V, M]},
		{"values come and go at once", atOnce[V, M]},
	})
	if s.New(t).CreateAll != nil {
		run(t, s, []testCase[V, M]{{"CreateAll is Create of each", createTogether[V, M]}})
	}
}

// createTogether creates all values by CreateAll: once, again while they exist, and again
// after they were deleted.
func createTogether[V proto.Message, M any](b *bench[V, M]) {
	b.createTogether()
	b.deleteAll(b.createTogether()) // Create finds its own items
	b.deleteAll(b.createTogether())
}

// createTogether creates all values and expects them to exist.
func (b *bench[V, M]) createTogether() []scheduler.Created[M] {
	b.Helper()
	var messages []proto.Message
	for _, w := range b.suite.Values {
		messages = append(messages, w.Value)
	}
	changed := lend(messages...)
	created := b.d.CreateAll(b.Context(), b.suite.Values)
	if err := changed(); err != nil || len(created) != len(b.suite.Values) {
		b.Fatalf("CreateAll of %d values returns %d results: %v", len(b.suite.Values), len(created), err)
	}
	for i, w := range b.suite.Values {
		if created[i].Err != nil {
			b.Fatalf("CreateAll of %s: %v", w.Key, created[i].Err)
		}
	}
	b.expect(b.suite.Values...)
	return created
}

// deleteAll deletes all values, and checks that Retrieve finds none of them.
func (b *bench[V, M]) deleteAll(created []scheduler.Created[M]) {
	b.Helper()
	for i, w := range b.suite.Values {
		b.delete(w, created[i].Meta)
	}
	b.expect()
}

// lifecycle creates the values one by one, deletes them in reverse order, and compares the
// result of Retrieve after each step.
func lifecycle[V proto.Message, M any](b *bench[V, M]) {
	b.expect()
	metas := make([]M, len(b.suite.Values))
	for i, w := range b.suite.Values {
		metas[i] = b.create(w)
		b.expect(b.suite.Values[:i+1]...)
	}
	for i, w := range slices.Backward(b.suite.Values) {
		b.delete(w, metas[i])
		b.expect(b.suite.Values[:i]...)
	}
}

// changes makes each change of the suite, as a subtest of its name.
func changes[V proto.Message, M any](b *bench[V, M]) {
	for _, c := range b.suite.Changes {
		b.Run(c.Name, func(t *testing.T) {
			own := &bench[V, M]{T: t, suite: b.suite, d: b.d}
			own.change(c)
		})
	}
}

// change makes one change in the way that the descriptor itself chooses, and compares the
// result of Retrieve.
func (b *bench[V, M]) change(c Change[V]) {
	from, to := version(c, c.From), version(c, c.To)
	m := b.create(from)
	b.expect(from)
	switch {
	case c.How == Unchanged:
		to = from
	case b.recreate(c.Key, c.From, c.To, m):
		b.delete(from, m)
		b.expect()
		m = b.create(to)
	default:
		m = b.update(c.Key, c.From, c.To, m)
	}
	b.expect(to)
	b.delete(to, m)
	b.expect()
}

// createTwice calls Create twice, as after a lost answer: the scheduler counts the first
// call as failed.
func createTwice[V proto.Message, M any](b *bench[V, M]) {
	w := b.suite.Values[0]
	b.create(w)
	m := b.create(w)
	b.expect(w)
	b.delete(w, m)
	b.expect()
}

// deleteTwice calls Delete twice, as for an item that vanished unnoticed.
func deleteTwice[V proto.Message, M any](b *bench[V, M]) {
	w := b.suite.Values[0]
	m := b.create(w)
	b.delete(w, m)
	b.delete(w, m)
	b.expect()
}

// atOnce calls Create of all values at once, and then Delete: the scheduler calls verbs of
// independent values concurrently. Run with -race to find shared state.
func atOnce[V proto.Message, M any](b *bench[V, M]) {
	metas := make([]M, len(b.suite.Values))
	b.together("Create", func(i int, w scheduler.Desired[V]) (err error) {
		metas[i], err = b.tryCreate(w)
		return err
	})
	b.expect(b.suite.Values...)
	b.together("Delete", func(i int, w scheduler.Desired[V]) error { return b.tryDelete(w, metas[i]) })
	b.expect()
}

// together calls verb for all values concurrently. An error does not end the case, so that
// the other goroutines can end.
func (b *bench[V, M]) together(name string, verb func(i int, w scheduler.Desired[V]) error) {
	b.Helper()
	errs := make([]error, len(b.suite.Values))
	var all sync.WaitGroup
	for i, w := range b.suite.Values {
		all.Go(func() { errs[i] = verb(i, w) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		b.Errorf("%s: %v", name, err)
	}
}
