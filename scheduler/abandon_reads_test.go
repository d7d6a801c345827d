package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/inspect"
)

// A Retrieve that hangs is one that fails; when it returns, all is read back.
func TestRetrieveHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTar()
		s, stop := b.begin(t, scheduler.Options{})
		defer stop()
		must(t, declare(t, s, "thing/a", "1", "other/b", "1"))
		b.mu.Lock()
		clear(b.stands)
		b.mu.Unlock()
		b.hang("retrieve thing/")
		for _, want := range []string{"thing: no answer in 30 s", "thing: no answer: a call of Retrieve was abandoned and has been running for 31 s"} {
			b.took()
			r, err := s.Commit(t.Context(), scheduler.Txn{Refresh: true})
			must(t, err)
			expect(t, "the error", fmt.Sprint(r.RefreshErrors), "["+want+"]")
			if calls := b.took(); !strings.Contains(calls, "retrieve other/") {
				t.Errorf("the calls are %s", calls)
			}
		}
		if _, err := inspect.Dump(t.Context(), s, "thing"); !errors.Is(err, scheduler.ErrNoAnswer) {
			t.Errorf("to look gives %v", err)
		}
		expect(t, "what stands", fmt.Sprint(b.stands), "map[other/b:1]")
		b.release("retrieve thing/", nil)
		expect(t, "what stands", fmt.Sprint(b.stands), "map[other/b:1 thing/a:1]")
	})
}

// TestSilentConnectionIsAskedOnce checks that a connection whose Retrieve gets no answer is not
// asked for its other values in the same read-back. Each question would cost the timeout again.
func TestSilentConnectionIsAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTar()
		s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler)})
		link, err := s.Connection("tar")
		must(t, err)
		for _, prefix := range []string{"thing/", "other/"} {
			_, err := scheduler.Register(s, b.descriptor(prefix))
			must(t, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.Run(ctx) }()
		defer func() { cancel(); <-ended }()
		b.hang("retrieve other/") // the first in the order of names
		link.Ready()
		synctest.Wait()
		begun := time.Now()
		_, err = s.Commit(t.Context(), scheduler.Txn{Description: "after the read-back"})
		must(t, err)
		if took := time.Since(begun); took > time.Second {
			t.Errorf("a transaction waited for %s", took)
		}
		<-time.After(40 * time.Second)
		expect(t, "the calls", b.took(), "retrieve other/")
		b.release("retrieve other/", nil)
		expect(t, "the calls", b.took(), "retrieve other/, retrieve thing/")
	})
}

// A dump that hangs ends, and so does one that nobody waits for.
func TestLookHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTar()
		s, stop := b.begin(t, scheduler.Options{})
		defer stop()
		b.hang("retrieve thing/")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := inspect.Dump(ctx, s, "thing"); !errors.Is(err, scheduler.ErrNoAnswer) {
			t.Errorf("a look that nobody waits for gives %v", err)
		}
		if _, err := inspect.Dump(t.Context(), s, "thing"); err == nil || err.Error() != "thing: no answer in 30 s" {
			t.Errorf("a look gives %v", err)
		}
	})
}

// TestManyWaitForOneReader has more transactions wait for a connection that is being read back than
// may be open. All of them end when Retrieve returns.
func TestManyWaitForOneReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTar()
		s, stop := b.begin(t, scheduler.Options{VerbTimeout: time.Hour})
		defer stop()
		must(t, declare(t, s, "thing/0", "1"))
		b.hang("retrieve thing/")
		var ended sync.WaitGroup
		start := func(txn scheduler.Txn) {
			ended.Add(1)
			if err := s.Start(t.Context(), txn, func(*scheduler.Record, error) { ended.Done() }); err != nil {
				t.Error(err)
			}
		}
		start(scheduler.Txn{Refresh: true})
		begun := make(chan struct{})
		go func() {
			defer close(begun)
			for i := range 600 {
				key := fmt.Sprint("thing/", i+1)
				v, err := s.Value(key, wrapperspb.String("1"))
				if err != nil {
					t.Error(err)
				}
				start(scheduler.Txn{Changes: []scheduler.Change{v.Change()}})
			}
		}()
		<-time.After(5 * time.Minute) // as many as possible are open by now
		b.release("retrieve thing/", nil)
		<-begun
		ended.Wait()
		if _, ok := s.Status("thing/600"); !ok {
			t.Error("thing/600 is not there")
		}
	})
}

// TestLooksDisturbNobody gives up dumps that hang. The scheduler reads back meanwhile, and it
// does not read the descriptor again because of them.
func TestLooksDisturbNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTar()
		s, stop := b.begin(t, scheduler.Options{})
		defer stop()
		b.hang("retrieve thing/")
		for range 5 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := inspect.Dump(ctx, s, "thing"); !errors.Is(err, scheduler.ErrNoAnswer) {
				t.Errorf("a dump that is given up gives %v", err)
			}
			cancel()
		}
		<-time.After(time.Hour)
		b.mu.Lock()
		released := b.hangs["retrieve thing/"]
		delete(b.hangs, "retrieve thing/") // later calls do not hang
		b.mu.Unlock()
		must(t, commitRefresh(t, s))
		b.took()
		for range 5 {
			released <- nil
		}
		synctest.Wait()
		<-time.After(time.Minute)
		expect(t, "the calls after the dumps have returned", b.took(), "")
	})
}
