package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/keyplane/keyplane/scheduler"
)

// soon is how long a transaction may wait for the slow work of others.
const soon = time.Second

// beginApart starts a scheduler in which things and others have connections of their own.
// The one of things can be lost.
func beginApart(t *testing.T, b *tar) (s *scheduler.Scheduler, things *scheduler.Connection, stop func()) {
	t.Helper()
	s = scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler)})
	things = group(t, s, "things")
	for _, prefix := range []string{"thing/", "other/"} {
		d := b.descriptor(prefix)
		d.Connection = d.Name + "s"
		_, err := scheduler.Register(s, d)
		must(t, err)
	}
	stop = begin(t, s)
	things.Ready()
	synctest.Wait()
	return s, things, stop
}

// within fails unless do, which may wait, is done soon.
func withinSoon(t *testing.T, what string, do func()) {
	t.Helper()
	begun := time.Now()
	do()
	if took := time.Since(begun); took > soon {
		t.Errorf("%s took %v", what, took)
	}
}

// TestSlowWorkDelaysNobodyElse checks each kind of work that waits for a southbound. Meanwhile
// values of another connection are applied.
func TestSlowWorkDelaysNobodyElse(t *testing.T) {
	for _, work := range []struct {
		name, hangs string
		begin       func(t *testing.T, s *scheduler.Scheduler, things *scheduler.Connection)
		want        string        // calls for things after the release
		takes       time.Duration // how long the transactions of others take together
	}{
		{"a verb", "create thing/a", func(t *testing.T, s *scheduler.Scheduler, _ *scheduler.Connection) {
			go func() { _ = declare(t, s, "thing/a", "1", "thing/b", "1>thing/a") }()
		}, "create thing/b", 100 * time.Millisecond},
		{"a downstream resync", "retrieve thing/", func(t *testing.T, s *scheduler.Scheduler, _ *scheduler.Connection) {
			must(t, s.Submit(t.Context(), scheduler.Txn{Refresh: true}))
		}, "", 0},
		{"a connection that is back", "retrieve thing/", func(_ *testing.T, _ *scheduler.Scheduler, things *scheduler.Connection) {
			things.Ready()
		}, "", 0},
		{"a refresh", "retrieve thing/", func(t *testing.T, s *scheduler.Scheduler, _ *scheduler.Connection) {
			must(t, s.Refresh("thing"))
		}, "", 0},
	} {
		t.Run(work.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newTar()
				s, things, stop := beginApart(t, b)
				defer stop()
				b.hang(work.hangs)
				work.begin(t, s, things)
				synctest.Wait()
				begun := time.Now()
				for _, text := range []string{"1", "2", ""} {
					must(t, declare(t, s, "other/x", text))
				}
				if took := time.Since(begun); took != work.takes {
					t.Errorf("the transactions took %v, want %v", took, work.takes)
				}
				withinSoon(t, "a plan", func() {
					v, err := s.Value("other/y", wrapperspb.String("1"))
					must(t, err)
					r, err := s.Plan(t.Context(), scheduler.Txn{Changes: []scheduler.Change{v.Change()}})
					must(t, err)
					if r.Planned.Len() != 1 {
						t.Errorf("the plan has %d operations", r.Planned.Len())
					}
				})
				b.took()
				b.release(work.hangs, nil)
				expect(t, "the calls", b.took(), work.want)
			})
		})
	}
}

// TestLongReadingOfManyPartsDelaysNobodyElse reads back many descriptors, each of which answers soon.
func TestLongReadingOfManyPartsDelaysNobodyElse(t *testing.T) {
	const parts, each = 40, 90 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		b := newTar()
		s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler)})
		for i := range parts {
			d := b.descriptor(fmt.Sprintf("thing%d/", i))
			read := d.Retrieve
			d.Retrieve = func(ctx context.Context, all []scheduler.Desired[note]) iter.Seq2[noteFound, error] {
				<-time.After(each)
				return read(ctx, all)
			}
			d.Connection = "things"
			_, err := scheduler.Register(s, d)
			must(t, err)
		}
		_, err := scheduler.Register(s, b.descriptor("other/"))
		must(t, err)
		defer begin(t, s)()
		for range 2 { // of a transaction that begins, and of one that waits
			must(t, s.Refresh())
			for range 5 {
				withinSoon(t, "a transaction", func() { must(t, declare(t, s, "other/x", time.Now().String())) })
			}
		}
		must(t, s.Sync(t.Context()))
	})
}

// TestManyVerbsDelayNobodyElse: many verbs end soon, one after the other, after one that was slow or has failed.
func TestManyVerbsDelayNobodyElse(t *testing.T) {
	const verbs, each = 40, 90 * time.Millisecond
	for name, result := range map[string]error{"of a slow transaction": nil, "of a retry": errors.New("broken")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newTar()
				s, _, stop := beginApart(t, b)
				defer stop()
				b.hang("create thing/0")
				chain := []string{"thing/0", "1"}
				for i := range verbs {
					chain = append(chain, fmt.Sprintf("thing/%d", i+1), fmt.Sprintf("1>thing/%d", i))
				}
				ended := make(chan error, 1)
				go func() { ended <- declare(t, s, chain...) }()
				<-time.After(soon) // until others begin beside it
				b.slow = each
				b.release("create thing/0", result)
				last := fmt.Sprintf("thing/%d", verbs)
				is := func() bool { st, _ := s.Status(last); return st != nil && st.State == configured }
				// A verb of others may run before each of the chain, and before that its retry waits.
				for end := time.Now().Add(4 * verbs * each); !is() && time.Now().Before(end); {
					withinSoon(t, "a transaction", func() { must(t, declare(t, s, "other/x", time.Now().String())) })
				}
				if err := <-ended; (err != nil) != (result != nil) {
					t.Error(err)
				}
				if !is() {
					t.Errorf("%s is not configured", last)
				}
			})
		})
	}
}

// TestTransactionsThatOnlyWaitCostNoTime: while a connection is read, many transactions
// of its values begin. Each can only wait, so none of them delays the next one.
func TestTransactionsThatOnlyWaitCostNoTime(t *testing.T) {
	const many = 100
	synctest.Test(t, func(t *testing.T) {
		b := newTar()
		s, _, stop := beginApart(t, b)
		defer stop()
		b.hang("retrieve thing/")
		must(t, s.Refresh("thing"))
		<-time.After(soon) // while it is read
		withinSoon(t, "the transactions and one of another connection", func() {
			for i := range many {
				v, err := s.Value(fmt.Sprintf("thing/%d", i), wrapperspb.String("1"))
				must(t, err)
				must(t, s.Submit(t.Context(), scheduler.Txn{Changes: []scheduler.Change{v.Change()}}))
			}
			must(t, declare(t, s, "other/x", "1"))
		})
		b.took()
		withinSoon(t, "the values after the read", func() {
			b.release("retrieve thing/", nil)
			must(t, s.Sync(t.Context()))
		})
		if got := len(strings.Fields(b.took())); got != 2*many {
			t.Errorf("%d words in the calls after the read, want %d: create and a key for each", got, 2*many)
		}
	})
}

// TestCommitWaitsForItsOwnWork checks that Commit returns after the last operation of its
// values, although other runs begin meanwhile, and that its record has all of them.
func TestCommitWaitsForItsOwnWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTar()
		s, _, stop := beginApart(t, b)
		defer stop()
		b.hang("retrieve thing/")
		must(t, s.Refresh("thing"))
		<-time.After(soon)
		type result struct {
			rec *scheduler.Record
			err error
		}
		ended := make(chan result, 1)
		v, err := s.Value("thing/a", wrapperspb.String("1"))
		must(t, err)
		go func() {
			rec, err := s.Commit(t.Context(), scheduler.Txn{Changes: []scheduler.Change{v.Change()}})
			ended <- result{rec, err}
		}()
		<-time.After(soon)
		expect(t, "the state while it is read", states(s), "thing/a PENDING")
		b.hang("create thing/a")
		b.release("retrieve thing/", nil)
		<-time.After(soon)
		expect(t, "the state while it is created", states(s), "thing/a PENDING")
		select {
		case <-ended:
			t.Error("Commit has returned before its operation has ended")
		default:
		}
		b.release("create thing/a", nil)
		out := <-ended
		must(t, out.err)
		created := 0
		for _, op := range out.rec.Executed.All() {
			if !op.Noop {
				created++
			}
		}
		if created != 1 {
			t.Errorf("the record has %d operations, want 1", created)
		}
		expect(t, "the state", states(s), "thing/a CONFIGURED 1")
	})
}

// TestOrderOfOverlappingTransactions checks that the operations of two records can be merged in
// the order in which they began.
func TestOrderOfOverlappingTransactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTar()
		s, _, stop := beginApart(t, b)
		defer stop()
		b.hang("create thing/a")
		ended := make(chan error)
		go func() { ended <- declare(t, s, "thing/a", "1", "thing/b", "1>thing/a") }()
		<-time.After(soon)
		must(t, declare(t, s, "other/x", "1"))
		b.release("create thing/a", nil)
		must(t, <-ended)
		var keys []string
		for _, op := range inOrder(s.History()) {
			keys = append(keys, op.Key)
		}
		expect(t, "the operations in order", strings.Join(keys, " "), "thing/a other/x thing/b")
	})
}

// TestLateReadKeepsNewerKnowledge checks that a read-back does not undo an observation that came
// after its beginning.
func TestLateReadKeepsNewerKnowledge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler)})
		proceed := make(chan struct{})
		_, err := scheduler.Register(s, scheduler.Descriptor[note, struct{}]{
			Name: "seen", Prefix: "seen/",
			Retrieve: func(context.Context, []scheduler.Desired[note]) iter.Seq2[noteFound, error] {
				return func(yield func(noteFound, error) bool) {
					<-proceed
					_ = yield(noteFound{Key: "seen/old", Value: wrapperspb.String("1")}, nil) &&
						yield(noteFound{Key: "seen/gone", Value: wrapperspb.String("1")}, nil)
				}
			},
		})
		must(t, err)
		defer begin(t, s)()
		s.Observe(scheduler.Observed{Key: "seen/gone", Value: wrapperspb.String("1")})
		synctest.Wait()
		must(t, s.Refresh())
		<-time.After(soon)
		s.Observe(
			scheduler.Observed{Key: "seen/old", Value: wrapperspb.String("2")},
			scheduler.Observed{Key: "seen/new", Value: wrapperspb.String("1")},
			scheduler.Observed{Key: "seen/gone"})
		<-time.After(soon)
		close(proceed)
		synctest.Wait()
		got := map[string]string{}
		for _, st := range s.Statuses("") {
			got[st.Key] = st.Actual.(note).GetValue()
		}
		if len(got) != 2 || got["seen/old"] != "2" || got["seen/new"] != "1" {
			t.Errorf("after the late read: %v, want seen/old:2 and seen/new:1", got)
		}
	})
}

// TestLostConnectionMakesReadWorthless checks that the result of a read-back is dropped if the
// connection was lost after its beginning, and that the next one is applied.
func TestLostConnectionMakesReadWorthless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTar()
		s, things, stop := beginApart(t, b)
		defer stop()
		must(t, declare(t, s, "thing/a", "1"))
		b.hang("retrieve thing/")
		must(t, s.Refresh("thing"))
		<-time.After(soon)
		things.Lost(context.Canceled)
		<-time.After(soon)
		expect(t, "the state", states(s), "thing/a PENDING")
		things.Ready()
		<-time.After(soon)
		b.took()
		b.release("retrieve thing/", nil)
		expect(t, "the calls", b.took(), "retrieve thing/")
		expect(t, "the state", states(s), "thing/a CONFIGURED 1")
	})
}

// TestPauseWaitsForSlowWork checks that no verb runs while the scheduler is paused.
func TestPauseWaitsForSlowWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTar()
		s, _, stop := beginApart(t, b)
		defer stop()
		b.hang("create thing/a")
		go func() { _ = declare(t, s, "thing/a", "1") }()
		<-time.After(soon)
		paused := make(chan func())
		go func() { paused <- s.Pause(t.Context()) }()
		<-time.After(soon)
		select {
		case <-paused:
			t.Error("paused while a verb is running")
		default:
		}
		b.release("create thing/a", nil)
		(<-paused)()
	})
}

// TestReadConnectionNeedNotWaitForAnother reads back two connections in one go. Values of the second one are applied while the
// first one is read, and those of the first one as soon as it has been read, although the second one takes its time.
func TestReadConnectionNeedNotWaitForAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTar()
		s, _, stop := beginApart(t, b)
		defer stop()
		b.took()
		b.hang("retrieve thing/")
		b.hang("retrieve other/")
		must(t, s.Refresh())
		synctest.Wait()
		first, _ := strings.CutPrefix(b.took(), "retrieve ") // one call at a time
		ended := make(chan error, 1)
		go func() { ended <- declare(t, s, first+"a", "1") }()
		<-time.After(soon)
		second := map[string]string{"thing/": "other/", "other/": "thing/"}[first]
		withinSoon(t, "a value of a connection that is read later", func() { must(t, declare(t, s, second+"a", "1")) })
		b.release("retrieve "+first, nil)
		<-time.After(soon)
		if calls := b.took(); !strings.Contains(calls, "create "+first+"a") {
			t.Errorf("%s is read, and the calls since are %q", first, calls)
		}
		for _, other := range []string{"thing/", "other/"} {
			b.release("retrieve "+other, nil)
		}
		must(t, <-ended)
	})
}

// While a connection that is ready again is read back, values that are read after its values change as usual.
func TestReadyConnectionLeavesOthersAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTar()
		s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler)})
		things := group(t, s, "things")
		for _, prefix := range []string{"other/", "thing/", "zoo/"} {
			d := b.descriptor(prefix)
			d.Connection = "others"
			switch prefix {
			case "thing/":
				d.Connection = "things"
			case "other/":
				d.RetrieveAfter = []string{"thing"}
			case "zoo/":
				d.Connection, d.RetrieveAfter = "things", []string{"thing"}
			}
			_, err := scheduler.Register(s, d)
			must(t, err)
		}
		defer begin(t, s)()
		things.Ready()
		must(t, s.Sync(t.Context()))
		things.Lost(errors.New("broken"))
		must(t, s.Sync(t.Context()))
		b.took()
		b.hang("retrieve thing/")
		things.Ready()
		synctest.Wait()
		withinSoon(t, "a value that is read after those of a slow connection", func() { must(t, declare(t, s, "other/a", "1")) })
		b.release("retrieve thing/", nil)
		must(t, s.Sync(t.Context()))
		// each connection once: its verbs wait while it is read
		expect(t, "the calls", b.took(), "retrieve thing/, create other/a, retrieve zoo/, retrieve other/")
	})
}

// A resync that changes values begins alone. When it has read back, it is slow like any other: others begin beside its verbs.
func TestSlowResyncDelaysNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTar()
		s, _, stop := beginApart(t, b)
		defer stop()
		b.hang("retrieve thing/")
		b.hang("create thing/a")
		v, err := s.Value("thing/a", wrapperspb.String("1"))
		must(t, err)
		must(t, s.Submit(t.Context(), scheduler.Txn{Refresh: true, Replace: true, Changes: []scheduler.Change{v.Change()}}))
		<-time.After(soon)
		b.release("retrieve thing/", nil)
		withinSoon(t, "a transaction beside the verb", func() { must(t, declare(t, s, "other/x", "1")) })
		b.release("create thing/a", nil)
		must(t, s.Sync(t.Context()))
		expect(t, "the states", states(s), "other/x CONFIGURED 1; thing/a CONFIGURED 1")
	})
}

// Somebody takes away what a transaction makes whose verbs take long, one after the other, before the result of the verb counts.
func TestGoneBeforeItsCreateHasEnded(t *testing.T) {
	const each = 90 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		b := newTar()
		s, _, stop := beginApart(t, b)
		defer stop()
		b.slow = each
		ended := make(chan error, 1)
		go func() {
			ended <- declare(t, s, "thing/0", "1", "thing/1", "1>thing/0", "thing/2", "1>thing/1", "thing/3", "1>thing/2")
		}()
		<-time.After(3*each + each/2) // while the last one is made
		s.Observe(scheduler.Observed{Key: "thing/3"})
		must(t, <-ended)
		<-time.After(5 * time.Second)
		if calls := b.took(); strings.Count(calls, "retrieve thing/") < 2 { // the first one was that of the connection
			t.Errorf("it was not looked at again: %s", calls)
		}
	})
}

// A connection that is lost frees the transactions that wait for it, however many there are.
func TestLossFreesManyTransactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTar()
		s, things, stop := beginApart(t, b)
		defer stop()
		b.hang("retrieve thing/")
		must(t, s.Refresh("thing"))
		for i := range 300 { // more than may be open
			v, err := s.Value(fmt.Sprintf("thing/%d", i), wrapperspb.String("1"))
			must(t, err)
			go func() { _ = s.Submit(t.Context(), scheduler.Txn{Changes: []scheduler.Change{v.Change()}}) }()
		}
		<-time.After(soon)
		things.Lost(errors.New("broken"))
		withinSoon(t, "a value of another connection", func() { must(t, declare(t, s, "other/x", "1")) })
		b.release("retrieve thing/", nil)
	})
}

// Transactions that waited for a read-back together go on together, though each has several verbs to do, one after the other.
func TestTransactionsThatWaitedGoOnTogether(t *testing.T) {
	const each = 50 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		b := newTar()
		s, _, stop := beginApart(t, b)
		defer stop()
		b.slow = each
		b.hang("retrieve thing/")
		must(t, s.Refresh("thing"))
		synctest.Wait()
		var ended sync.WaitGroup
		for i := range 20 {
			low, high := fmt.Sprintf("thing/%d", i), fmt.Sprintf("thing/%d-high", i)
			ended.Go(func() { _ = declare(t, s, low, "1", high, "1>"+low) })
		}
		<-time.After(soon)
		b.release("retrieve thing/", nil)
		begun := time.Now()
		ended.Wait()
		if took := time.Since(begun); took > 4*each {
			t.Errorf("the transactions took %v", took)
		}
	})
}

// Verbs of a resync that takes long to read back are as young as those of any other run: what comes meanwhile begins after them.
func TestVerbsAfterALongReadingAreYoung(t *testing.T) {
	const each = 50 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		b := newTar()
		s, _, stop := beginApart(t, b)
		defer stop()
		b.slow = each
		b.hang("retrieve thing/")
		v, err := s.Value("thing/a", wrapperspb.String("1"))
		must(t, err)
		must(t, s.Submit(t.Context(), scheduler.Txn{Refresh: true, Changes: []scheduler.Change{v.Change()}}))
		<-time.After(soon)
		b.release("retrieve thing/", nil)
		begun := time.Now()
		must(t, declare(t, s, "other/x", "1"))
		if took := time.Since(begun); took != 2*each {
			t.Errorf("it took %v, want %v: one verb after the other", took, 2*each)
		}
	})
}

// What a read-back of one connection lets go does not wait for that of the next one.
func TestNextReadingHoldsNothingOfTheOneBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTar()
		s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler)})
		for _, prefix := range []string{"thing/", "other/"} {
			d := b.descriptor(prefix)
			d.Connection = d.Name + "s"
			if d.Name == "other" {
				d.RetrieveAfter = []string{"thing"}
			}
			_, err := scheduler.Register(s, d)
			must(t, err)
		}
		defer begin(t, s)()
		must(t, declare(t, s, "thing/a", "1"))
		b.hang("retrieve thing/")
		b.hang("retrieve other/")
		must(t, s.Refresh())
		synctest.Wait()
		s.Observe(scheduler.Observed{Key: "thing/a"}) // it is to be made again
		<-time.After(soon)
		b.took()
		b.release("retrieve thing/", nil)
		<-time.After(soon)
		expect(t, "the calls while the next connection is read", sorted(b.took()), "create thing/a, retrieve other/")
		b.release("retrieve other/", nil)
	})
}

// A slow deletion hangs, and something comes that begins no run. What is to be created on another connection goes on.
func TestNothingThatComesStopsASlowRun(t *testing.T) {
	const each = 60 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		b := newTar()
		s, _, stop := beginApart(t, b)
		defer stop()
		must(t, declare(t, s, "thing/0", "1", "thing/1", "1>thing/0", "thing/2", "1>thing/1"))
		b.slow = each
		b.hang("delete thing/0")
		submit(t, s, "thing/0= thing/1= thing/2= other/x=1")
		<-time.After(2*each + each/2) // the third one has begun
		s.Observe(scheduler.Observed{Key: "nobody/knows"})
		<-time.After(soon)
		b.mu.Lock()
		stands := b.stands["other/x"]
		b.mu.Unlock()
		expect(t, "what stands", stands, "1")
		b.release("delete thing/0", nil)
	})
}

// A value of a transaction becomes possible while the transaction reads back another one of its values, which failed. It is in
// effect when its verb has ended.
func TestValueNeedNotWaitForTheReadBackOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTar()
		s, _, stop := beginApart(t, b)
		defer stop()
		b.hang("create thing/x")
		submit(t, s, "thing/x=1 other/y=1>other/z")
		synctest.Wait()
		b.hang("retrieve thing/")
		b.release("create thing/x", scheduler.Terminal(errRefusedByTar))
		submit(t, s, "other/z=1")
		<-time.After(soon)
		expect(t, "the states", states(s), "other/y CONFIGURED 1>other/z; other/z CONFIGURED 1; thing/x FAILED (refused)")
		b.release("retrieve thing/", nil)
	})
}

// A connection is lost, and leads to another system, while verbs run. What they have reported as done is not there.
func TestSuccessBeforeALossSaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTar()
		s, things, stop := beginApart(t, b)
		defer stop()
		b.hang("create thing/a")
		b.hang("create thing/b")
		submit(t, s, "thing/a=1 thing/b=1")
		<-time.After(soon)
		things.Lost(errors.New("broken"))
		synctest.Wait()
		things.Ready()
		synctest.Wait()
		b.took()
		b.release("create thing/b", errRefusedByTar)
		b.vain = "create thing/a" // it has done its work in the system before, which is gone
		b.release("create thing/a", nil)
		must(t, s.Sync(t.Context()))
		if calls := b.took(); !strings.Contains(calls, "create thing/a") {
			t.Errorf("it was not made again: %s", calls)
		}
	})
}
