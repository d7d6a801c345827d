package conformance

import (
	"context"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/scheduler"
)

// inSync has a scheduler bring about each version, without what is derived from it, and read it
// back. A derived value may wait, so the base is in order without it: Equivalent must say so.
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

func (b *bench[V, M]) resync(s *scheduler.Scheduler, w scheduler.Desired[V]) {
	b.Helper()
	v, err := s.Value(w.Key, w.Value)
	if err == nil {
		txn := scheduler.Txn{Replace: true, Changes: []scheduler.Change{scheduler.Want(v)}}
		_, err = s.Commit(b.Context(), txn)
	}
	if err == nil { // what is not ours is found now
		_, err = s.Commit(b.Context(), scheduler.Txn{Refresh: true})
	}
	if err != nil {
		b.Errorf("%s: %v", w.Key, err)
		return
	}
	watch := s.Watch(w.Key)
	defer watch.Close()
	r, err := s.Commit(b.Context(), scheduler.Txn{Refresh: true})
	if err != nil {
		b.Errorf("reading back %s: %v", w.Key, err)
		return
	}
	for _, op := range r.Executed {
		b.Errorf("a resync in sync: %s %s: %s -> %s", op.Verb, op.Key, op.OldState, op.NewState)
	}
	ctx, cancel := context.WithTimeout(b.Context(), time.Millisecond) // what was published is there already
	defer cancel()
	news, _ := watch.Next(ctx)
	for _, st := range news {
		b.Errorf("a resync in sync publishes %s as %s", st.Key, st.State)
	}
}

// foundParts matters because a derived value without a Retrieve of its own is lost when its base is
// found without it: it would be created again by every read-back, with all that depends on it.
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
			b.Errorf("%s: Derived of what is found is\n%s\nwant\n%s", w.Key, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		b.delete(w, m)
		if b.suite.Parts != nil && len(parts) > 0 { // which nobody has deleted
			b.d = b.suite.New(b.T)
		}
	}
}

// texts are the keys and values of derived values that are read back with their base, sorted.
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
