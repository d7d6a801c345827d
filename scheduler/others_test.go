package scheduler_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/keyplane/keyplane/scheduler"
)

// A resync finds items that others have made, or that have gone. Its record has none of them, however long it takes: it may
// let other work go first, which publishes what it has found so far.
func TestResyncRecordsNothingOfOthers(t *testing.T) {
	type found = scheduler.Found[*wrapperspb.StringValue, struct{}]
	for _, takes := range []time.Duration{0, time.Second} {
		synctest.Test(t, func(t *testing.T) {
			there := true
			s := scheduler.New(scheduler.Options{})
			for name, retrieve := range map[string]func(yield func(found, error) bool){
				"theirs": func(yield func(found, error) bool) {
					if there {
						yield(found{Key: "theirs/x", Value: wrapperspb.String("a"), Foreign: true}, nil)
					}
				},
				"slow": func(func(found, error) bool) { <-time.After(takes) },
			} {
				d := scheduler.Descriptor[*wrapperspb.StringValue, struct{}]{
					Name: name, Prefix: name + "/",
					Create: func(context.Context, string, *wrapperspb.StringValue) (struct{}, error) { return struct{}{}, nil },
					Delete: func(context.Context, string, *wrapperspb.StringValue, struct{}) error { return nil },
					Retrieve: func(context.Context, []scheduler.Desired[*wrapperspb.StringValue]) scheduler.Retrieved[*wrapperspb.StringValue, struct{}] {
						return retrieve
					},
				}
				if name == "slow" {
					d.RetrieveAfter = []string{"theirs"}
				}
				_, err := scheduler.Register(s, d)
				must(t, err)
			}
			defer begin(t, s)()
			for _, there = range []bool{true, false, true} {
				record, err := s.Commit(t.Context(), scheduler.Txn{Refresh: true})
				must(t, err)
				if record.Executed.Len() > 0 {
					t.Errorf("a resync that takes %v, with the item there %t, records %+v", takes, there, record.Executed)
				}
				if _, is := s.Status("theirs/x"); is != there {
					t.Errorf("theirs/x has a status: %t; expected %t", is, there)
				}
			}
		})
	}
}
