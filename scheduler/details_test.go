package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/drift"
	"github.com/keyplane/keyplane/scheduler/inspect"
)

// What a system tells besides values is for those who look. An item that is only shown is OBTAINED, and no decision
// takes it into account: one that is declared under its key is created, and the other one is there again after it.
func TestDetailsAreForThoseWhoLook(t *testing.T) {
	type found = scheduler.Found[*wrapperspb.StringValue, struct{}]
	s := scheduler.New(scheduler.Options{})
	system, err := s.Connection("system")
	if err != nil {
		t.Fatal(err)
	}
	_, err = scheduler.Register(s, scheduler.Descriptor[*wrapperspb.StringValue, struct{}]{
		Name: "item", Prefix: "item/", Connection: "system",
		Create: func(context.Context, string, *wrapperspb.StringValue) (struct{}, error) { return struct{}{}, nil },
		Delete: func(context.Context, string, *wrapperspb.StringValue, struct{}) error { return nil },
		Retrieve: func(context.Context, []scheduler.Desired[*wrapperspb.StringValue]) scheduler.Retrieved[*wrapperspb.StringValue, struct{}] {
			return func(yield func(found, error) bool) {
				_ = yield(found{Key: "item/kept", Value: wrapperspb.String("a"), Foreign: true, Details: "about a"}, nil) &&
					yield(found{Key: "item/shown", Value: wrapperspb.String("b"), Foreign: true, Shown: true, Details: "about b"}, nil)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	system.Ready()
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	if _, err := s.Commit(ctx, scheduler.Txn{Refresh: true}); err != nil {
		t.Fatal(err)
	}
	if st, ok := s.Status("item/kept"); !ok || st.State != scheduler.Obtained {
		t.Errorf("item/kept is %v; expected OBTAINED", st)
	}
	statesAre := func(want string) {
		t.Helper()
		got := []string{}
		for _, st := range s.Statuses("item/") {
			got = append(got, st.Key+" "+st.State.String())
		}
		if fmt.Sprint(got) != want {
			t.Errorf("the states are %v; expected %s", got, want)
		}
	}
	statesAre("[item/kept OBTAINED item/shown OBTAINED]")
	shown, ok := s.Status("item/shown")
	if !ok || shown.Desired != nil || shown.Descriptor != "item" || shown.Normalized().(*wrapperspb.StringValue).GetValue() != "b" {
		t.Errorf("item/shown is %+v; expected b as the actual value", shown)
	}
	if report, err := drift.Check(ctx, s); err != nil || len(report.Values) > 0 {
		t.Errorf("drift is %+v, %v; expected none", report.Values, err)
	}
	record, err := s.Commit(ctx, scheduler.Txn{Changes: []scheduler.Change{scheduler.Want("item/shown", wrapperspb.String("b"))}})
	if err != nil || record.Executed.Len() != 1 || record.Executed.At(0).Verb != scheduler.Create {
		t.Errorf("declaring item/shown did %+v, %v; expected a Create", record, err)
	}
	statesAre("[item/kept OBTAINED item/shown CONFIGURED]")
	if _, err := s.Commit(ctx, scheduler.Txn{Changes: []scheduler.Change{scheduler.Unwant("item/shown")}}); err != nil {
		t.Fatal(err)
	}
	if again, ok := s.Status("item/shown"); !ok || again.State != scheduler.Obtained || !again.Since.Equal(shown.Since) {
		t.Errorf("item/shown is %+v; expected it as before", again)
	}
	if _, err := s.Commit(ctx, scheduler.Txn{Replace: true, Refresh: true}); err != nil {
		t.Fatal(err)
	}
	statesAre("[item/kept OBTAINED item/shown OBTAINED]")
	all, err := inspect.Dump(ctx, s, "item")
	if err != nil || len(all) != 2 || all[0].Details != "about a" || all[1].Details != "about b" {
		t.Errorf("a dump has %+v, %v; expected both items with their details", all, err)
	}
	system.Lost(errors.New("cut"))
	if _, err := s.Commit(ctx, scheduler.Txn{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	statesAre("[]")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
