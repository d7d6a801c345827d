package scheduler_test

import (
	"context"
	"testing"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/inspect"
)

// What a system tells besides values is for those who look. The scheduler keeps nothing of it, and no state of
// items that are only shown.
func TestDetailsAreForThoseWhoLook(t *testing.T) {
	type found = scheduler.Found[*wrapperspb.StringValue, struct{}]
	s := scheduler.New(scheduler.Options{})
	_, err := scheduler.Register(s, scheduler.Descriptor[*wrapperspb.StringValue, struct{}]{
		Name: "item", Prefix: "item/",
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
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	if _, err := s.Commit(ctx, scheduler.Txn{Refresh: true}); err != nil {
		t.Fatal(err)
	}
	if st, ok := s.Status("item/kept"); !ok || st.State != scheduler.Obtained {
		t.Errorf("item/kept is %v; expected OBTAINED", st)
	}
	if st, ok := s.Status("item/shown"); ok {
		t.Errorf("item/shown is %v; expected no state", st)
	}
	all, err := inspect.Dump(ctx, s, "item")
	if err != nil || len(all) != 2 || all[0].Details != "about a" || all[1].Details != "about b" {
		t.Errorf("a dump has %+v, %v; expected both items with their details", all, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
