package scheduler_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/keyplane/keyplane/scheduler"
)

// handle is metadata that Create returns: the number of the item, and when it was made.
type handle struct {
	Number int
	Made   string
}

// A lifeOf is one run of an agent with a descriptor that has no Retrieve.
type lifeOf struct {
	boot    string
	want    []string
	connect func(*scheduler.Connection) // nil: the descriptor has no connection
}

// lives runs agents one after the other, with one memory. It returns what each has called, and its index.
func lives(t *testing.T, all ...lifeOf) (out []string) {
	t.Helper()
	made, memory := 0, notebook{}
	for _, life := range all {
		synctest.Test(t, func(t *testing.T) {
			var calls []string
			s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler), Memory: memory, Boot: life.boot, Concurrency: 1}) // the numbers are those of the order
			d := scheduler.Descriptor[*wrapperspb.StringValue, handle]{
				Name: "item", Prefix: "item/",
				Create: func(_ context.Context, key string, v *wrapperspb.StringValue) (handle, error) {
					made++
					calls = append(calls, "create "+key)
					return handle{made, v.Value}, nil
				},
				Delete: func(_ context.Context, key string, _ *wrapperspb.StringValue, m handle) error {
					calls = append(calls, fmt.Sprint("delete ", key, " ", m))
					return nil
				},
			}
			if life.connect != nil {
				d.Connection = "device"
				_, err := s.Connection("device") // before the descriptor is registered
				must(t, err)
			}
			index, err := scheduler.Register(s, d)
			must(t, err)
			defer begin(t, s)()
			if life.connect != nil {
				c, err := s.Connection("device")
				must(t, err)
				life.connect(c)
			}
			txn := scheduler.Txn{Refresh: true, Replace: true}
			for _, name := range life.want {
				v, err := s.Value("item/"+name, wrapperspb.String("of "+name))
				must(t, err)
				txn.Changes = append(txn.Changes, v.Change())
			}
			mustCommit(t, s, txn)
			synctest.Wait()
			slices.Sort(calls)
			out = append(out, fmt.Sprint(calls, index.All()))
		})
	}
	return out
}

// Without Retrieve, an item is assumed to be gone after another boot. Otherwise it stands, with its metadata.
func TestWithoutRetrieve(t *testing.T) {
	got := lives(t,
		lifeOf{boot: "1", want: []string{"a", "b"}},
		lifeOf{boot: "1", want: []string{"a"}}, // b is deleted by the metadata of its Create
		lifeOf{boot: "2", want: []string{"a"}},
		lifeOf{boot: "2"},
		lifeOf{boot: "2", want: []string{"c"}},
		lifeOf{boot: "3"}, // c is gone, and nobody wants it any more
	)
	want := []string{
		"[create item/a create item/b] map[a:{1 of a} b:{2 of b}]",
		"[delete item/b {2 of b}] map[a:{1 of a}]",
		"[create item/a] map[a:{3 of a}]",
		"[delete item/a {3 of a}] map[]",
		"[create item/c] map[c:{4 of c}]",
		"[] map[]",
	}
	expectLives(t, got, want)
}

// With a connection, its identity decides, and not the boot.
func TestWithoutRetrieveBehindAConnection(t *testing.T) {
	same, other := (*scheduler.Connection).ReadyAgain, (*scheduler.Connection).Ready
	got := lives(t,
		lifeOf{boot: "1", want: []string{"a"}, connect: other},
		lifeOf{boot: "2", want: []string{"a"}, connect: same},
		lifeOf{boot: "2", want: []string{"a"}, connect: other},
		lifeOf{boot: "3", connect: same},
	)
	want := []string{
		"[create item/a] map[a:{1 of a}]",
		"[] map[a:{1 of a}]",
		"[create item/a] map[a:{2 of a}]",
		"[delete item/a {2 of a}] map[]",
	}
	expectLives(t, got, want)
}

func expectLives(t *testing.T, got, want []string) {
	t.Helper()
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("run %d: %s; want %s", i+1, got[i], want[i])
		}
	}
}

// Metadata that JSON cannot hold is never restored in part: the item is made again.
func TestMetadataThatCannotBeSaved(t *testing.T) {
	type hidden struct{ number int }
	memory, created := notebook{}, 0
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler), Memory: memory, Boot: "1"})
			index, err := scheduler.Register(s, scheduler.Descriptor[*wrapperspb.StringValue, hidden]{
				Name: "item", Prefix: "item/",
				Create: func(context.Context, string, *wrapperspb.StringValue) (hidden, error) {
					created++
					return hidden{created}, nil
				},
				Delete: func(context.Context, string, *wrapperspb.StringValue, hidden) error { return nil },
			})
			must(t, err)
			defer begin(t, s)()
			v, err := s.Value("item/a", wrapperspb.String("a"))
			must(t, err)
			mustCommit(t, s, scheduler.Txn{Refresh: true, Replace: true, Changes: []scheduler.Change{v.Change()}})
			if m, ok := index.Get("a"); !ok || m.number != created {
				t.Errorf("the index has %v, %t; %d were created", m, ok, created)
			}
		})
	}
	if created != 2 {
		t.Errorf("Create was called %d times; want 2", created)
	}
}

// An agent is killed during Create, so it has no metadata. The next one finds none in the index, where a zero value would be
// that of another item, and deletes the item without it.
func TestKilledBeforeMetadata(t *testing.T) {
	memory := notebook{}
	var left notebook
	for _, wanted := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler), Memory: memory, Boot: "1"})
			var index *scheduler.Index[handle]
			deleted := ""
			index, err := scheduler.Register(s, scheduler.Descriptor[*wrapperspb.StringValue, handle]{
				Name: "item", Prefix: "item/",
				Create: func(context.Context, string, *wrapperspb.StringValue) (handle, error) {
					left = maps.Clone(memory) // by a kill
					return handle{7, "now"}, nil
				},
				Delete: func(_ context.Context, key string, _ *wrapperspb.StringValue, m handle) error {
					_, known := index.Get("a")
					deleted = fmt.Sprint(key, " ", m, " ", known)
					return nil
				},
			})
			must(t, err)
			defer begin(t, s)()
			txn := scheduler.Txn{Refresh: true, Replace: true}
			if wanted {
				v, err := s.Value("item/a", wrapperspb.String("a"))
				must(t, err)
				txn.Changes = append(txn.Changes, v.Change())
			}
			mustCommit(t, s, txn)
			if want := "item/a {0 } false"; !wanted && deleted != want {
				t.Errorf("deleted, with metadata, in the index: %q; want %q", deleted, want)
			}
		})
		memory = left
	}
}

// A verb that ends after the scheduler was told to end has its outcome remembered.
func TestEndRemembersWhatEndsMeanwhile(t *testing.T) {
	memory, made := notebook{}, 0
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler), Memory: memory, Boot: "1"})
			index, err := scheduler.Register(s, scheduler.Descriptor[*wrapperspb.StringValue, handle]{
				Name: "item", Prefix: "item/",
				Create: func(context.Context, string, *wrapperspb.StringValue) (handle, error) {
					<-time.After(time.Second)
					made++
					return handle{made, "late"}, nil
				},
				Delete: func(context.Context, string, *wrapperspb.StringValue, handle) error { return nil },
			})
			must(t, err)
			stop := begin(t, s)
			v, err := s.Value("item/a", wrapperspb.String("a"))
			must(t, err)
			must(t, s.Submit(t.Context(), scheduler.Txn{Refresh: true, Replace: true, Changes: []scheduler.Change{v.Change()}}))
			<-time.After(500 * time.Millisecond)
			stop()
			if got := index.All()["a"]; made != 1 || got != (handle{1, "late"}) {
				t.Errorf("made %d times, now %v; want once, and that one", made, got)
			}
		})
	}
}
