package conformance

import (
	"reflect"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/scheduler"
)

// runRetrieve checks how the actual state is read back.
func runRetrieve[V proto.Message, M any](t *testing.T, s Suite[V, M]) {
	if s.New(t).Create == nil {
		run(t, s, []testCase[V, M]{{"retrieved values belong to the descriptor", belongs[V, M]}})
		return
	}
	run(t, s, []testCase[V, M]{
		{"retrieved values belong to the descriptor", belongs[V, M]},
		{"a resync in sync changes nothing", inSync[V, M]},
		{"retrieved values have the same derived values", foundParts[V, M]},
		{"verbs accept the result of Retrieve", afterRestart[V, M]},
		{"Retrieve reports the metadata of Create", sameMeta[V, M]},
		{"Retrieve reports that it cannot read", unreadable[V, M]},
		{"Retrieve may be stopped early", stopsEarly[V, M]},
		{"reading changes nothing", readsOnly[V, M]},
		{"values may be read while they come and go", readsAlong[V, M]},
	})
	if s.New(t).RetrieveSome != nil {
		run(t, s, []testCase[V, M]{{"RetrieveSome is Retrieve of some", readsSome[V, M]}})
	}
}

// readsSome reads back single keys, as after a failed verb.
func readsSome[V proto.Message, M any](b *bench[V, M]) {
	metas := b.createAll()
	all := b.standing(b.suite.Values...)
	one := b.suite.Values[0]
	f, ok := b.some(one.Key, one)[one.Key]
	if !ok {
		b.Fatalf("RetrieveSome does not find %s", one.Key)
	}
	if want := all[one.Key]; !proto.Equal(f.Value, want.Value) || !reflect.DeepEqual(f.Meta, want.Meta) {
		b.Errorf("RetrieveSome finds %+v, but Retrieve %+v", f, want)
	}
	b.delete(one, metas[0])
	if _, ok := b.some(one.Key)[one.Key]; ok {
		b.Errorf("RetrieveSome finds %s, which was deleted", one.Key)
	}
}

// some returns the result of RetrieveSome for key; wanted are the desired values.
func (b *bench[V, M]) some(key string, wanted ...scheduler.Desired[V]) map[string]scheduler.Found[V, M] {
	b.Helper()
	out := map[string]scheduler.Found[V, M]{}
	for f, err := range Taken(b.d.RetrieveSome(b.Context(), []string{key}, wanted)) {
		if err != nil {
			b.Fatalf("RetrieveSome: %v", err)
		}
		if f.Key == "" {
			f.Key = keyOf(b.T, b.d, "", f.Value)
		}
		if !f.Foreign {
			out[f.Key] = f
		}
	}
	return out
}

// createAll creates all values of the suite, in order.
func (b *bench[V, M]) createAll() []M {
	b.Helper()
	metas := make([]M, len(b.suite.Values))
	for i, w := range b.suite.Values {
		metas[i] = b.create(w)
	}
	return metas
}

// belongs checks that each retrieved value has a key and a content that the descriptor
// itself accepts.
func belongs[V proto.Message, M any](b *bench[V, M]) {
	if b.d.Create != nil {
		b.createAll()
	}
	s := b.scheduler()
	found := b.standing(b.suite.Values...)
	if len(found) == 0 {
		b.Error("Retrieve finds nothing: New should return a descriptor of something that stands, because there is no Create")
	}
	for key, f := range found {
		if _, err := s.Value(key, f.Value); err != nil {
			b.Errorf("Retrieve finds %s as %v: %v", key, f.Value, err)
		}
	}
}

// afterRestart continues with the result of Retrieve alone.
func afterRestart[V proto.Message, M any](b *bench[V, M]) {
	for _, c := range b.suite.Changes {
		from, to := version(c, c.From), version(c, c.To)
		b.create(from)
		f, ok := b.standing(from)[c.Key]
		if !ok {
			b.Fatalf("%s: Retrieve does not find %s", c.Name, c.Key)
		}
		if c.How != Updated {
			b.delete(from, f.Meta)
			continue
		}
		m := b.update(c.Key, f.Value, c.To, f.Meta)
		b.expect(to)
		b.delete(to, m)
	}
	b.expect()
	b.createAll()
	for key, f := range b.standing(b.suite.Values...) {
		if err := b.d.Delete(b.Context(), key, f.Value, f.Meta); err != nil {
			b.Errorf("Delete %s with retrieved metadata: %v", key, err)
		}
	}
	b.expect()
}

// sameMeta compares metadata. After a restart the verbs have only the metadata of Retrieve, and
// the index must not change for those who use it.
func sameMeta[V proto.Message, M any](b *bench[V, M]) {
	same := b.suite.SameMeta
	if same == nil {
		same = func(created, retrieved M) bool { return reflect.DeepEqual(created, retrieved) }
	}
	metas := b.createAll()
	found := b.standing(b.suite.Values...)
	for i, w := range b.suite.Values {
		f, ok := found[w.Key]
		if !ok {
			b.Errorf("Retrieve does not find %s", w.Key)
		} else if !same(metas[i], f.Meta) {
			b.Errorf("%s: Create returns the metadata %+v, Retrieve %+v", w.Key, metas[i], f.Meta)
		}
	}
}

// unreadable reads from a broken system. An empty result would mean that no item exists, and
// the scheduler would create all of them again.
func unreadable[V proto.Message, M any](b *bench[V, M]) {
	if b.suite.Break == nil {
		b.Skip("the suite has no Break")
	}
	b.createAll()
	b.suite.Break(b.T)
	for _, err := range b.d.Retrieve(b.Context(), b.suite.Values) {
		if err != nil {
			return
		}
	}
	b.Error("Retrieve of a broken system yields no error")
}

// stopsEarly finds locks that are not released.
func stopsEarly[V proto.Message, M any](b *bench[V, M]) {
	b.createAll()
	for _, err := range b.d.Retrieve(b.Context(), b.suite.Values) {
		if err != nil {
			b.Fatal(err)
		}
		break
	}
	b.expect(b.suite.Values...)
}

// readsOnly calls Retrieve without desired values.
func readsOnly[V proto.Message, M any](b *bench[V, M]) {
	b.createAll()
	var lent []proto.Message
	for _, w := range b.suite.Values {
		lent = append(lent, w.Value)
	}
	changed := lend(lent...)
	if got, want := len(b.standing()), len(b.suite.Values); got != want {
		b.Errorf("Retrieve finds %d values while none is wanted, want %d", got, want)
	}
	b.expect(b.suite.Values...)
	if err := changed(); err != nil {
		b.Error(err)
	}
}

// readsAlong reads while verbs run, as Dump does.
func readsAlong[V proto.Message, M any](b *bench[V, M]) {
	stop := make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() {
		for read := true; read; {
			select {
			case <-stop:
				read = false
			default:
				read = b.readable()
			}
		}
	})
	metas := make([]M, len(b.suite.Values))
	b.together("Create", func(i int, w scheduler.Desired[V]) (err error) {
		metas[i], err = b.tryCreate(w)
		return err
	})
	b.expect(b.suite.Values...)
	b.together("Delete", func(i int, w scheduler.Desired[V]) error { return b.tryDelete(w, metas[i]) })
	close(stop)
	reader.Wait()
	b.expect()
}

// readable reads all values, and reports whether that succeeded.
func (b *bench[V, M]) readable() bool {
	for _, err := range b.d.Retrieve(b.Context(), b.suite.Values) {
		if err != nil {
			b.Errorf("Retrieve while verbs run: %v", err)
			return false
		}
	}
	return true
}
