package changes_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/changes"
)

// TestCollect declares values and reads the collected changes: within the bound, above it, and
// after a removal.
func TestCollect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New(scheduler.Options{})
		_, err := scheduler.Register(s, scheduler.Descriptor[*wrapperspb.StringValue, struct{}]{
			Name: "item", Prefix: "item/",
			Create: func(context.Context, string, *wrapperspb.StringValue) (struct{}, error) { return struct{}{}, nil },
			Delete: func(context.Context, string, *wrapperspb.StringValue, struct{}) error { return nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		defer func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}()
		commit := func(cs ...scheduler.Change) {
			if _, err := s.Commit(ctx, scheduler.Txn{Changes: cs}); err != nil {
				t.Fatal(err)
			}
		}
		item := func() proto.Message { return wrapperspb.String("x") }

		c := changes.Collect(s, 2)
		defer c.Close()
		commit(scheduler.Want("item/a", item()))
		commit(scheduler.Want("item/b", item()), scheduler.Unwant("item/a"))
		<-c.Ready()
		news := c.Take()
		var got []string
		for _, st := range news.Values {
			got = append(got, st.Key+" "+st.State.String())
		}
		slices.Sort(got)
		if want := []string{"item/a REMOVED", "item/b CONFIGURED"}; !slices.Equal(got, want) || news.Missed || news.Transactions != 2 {
			t.Errorf("collected %q, missed %v, %d transactions; want %q of 2 transactions", got, news.Missed, news.Transactions, want)
		}
		commit(scheduler.Want("item/c", item()), scheduler.Want("item/d", item()), scheduler.Want("item/e", item()))
		if news := c.Take(); !news.Missed || len(news.Values) > 0 || news.Transactions != 1 {
			t.Errorf("above the bound: %+v; want Missed without values", news)
		}
		if news := c.Take(); news.Missed || len(news.Values) > 0 || news.Transactions != 0 {
			t.Errorf("without changes: %+v", news)
		}
	})
}
