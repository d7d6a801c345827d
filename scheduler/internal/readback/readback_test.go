package readback_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
	"github.com/keyplane/keyplane/scheduler/internal/memory"
	"github.com/keyplane/keyplane/scheduler/internal/readback"
)

// A system has the items of one descriptor, by key.
type system struct {
	*readback.Reader
	connection *kind.Connection
	d          *kind.Descriptor
	items      []kind.Found
	err        error
	running    chan struct{} // Retrieve does not end before it is closed; nil: at once
	vanished   []string
}

// newSystem returns a system with a connection that is up.
func newSystem(t *testing.T) *system {
	y := &system{connection: &kind.Connection{Losable: true}, d: kind.New("thing")}
	y.d.Prefix, y.d.Connection = "thing/", y.connection
	y.d.Accepts = func(proto.Message) error { return nil }
	y.d.Verbs.Create = func(context.Context, string, proto.Message) (any, error) { return nil, nil }
	y.d.Retrieve = func(context.Context, []kind.Desired) iter.Seq2[kind.Found, error] {
		return func(yield func(kind.Found, error) bool) {
			if y.running != nil {
				<-y.running
			}
			for _, it := range y.items {
				if !yield(it, nil) {
					return
				}
			}
			if y.err != nil {
				yield(kind.Found{}, y.err)
			}
		}
	}
	var registry kind.Registry
	if err := errors.Join(registry.Add(y.d), registry.Sort()); err != nil {
		t.Fatal(err)
	}
	log, g := slog.New(slog.DiscardHandler), graph.New()
	kindOf := func(string) (memory.Kind, bool) { return y.d, true }
	prepare := func(_ memory.Kind, key string, m proto.Message) *graph.Value { return registry.Actual(y.d, key, m) }
	y.Reader = readback.New(readback.Options{
		Log: log, Graph: g, Registry: &registry, Ledger: memory.New(nil, "", log, g, kindOf, prepare), Timeout: time.Minute,
		Again: func(...string) {}, Vanished: func(key string) { y.vanished = append(y.vanished, key) }, Changed: func(string) {},
		Shown: func(*kind.Descriptor, []kind.Found) {},
	})
	return y
}

// has gives the system items with these keys.
func (y *system) has(keys ...string) {
	y.items = nil
	for _, key := range keys {
		y.items = append(y.items, kind.Found{Key: key, Value: wrapperspb.String("1")})
	}
}

// everything has r read back all values.
func (y *system) everything(r *readback.Reading) {
	y.Want(r, y.Everything([]*kind.Descriptor{y.d}), nil)
}

// finish reads until r is done.
func (y *system) finish(t *testing.T, r *readback.Reading) {
	t.Helper()
	for y.Go(t.Context(), r) != readback.Done {
		for !y.CanGo(r) {
			<-y.Ready()
		}
	}
}

// known are the keys with an actual value.
func (y *system) known() string {
	var out []string
	for n := range y.Graph.Nodes() {
		if n.Actual() != nil {
			out = append(out, n.Key())
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func (y *system) expect(t *testing.T, want string) {
	t.Helper()
	if got := y.known(); got != want {
		t.Errorf("known is %q; want %q", got, want)
	}
}

// The result of Retrieve replaces what was known. Items of other keys, and a second item of a
// key, do not count. An error leaves what was known.
func TestResultReplacesTheKnownState(t *testing.T) {
	y := newSystem(t)
	var r readback.Reading
	y.has("thing/a", "thing/b", "other/c", "thing/b")
	y.everything(&r)
	y.finish(t, &r)
	y.expect(t, "thing/a thing/b")
	y.has("thing/b")
	y.everything(&r)
	y.finish(t, &r)
	y.expect(t, "thing/b")
	if fmt.Sprint(y.vanished) != "[thing/a]" {
		t.Errorf("vanished are %v", y.vanished)
	}
	y.has("thing/d")
	y.err = errors.New("no answer")
	y.everything(&r)
	y.finish(t, &r)
	y.expect(t, "thing/b")
	if errs := r.TakeErrors(); fmt.Sprint(errs) != "[thing: no answer]" || r.TakeErrors() != nil {
		t.Errorf("the errors are %v", errs)
	}
}

// Two readings of one line come one after the other, and each waits for running verbs.
func TestOneReaderOfALine(t *testing.T) {
	y := newSystem(t)
	y.has("thing/a")
	var first, second readback.Reading
	y.everything(&first)
	y.everything(&second)
	running := y.connection.Begin()
	if y.Go(t.Context(), &first) != readback.Waits || y.CanGo(&first) {
		t.Error("a verb runs, and Retrieve was called")
	}
	if y.Go(t.Context(), &second) != readback.Waits || y.CanGo(&second) {
		t.Error("two readings have one line")
	}
	y.connection.End(running)
	y.finish(t, &first)
	if !y.CanGo(&second) {
		t.Error("the second reading still waits for the first")
	}
	y.finish(t, &second)
	y.expect(t, "thing/a")
}

// A read-back that began before its connection was lost says nothing.
func TestLossEndsAReading(t *testing.T) {
	y := newSystem(t)
	y.has("thing/a")
	var r readback.Reading
	y.everything(&r)
	y.running = make(chan struct{})
	y.Go(t.Context(), &r)
	y.Graph.Disconnect(&y.connection.Connection, "gone")
	close(y.running)
	y.finish(t, &r)
	y.expect(t, "")
	y.everything(&r) // of a connection that is lost
	if r.Wanted() {
		t.Error("a lost connection is read")
	}
	y.Want(&r, y.Everything([]*kind.Descriptor{y.d}), y.connection) // it is ready again
	y.finish(t, &r)
	y.expect(t, "thing/a")
}

// What is learned while Retrieve runs is newer than its result.
func TestLearnedIsNewerThanACall(t *testing.T) {
	y := newSystem(t)
	y.has("thing/a", "thing/b")
	var r readback.Reading
	y.everything(&r)
	y.running = make(chan struct{})
	y.Go(t.Context(), &r)
	y.Learned("thing/a")
	close(y.running)
	y.finish(t, &r)
	y.expect(t, "thing/b")
}

// A descriptor learns from a reading, also without an item, and nothing from somebody who only looks.
func TestLooksTeachNothing(t *testing.T) {
	y := newSystem(t)
	y.has("thing/a")
	var learned []string
	note := func(what string) func() { return func() { learned = append(learned, what) } }
	y.items[0].Learned = note("a")
	y.items = append(y.items, kind.Found{Learned: note("all")})
	got, err := y.Look(t.Context(), readback.Part{Of: y.d}, nil)
	if err != nil || len(got.Items) != 1 || len(learned) > 0 {
		t.Errorf("a look found %v, %v and taught %v", got.Items, err, learned)
	}
	var r readback.Reading
	y.everything(&r)
	y.finish(t, &r)
	y.expect(t, "thing/a")
	if fmt.Sprint(learned) != "[a all]" {
		t.Errorf("a reading taught %v", learned)
	}
}
