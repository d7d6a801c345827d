package scheduler_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/keyplane/keyplane/scheduler"
)

// TestLostConnectionIsNotLostAgain has a connection, which never was ready, report a reason while a
// verb of another connection runs. It is not available; it is not lost again.
func TestLostConnectionIsNotLostAgain(t *testing.T) {
	var log bytes.Buffer
	s := scheduler.New(scheduler.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	g, err := s.Connection("away")
	if err != nil {
		t.Fatal(err)
	}
	type text = *wrapperspb.StringValue
	if _, err := scheduler.Register(s, scheduler.Descriptor[text, struct{}]{
		Name: "thing", Prefix: "thing/",
		Create: func(context.Context, string, text) (struct{}, error) {
			g.Lost(errors.New("no such file"))
			return struct{}{}, nil
		},
		Delete: func(context.Context, string, text, struct{}) error { return nil },
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	_, err = s.Commit(ctx, scheduler.Txn{Changes: []scheduler.Change{scheduler.Want("thing/a", wrapperspb.String("a"))}})
	cancel()
	if err := errors.Join(err, <-ended); err != nil {
		t.Fatal(err)
	}
	if said := log.String(); !strings.Contains(said, "connection is not available") || strings.Contains(said, "connection lost") {
		t.Errorf("log:\n%s", said)
	}
}

// A value was found as desired, so it had no operation. When its connection is lost, none waits; a value that does not
// exist waits for its CREATE.
func TestLastOperationOfFoundValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type text = *wrapperspb.StringValue
		s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler)})
		c, err := s.Connection("away")
		must(t, err)
		_, err = scheduler.Register(s, scheduler.Descriptor[text, struct{}]{
			Name: "thing", Prefix: "thing/", Connection: "away",
			Create: func(context.Context, string, text) (struct{}, error) { return struct{}{}, nil },
			Delete: func(context.Context, string, text, struct{}) error { return nil },
			Retrieve: func(context.Context, []scheduler.Desired[text]) scheduler.Retrieved[text, struct{}] {
				return func(yield func(scheduler.Found[text, struct{}], error) bool) {
					yield(scheduler.Found[text, struct{}]{Key: "thing/a", Value: wrapperspb.String("a")}, nil)
				}
			},
		})
		must(t, err)
		defer begin(t, s)()
		c.Ready()
		mustCommit(t, s, scheduler.Txn{Refresh: true, Changes: []scheduler.Change{scheduler.Want("thing/a", wrapperspb.String("a"))}})
		c.Lost(errors.New("gone"))
		mustCommit(t, s, scheduler.Txn{Changes: []scheduler.Change{scheduler.Want("thing/b", wrapperspb.String("b"))}})
		for key, want := range map[string]scheduler.Verb{"thing/a": 0, "thing/b": scheduler.Create} {
			if st, _ := s.Status(key); st.State != scheduler.Pending || st.Last != want {
				t.Errorf("%s is %s with the last operation %d; want PENDING with %d", key, st.State, st.Last, want)
			}
		}
	})
}

// A connection that leads to another system is lost before it was read back, and comes back to that same one. What cannot be read
// back is that of the system before, and gone.
func TestOtherSystemIsNotForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTar()
		s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler)})
		g := group(t, s, "tar")
		for _, prefix := range []string{"thing/", "item/"} {
			b.reads = prefix == "thing/"
			_, err := scheduler.Register(s, b.descriptor(prefix))
			must(t, err)
		}
		defer begin(t, s)()
		g.Ready()
		must(t, declare(t, s, "item/a", "1"))
		for _, again := range []func(){
			func() { g.Ready(); synctest.Wait(); g.Lost(errors.New("broken")) },
			func() { g.Ready(); g.Lost(errors.New("broken")) }, // at once
		} {
			b.took()
			g.Lost(errors.New("broken"))
			synctest.Wait()
			b.hang("retrieve thing/")
			again()
			synctest.Wait()
			b.release("retrieve thing/", nil)
			g.ReadyAgain()
			must(t, s.Sync(t.Context()))
			if calls := b.took(); !strings.Contains(calls, "create item/a") {
				t.Errorf("it was not made again: %s", calls)
			}
		}
	})
}
