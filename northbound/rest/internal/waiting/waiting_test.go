package waiting_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest/internal/waiting"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/scheduler"
)

// inBubble runs f in virtual time, with a scheduler of items.
func inBubble(t *testing.T, f func(t *testing.T, s *scheduler.Scheduler)) {
	t.Helper()
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
		f(t, s)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// declare declares an item.
func declare(t *testing.T, s *scheduler.Scheduler, name string) {
	t.Helper()
	if _, err := s.Commit(t.Context(), scheduler.Txn{Changes: []scheduler.Change{scheduler.Want("item/"+name, wrapperspb.String("x"))}}); err != nil {
		t.Error(err)
	}
}

// same leaves keys as they are.
func same(key string) string { return key }

// absent is a request that waits until its time is over.
func absent() wire.Wait { return wire.Wait{Keys: []string{"item/absent"}} }

// A source reports no end of its listing, so it is asked each second.
func TestIncompleteSources(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scheduler.Scheduler) {
		begun := time.Now()
		w := waiting.New(waiting.Options{Scheduler: s, Short: same, Incomplete: func(time.Time, bool) []string {
			if time.Since(begun) < 5*time.Second {
				return []string{"etcd"}
			}
			return nil
		}})
		got, err := w.Wait(t.Context(), wire.Wait{All: true, Milliseconds: 1500})
		if took := time.Since(begun); err != nil || got.Done || len(got.Incomplete) != 1 || took != 1500*time.Millisecond {
			t.Errorf("after %v: %+v, %v; expected the incomplete source at the end of the time", took, got, err)
		}
		got, err = w.Wait(t.Context(), wire.Wait{All: true})
		if took := time.Since(begun); err != nil || !got.Done || took < 5*time.Second || took > 7*time.Second {
			t.Errorf("after %v: %+v, %v; expected an end when the source is complete", took, got, err)
		}
	})
}

// A wait does not end before the stores were read again. Until then, the state of a key may be that
// of an older content, and an error may be mended already. Requests for listings are rare.
func TestStoresAreReadAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scheduler.Scheduler) {
		declare(t, s, "a")
		var read time.Time // when the listing began that is in effect
		relists := 0
		var asked []bool
		w := waiting.New(waiting.Options{Scheduler: s, Short: same, Relist: func() { relists++ }, Incomplete: func(since time.Time, all bool) []string {
			asked = append(asked, all)
			if read.Before(since) {
				return []string{"etcd"}
			}
			return nil
		}})
		begun := time.Now()
		time.AfterFunc(3*time.Second, func() { read = begun.Add(time.Second) })
		got, err := w.Wait(t.Context(), wire.Wait{Keys: []string{"item/a"}, Milliseconds: 1500})
		if took := time.Since(begun); err != nil || got.Done || took != 1500*time.Millisecond || !got.Since.Equal(begun) {
			t.Errorf("a key, after %v: %+v, %v; expected no end before the listing", took, got, err)
		}
		got, err = w.Wait(t.Context(), wire.Wait{Keys: []string{"item/a"}, Since: got.Since})
		if took := time.Since(begun); err != nil || !got.Done || took < 3*time.Second || took > 5*time.Second || relists != 2 {
			t.Errorf("it goes on, after %v and %d requests for listings: %+v, %v; expected the end with the listing, and a request of each wait", took, relists, got, err)
		}
		if slices.Contains(asked, true) {
			t.Error("a wait for a key needs stores that are not connected")
		}
		asked, relists = nil, 0
		if got, err = w.Wait(t.Context(), wire.Wait{All: true, Milliseconds: 25_000}); err != nil || got.Done || len(got.Incomplete) != 1 || relists != 3 || slices.Contains(asked, false) {
			t.Errorf("without a listing, %d requests for one: %+v, %v; expected three in 25 s, for all stores", relists, got, err)
		}
		if got, err = w.Wait(t.Context(), wire.Wait{Values: []wire.WaitValue{{Key: "item/none"}}}); err != nil || !got.Done {
			t.Errorf("contents: %+v, %v; expected an end without a listing", got, err)
		}
	})
}

// A flood of changes costs at most ten comparisons a second.
func TestComparisonsHaveAPause(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scheduler.Scheduler) {
		var compared atomic.Int32
		w := waiting.New(waiting.Options{Scheduler: s, Short: same, Incomplete: func(time.Time, bool) []string {
			compared.Add(1)
			return []string{"etcd"}
		}})
		ended := make(chan error, 1)
		go func() {
			_, err := w.Wait(t.Context(), wire.Wait{All: true, Milliseconds: 2000})
			ended <- err
		}()
		for i := range 1990 {
			declare(t, s, fmt.Sprint(i))
			<-time.After(time.Millisecond)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if n := compared.Load(); n < 10 || n > 22 {
			t.Errorf("%d comparisons in two seconds; expected 10 to 22", n)
		}
	})
}

// A wait ends at its time, with the server, or with its request; a value that comes ends it early.
func TestEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scheduler.Scheduler) {
		stopped := make(chan struct{})
		w := waiting.New(waiting.Options{Scheduler: s, Short: same, Ended: stopped})
		for _, test := range []struct {
			name    string
			request wire.Wait
			after   func(cancel func()) // a second
			took    time.Duration
			done    bool
			failure error
		}{
			{name: "the default time is over", request: absent(), took: 30 * time.Second},
			{name: "the time of the request is over", request: wire.Wait{Keys: []string{"item/absent"}, Milliseconds: 60_000}, took: time.Minute},
			{name: "the value comes", request: wire.Wait{Keys: []string{"item/a"}}, after: func(func()) { declare(t, s, "a") }, took: 1100 * time.Millisecond, done: true},
			{name: "the client leaves", request: absent(), after: func(cancel func()) { cancel() }, took: time.Second, failure: context.Canceled},
			{name: "the server stops", request: absent(), after: func(func()) { close(stopped) }, took: time.Second},
		} {
			ctx, cancel := context.WithCancel(t.Context())
			if test.after != nil {
				time.AfterFunc(time.Second, func() { test.after(cancel) })
			}
			begun := time.Now()
			got, err := w.Wait(ctx, test.request)
			cancel()
			if took := time.Since(begun); took != test.took || got.Done != test.done || !errors.Is(err, test.failure) {
				t.Errorf("%s: after %v: %+v, %v; expected %v, done %v, %v", test.name, took, got, err, test.took, test.done, test.failure)
			}
		}
	})
}

// At most MaxClients requests wait. The next one is refused until one of them ends.
func TestMaxClients(t *testing.T) {
	w := waiting.New(waiting.Options{})
	var leave func()
	for range waiting.MaxClients {
		var err error
		if leave, err = w.Enter(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Enter(); !errors.Is(err, waiting.ErrFull) {
		t.Errorf("one more: %v", err)
	}
	leave()
	if _, err := w.Enter(); err != nil {
		t.Errorf("after one has ended: %v", err)
	}
}

// An answer counts all values that are missing, and names some.
func TestManyMissing(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scheduler.Scheduler) {
		request := wire.Wait{Milliseconds: 1}
		for i := range 3000 {
			request.Keys = append(request.Keys, fmt.Sprintf("item/%d", i))
		}
		got, err := waiting.New(waiting.Options{Scheduler: s, Short: same}).Wait(t.Context(), request)
		if err != nil || got.Done || got.Count != 3000 || got.MissingCount != 3000 || len(got.Missing) != 1000 {
			t.Errorf("%d of %d are missing, %d are named: %v", got.MissingCount, got.Count, len(got.Missing), err)
		}
	})
}

// Requests that make no sense are refused at once, with what is allowed.
func TestRequests(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scheduler.Scheduler) {
		w := waiting.New(waiting.Options{Scheduler: s, Short: same})
		for _, test := range []struct {
			request wire.Wait
			want    string
		}{
			{wire.Wait{}, "wait: expected Keys, Models, Values, Document or All"},
			{wire.Wait{All: true, Milliseconds: -1}, "wait: Milliseconds is -1; expected 1 to 60000"},
			{wire.Wait{All: true, Milliseconds: 60_001}, "wait: Milliseconds is 60001; expected 1 to 60000"},
			{wire.Wait{All: true, State: "ready"}, `wait: State is "ready"; expected one of `},
			{wire.Wait{Models: []string{"no.model"}}, `wait: ` + models.ErrNoModel.Error() + `: "no.model"`},
			{wire.Wait{Values: []wire.WaitValue{{Key: "config/none", Value: json.RawMessage("{}")}}}, "wait: config/none: "},
		} {
			_, err := w.Wait(t.Context(), test.request)
			if err == nil || !errors.Is(err, waiting.ErrRequest) || len(err.Error()) < len(test.want) || err.Error()[:len(test.want)] != test.want {
				t.Errorf("%+v: %v; expected %s", test.request, err, test.want)
			}
		}
	})
}
