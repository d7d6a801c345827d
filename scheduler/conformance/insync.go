package conformance

import (
	"context"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/scheduler"
)

// inSync applies each version with a scheduler, without derived values, and reads it back.
// A derived value may be pending, so Equivalent must accept the base without it.
func inSync[V proto.Message, M any](b *bench[V, M]) {
	b.d.Dependencies, b.d.RetrieveAfter = nil, nil
	s := b.scheduler()
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	for _, w := range b.versions() {
		b.resync(s, w)
	}
	cancel()
	if err := <-ended; err != nil {
		b.Error(err)
	}
}

// resync declares w, reads the system back, and checks that a second read calls no verb
// and publishes nothing. A descriptor that fails this would update its values at every
// resync.
func (b *bench[V, M]) resync(s *scheduler.Scheduler, w scheduler.Desired[V]) {
	b.Helper()
	v, err := s.Value(w.Key, w.Value)
	if err == nil {
		txn := scheduler.Txn{Replace: true, Changes: []scheduler.Change{v.Change()}}
		_, err = s.Commit(b.Context(), txn)
	}
	if err == nil { // now values of others are found
		_, err = s.Commit(b.Context(), scheduler.Txn{Refresh: true})
	}
	if err != nil {
		b.Errorf("%s: %v", w.Key, err)
		return
	}
	watch := s.Watch(w.Key)
	defer watch.Close()
	watch.Take() // the present statuses
	r, err := s.Commit(b.Context(), scheduler.Txn{Refresh: true})
	if err != nil {
		b.Errorf("reading back %s: %v", w.Key, err)
		return
	}
	for _, op := range r.Executed.All() {
		b.Errorf("a resync in sync: %s %s: %s -> %s", op.Verb, op.Key, op.OldState, op.NewState)
	}
	for _, st := range watch.Take() {
		b.Errorf("a resync in sync publishes %s as %s", st.Key, st.State)
	}
}

// foundParts checks that a retrieved base has its derived values. A derived value without
// Retrieve counts as lost if the base is found without it. Then every read-back would
// create it again, with all its dependents.
func foundParts[V proto.Message, M any](b *bench[V, M]) {
	if b.d.Derived == nil {
		return
	}
	for _, w := range b.versions() {
		m := b.create(w)
		parts := b.derived(w)
		if b.suite.Parts != nil {
			b.suite.Parts(b.T, w, m, parts)
		}
		f, ok := b.standing(w)[w.Key]
		if !ok {
			b.Fatalf("Retrieve does not find %s", w.Key)
		}
		got, want := b.texts(b.derived(scheduler.Desired[V]{Key: w.Key, Value: f.Value})), b.texts(parts)
		if !slices.Equal(got, want) {
			b.Errorf("%s: the retrieved value has the derived values\n%s\nwant\n%s", w.Key, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		b.delete(w, m)
		if b.suite.Parts != nil && len(parts) > 0 { // nothing has deleted them
			b.d = b.suite.New(b.T)
		}
	}
}

// texts renders the derived values that are read back with their base, sorted.
func (b *bench[V, M]) texts(parts []scheduler.KeyValue) (out []string) {
	for _, kv := range parts {
		if b.suite.Alone == nil || !b.suite.Alone(kv.Key) {
			data, err := proto.MarshalOptions{Deterministic: true}.Marshal(kv.Value)
			if err != nil {
				b.Error(err)
			}
			out = append(out, kv.Key+" "+string(data))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
