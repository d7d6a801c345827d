package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/explain"
	"github.com/keyplane/keyplane/scheduler/inspect"
	"github.com/keyplane/keyplane/scheduler/internal/executor"
)

// A Create that hangs fails its key after the limit. Other keys proceed, of the same descriptor
// too; a key that depends on it waits.
func TestCreateHangs(t *testing.T) {
	for _, reads := range []bool{true, false} {
		for _, late := range []error{nil, errors.New("too bad")} {
			t.Run(fmt.Sprint(reads, late), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newTar()
					b.reads = reads
					b.hang("create thing/a")
					s, stop := b.begin(t, scheduler.Options{})
					defer stop()
					begun := time.Now()
					err := declare(t, s, "thing/a", "1", "thing/b", "1", "thing/c", "1>thing/a", "other/d", "1")
					if !errors.Is(err, scheduler.ErrNoAnswer) || time.Since(begun) > 31*time.Second {
						t.Errorf("after %v: %v", time.Since(begun), err)
					}
					const hangs = "thing/a FAILED (no answer in 30 s); thing/b CONFIGURED 1; thing/c PENDING"
					expect(t, "the state", states(s), "other/d CONFIGURED 1; "+hangs)
					b.took()
					<-time.After(9 * time.Second)
					expect(t, "the explanation", explain.Key(s, "thing/c").String(),
						"thing/c is PENDING\n  needs: thing/a is FAILED: no answer in 30 s; create running for 40 s, abandoned\n")
					must(t, declare(t, s, "other/d", "2"))
					must(t, commitRefresh(t, s))
					must(t, declare(t, s, "thing/a", "2"))
					if _, err := s.Retry(t.Context(), "thing/a"); !errors.Is(err, scheduler.ErrNoAnswer) {
						t.Errorf("to try again gives %v", err)
					}
					expect(t, "the state", states(s), "other/d CONFIGURED 2; "+hangs)
					b.took()
					b.release("create thing/a", late)
					expect(t, "the state", states(s), "other/d CONFIGURED 2; thing/a CONFIGURED 2; thing/b CONFIGURED 1; thing/c CONFIGURED 1>thing/a")
					want := "update thing/a, create thing/c"
					if late != nil {
						want = "create thing/a, create thing/c"
					}
					if reads {
						want = "retrieve thing/, " + want
					}
					expect(t, "the calls", sorted(b.took()), sorted(want)) // the two verbs run concurrently
					if _, running := inspect.Running(s, "thing/a"); running {
						t.Error("a verb still runs")
					}
				})
			})
		}
	}
}

// What fails late is tried again with the back-off that it would have had; with success it stands.
func TestLateResultOfWhatIsStillWanted(t *testing.T) {
	for _, reads := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			b := newTar()
			b.reads = reads
			b.hang("create thing/a")
			b.hang("create thing/b")
			s, stop := b.begin(t, scheduler.Options{})
			defer stop()
			_ = declare(t, s, "thing/a", "1", "thing/b", "1")
			b.took()
			b.release("create thing/a", errors.New("too bad"))
			b.release("create thing/b", nil)
			expect(t, "the state", states(s), "thing/a RETRYING (too bad); thing/b CONFIGURED 1")
			<-time.After(2 * time.Second)
			expect(t, "the state", states(s), "thing/a CONFIGURED 1; thing/b CONFIGURED 1")
			if calls := b.took(); strings.Count(calls, "create") != 1 {
				t.Errorf("the calls are %s", calls)
			}
		})
	}
}

// A verb is abandoned while another transaction is driven, and returns before
// that one ends. The loop then has both to do in any order: drive its transaction, which
// learns that the verb was abandoned, and process the late result. In each order, later operations
// of the connection do not wait for the verb.
func TestLateResultBeforeItsOwnerGoesOn(t *testing.T) {
	for range 20 { // the order is random
		synctest.Test(t, func(t *testing.T) {
			b := newTar()
			s, stop := b.begin(t, scheduler.Options{VerbTimeout: 2 * time.Second})
			defer stop()
			must(t, declare(t, s, "thing/b", "1"))
			b.hang("create thing/a")
			b.hang("create other/x")
			ended := make(chan error, 2)
			go func() { ended <- declare(t, s, "thing/a", "1") }()
			<-time.After(2150 * time.Millisecond) // abandoned after 2200
			go func() { ended <- declare(t, s, "other/x", "1") }()
			<-time.After(60 * time.Millisecond)
			b.release("create thing/a", nil)
			b.release("create other/x", nil)
			for range 2 {
				if err := <-ended; err != nil && !errors.Is(err, scheduler.ErrNoAnswer) {
					t.Error(err)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if _, err := s.Commit(ctx, scheduler.Txn{Changes: []scheduler.Change{{Key: "thing/b"}}}); err != nil {
				t.Errorf("a deletion: %v; %s", err, explain.Key(s, "thing/b"))
			}
			expect(t, "the state", states(s), "other/x CONFIGURED 1; thing/a CONFIGURED 1")
		})
	}
}

// A Create that nobody wants any more keeps what it depends on and what it claims until it returns.
func TestCreateHangsUnwanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTar()
		s, stop := b.begin(t, scheduler.Options{})
		defer stop()
		must(t, declare(t, s, "thing/base", "1"))
		b.hang("create thing/a")
		_ = declare(t, s, "thing/a", "1=tap>thing/base")
		b.took()
		_ = declare(t, s, "thing/a", "", "thing/base", "", "thing/b", "1=tap>thing/base")
		if calls := b.took(); calls != "" {
			t.Errorf("the calls are %s", calls)
		}
		b.release("create thing/a", nil)
		expect(t, "the calls", b.took(), "retrieve thing/, delete thing/a, delete thing/base")
	})
}

// A Create that fails late may have been effective. Its key is read back even if its value is unwanted
// by then.
func TestCreateFailsLateUnwanted(t *testing.T) {
	for name, late := range map[string]time.Duration{"slow": slowness, "abandoned": time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newTar()
				b.half = true
				s, stop := b.begin(t, scheduler.Options{})
				defer stop()
				_, err := s.Commit(t.Context(), scheduler.Txn{Replace: true}) // so that what is not declared is removed
				must(t, err)
				b.hang("create thing/a")
				go func() { _ = declare(t, s, "thing/a", "1") }()
				<-time.After(late)
				go func() { _ = declare(t, s, "thing/a", "") }()
				<-time.After(late)
				b.took()
				b.release("create thing/a", errors.New("too late"))
				expect(t, "the calls", b.took(), "retrieve thing/, delete thing/a")
				expect(t, "what stands", fmt.Sprint(b.stands), "map[]")
			})
		})
	}
}

// The status of a value whose verb hangs says that it is unwanted, also if the transaction lasts.
func TestHangingUnwantedWhileParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTar()
		s, stop := b.begin(t, scheduler.Options{})
		defer stop()
		b.hang("create thing/a")
		_ = declare(t, s, "thing/a", "1")
		b.hang("create other/x")
		go func() { _ = declare(t, s, "thing/a", "", "other/x", "1") }()
		<-time.After(slowness)
		b.release("create other/x", nil)
		if st, _ := s.Status("thing/a"); st.Desired != nil {
			t.Errorf("the status is %+v, want no desired value", st)
		}
	})
}

// A slow memory keeps the loop from waiting for a verb that hangs. It is abandoned nevertheless.
func TestHangsAfterSlowSave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTar()
		s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler), Memory: slowBook{notebook{}}, VerbTimeout: time.Second})
		_, err := scheduler.Register(s, b.descriptor("thing/"))
		must(t, err)
		_, err = scheduler.Register(s, scheduler.Descriptor[note, struct{}]{Name: "seen", Prefix: "seen/"})
		must(t, err)
		defer begin(t, s)()
		b.hang("create thing/a")
		defer b.release("create thing/a", nil)
		must(t, declare(t, s, "thing/a", "1>seen/x"))
		s.Observe(scheduler.Observed{Key: "seen/x", Value: wrapperspb.String("1")})
		<-time.After(time.Minute)
		if st, _ := s.Status("thing/a"); st.State != failed || !errors.Is(st.Err, scheduler.ErrNoAnswer) {
			t.Errorf("the state is %v (%v), want FAILED (no answer)", st.State, st.Err)
		}
	})
}

// slowBook is a notebook whose Save takes longer than a turn of a run.
type slowBook struct{ notebook }

func (b slowBook) Save(changes iter.Seq2[string, []byte]) error {
	<-time.After(slowness)
	return b.notebook.Save(changes)
}

// An Update and a Delete that hang.
func TestUpdateAndDeleteHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTar()
		s, stop := b.begin(t, scheduler.Options{VerbTimeout: 10 * time.Second})
		defer stop()
		must(t, declare(t, s, "thing/a", "1", "thing/b", "1", "thing/c", "1>thing/a"))
		b.hang("update thing/a")
		b.hang("delete thing/b")
		_ = declare(t, s, "thing/a", "2", "thing/b", "")
		expect(t, "the state", states(s), "thing/a FAILED (no answer in 10 s); thing/b FAILED (no answer in 10 s); thing/c CONFIGURED 1>thing/a")
		must(t, declare(t, s, "thing/a", "1", "thing/b", "1", "other/d", "1>thing/b"))
		expect(t, "the state", states(s), "other/d PENDING; thing/a FAILED (no answer in 10 s); thing/b FAILED (no answer in 10 s); thing/c CONFIGURED 1>thing/a")
		b.took()
		b.release("update thing/a", nil)
		expect(t, "the calls", b.took(), "retrieve thing/, update thing/a")
		b.release("delete thing/b", nil)
		expect(t, "the calls", b.took(), "retrieve thing/, create thing/b, create other/d")
		expect(t, "the state", states(s), "other/d CONFIGURED 1>thing/b; thing/a CONFIGURED 1; thing/b CONFIGURED 1; thing/c CONFIGURED 1>thing/a")

		b.hang("update thing/a")
		b.hang("delete other/d")
		_ = declare(t, s, "thing/a", "2", "other/d", "")
		b.took()
		b.release("update thing/a", errors.New("too bad"))
		b.release("delete other/d", errors.New("too bad"))
		expect(t, "the state", states(s), "other/d RETRYING (too bad); thing/a RETRYING (too bad); thing/b CONFIGURED 1; thing/c CONFIGURED 1>thing/a")
		<-time.After(2 * time.Second)
		expect(t, "the state", states(s), "thing/a CONFIGURED 2; thing/b CONFIGURED 1; thing/c CONFIGURED 1>thing/a")
	})
}

// Calls that hang do not pile up: the other keys of the descriptor fail, those of others do not.
func TestStalledDescriptor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, n = 4, 40
		b := newTar()
		s, stop := b.begin(t, scheduler.Options{Concurrency: limit})
		defer stop()
		var all []string
		for i := range n {
			key := fmt.Sprintf("thing/%02d", i)
			b.hang("create " + key)
			all = append(all, key, "1")
		}
		if err := declare(t, s, append(all, "other/a", "1")...); !errors.Is(err, executor.ErrStalled) {
			t.Errorf("the error is %v", err)
		}
		if hung := strings.Count(b.took(), "create thing/"); hung < 8 || hung > 8-1+limit {
			t.Errorf("%d calls hang", hung)
		}
		if st, _ := s.Status("thing/39"); st.State != retrying || !errors.Is(st.Err, executor.ErrStalled) {
			t.Errorf("the last is %v: %v", st.State, st.Err)
		}
		if st, _ := s.Status("other/a"); st.State != configured {
			t.Errorf("another descriptor's is %v: %v", st.State, st.Err)
		}
		for call := range maps.Clone(b.hangs) {
			b.release(call, nil)
		}
		<-time.After(time.Minute)
		for _, st := range s.Statuses("") {
			if st.State != configured {
				t.Errorf("%s is %v: %v", st.Key, st.State, st.Err)
			}
		}
	})
}

// Run does not wait for a verb that was abandoned, and for others only a while.
func TestRunEndsWhileVerbsHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTar()
		s, stop := b.begin(t, scheduler.Options{})
		b.hang("create thing/a")
		b.hang("create thing/b")
		_ = declare(t, s, "thing/a", "1")
		v, err := s.Value("thing/b", wrapperspb.String("1"))
		must(t, err)
		must(t, s.Submit(t.Context(), scheduler.Txn{Changes: []scheduler.Change{v.Change()}}))
		synctest.Wait()
		begun := time.Now()
		stop()
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// A transaction that is undone when something fails is undone but for what still runs, and that
// follows when it returns.
func TestAtomicTransactionHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTar()
		s, stop := b.begin(t, scheduler.Options{})
		defer stop()
		must(t, declare(t, s, "thing/b", "1"))
		b.hang("create thing/a")
		var txn scheduler.Txn
		for key, text := range map[string]string{"thing/a": "1", "thing/b": "2"} {
			v, err := s.Value(key, wrapperspb.String(text))
			must(t, err)
			txn.Changes = append(txn.Changes, v.Change())
		}
		txn.Revert = true
		if _, err := s.Commit(t.Context(), txn); !errors.Is(err, scheduler.ErrNoAnswer) {
			t.Errorf("the error is %v", err)
		}
		expect(t, "the state", states(s), "thing/a FAILED (no answer in 30 s); thing/b CONFIGURED 1")
		b.release("create thing/a", nil)
		expect(t, "the state", states(s), "thing/b CONFIGURED 1")
		expect(t, "what stands", fmt.Sprint(b.stands), "map[thing/b:1]")
	})
}

// What a connection that was lost had to do ends with it, but no verb of its key begins before.
func TestConnectionLostWhileVerbHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTar()
		s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler)})
		g := group(t, s, "tar")
		_, err := scheduler.Register(s, b.descriptor("thing/"))
		must(t, err)
		defer begin(t, s)()
		g.Ready()
		synctest.Wait()
		b.hang("create thing/a")
		_ = declare(t, s, "thing/a", "1", "thing/b", "1")
		g.Lost(errors.New("gone"))
		synctest.Wait()
		expect(t, "the state", states(s), "thing/a PENDING; thing/b PENDING")
		b.mu.Lock()
		clear(b.stands)
		b.mu.Unlock()
		g.Ready()
		synctest.Wait()
		expect(t, "the state", states(s), "thing/a PENDING; thing/b CONFIGURED 1")
		b.took()
		b.release("create thing/a", errors.New("too bad"))
		expect(t, "the calls", b.took(), "retrieve thing/, create thing/a")
		expect(t, "the state", states(s), "thing/a CONFIGURED 1; thing/b CONFIGURED 1")
	})
}

// What a hung CreateAll was about fails as a whole, and each has its own late result.
func TestCreateAllHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTar()
		d := b.descriptor("thing/")
		d.CreateAll = func(_ context.Context, values []scheduler.Desired[note]) []scheduler.Created[struct{}] {
			err := b.call("create all", "thing/", func() {})
			out := make([]scheduler.Created[struct{}], len(values))
			for i, v := range values {
				if out[i].Err = err; err == nil {
					b.mu.Lock()
					b.stands[v.Key] = v.Value.GetValue()
					b.mu.Unlock()
				}
			}
			return out
		}
		s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler), Concurrency: 1, Memory: notebook{}})
		_, err := scheduler.Register(s, d)
		must(t, err)
		defer begin(t, s)()
		b.hang("create all thing/")
		b.hang("create thing/00")
		var all []string
		for i := range 30 {
			all = append(all, fmt.Sprintf("thing/%02d", i), "1")
		}
		if err := declare(t, s, all...); !errors.Is(err, scheduler.ErrNoAnswer) {
			t.Errorf("the error is %v", err)
		}
		b.release("create all thing/", nil)
		b.release("create thing/00", nil)
		synctest.Wait()
		if st := states(s); strings.Count(st, configured.String()) != 30 {
			t.Errorf("the state is %s", st)
		}
	})
}
