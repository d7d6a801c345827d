package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// A planned is a scheduler with values whose comparison takes time, so that a plan that
// changes them does.
type planned struct {
	*testing.T
	*scheduler.Scheduler
	compared  atomic.Int32
	comparing atomic.Pointer[func()] // called by each comparison; nil: nothing is
}

const plannedValues = 100

// startPlanned runs a scheduler with plannedValues values in a bubble of synctest.
func startPlanned(t *testing.T) (p *planned, stop func()) {
	type none = struct{}
	p = &planned{T: t, Scheduler: scheduler.New(scheduler.Options{})}
	_, err := scheduler.Register(p.Scheduler, scheduler.Descriptor[*interfaces.Interface, none]{
		Name: "interface", Model: models.For[*interfaces.Interface](),
		Equivalent: func(_ string, a, b *interfaces.Interface) bool {
			p.compared.Add(1)
			if do := p.comparing.Load(); do != nil {
				(*do)()
			}
			return a.Mtu == b.Mtu
		},
		Create: func(context.Context, string, *interfaces.Interface) (none, error) { return none{}, nil },
		Update: func(context.Context, string, *interfaces.Interface, *interfaces.Interface, none) (none, error) {
			return none{}, nil
		},
		Delete: func(context.Context, string, *interfaces.Interface, none) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	stop = begin(t, p.Scheduler)
	mustCommit(t, p.Scheduler, p.txn(0))
	return p, stop
}

// txn gives all values an MTU.
func (p *planned) txn(mtu uint32) scheduler.Txn {
	var txn scheduler.Txn
	for i := range plannedValues {
		txn.Changes = append(txn.Changes, p.change(fmt.Sprintf("if%d", i), mtu))
	}
	return txn
}

func (p *planned) change(name string, mtu uint32) scheduler.Change {
	m := &interfaces.Interface{Name: name, Mtu: mtu}
	v, err := p.Value(keyOf(p, m), m)
	if err != nil {
		p.Fatal(err)
	}
	return v.Change()
}

// takes has each comparison take d.
func (p *planned) takes(d time.Duration) {
	do := func() { <-time.After(d) }
	p.comparing.Store(&do)
}

// commitsEvery commits a small transaction after each pause d, until quiet is called. quiet returns
// when the last one has ended: a bubble must not end with a goroutine that waits for its clock.
func (p *planned) commitsEvery(t *testing.T, d time.Duration) (quiet func()) {
	ctx, cancel := context.WithCancel(t.Context())
	txn := scheduler.Txn{Changes: []scheduler.Change{p.change("another", 0)}}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(d):
				if _, err := p.Commit(t.Context(), txn); err != nil {
					t.Error(err)
				}
			}
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

// TestTransactionInterruptsPlan commits while a plan is being made that takes 10 s. The
// transaction waits for one step of the plan, which ends as if nothing had come between.
func TestTransactionInterruptsPlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, stop := startPlanned(t)
		defer stop()
		undisturbed, err := p.Plan(t.Context(), p.txn(1))
		if err != nil {
			t.Fatal(err)
		}
		p.takes(100 * time.Millisecond)
		p.compared.Store(0)
		done, txn := make(chan *scheduler.Record), p.txn(1)
		go func() {
			plan, err := p.Plan(t.Context(), txn)
			if err != nil {
				t.Error(err)
			}
			done <- plan
		}()
		for range 2 {
			<-time.After(2050 * time.Millisecond)
			begun := time.Now()
			mustCommit(t, p.Scheduler, scheduler.Txn{Changes: []scheduler.Change{p.change("another", 0)}})
			if waited := time.Since(begun); waited > 100*time.Millisecond {
				t.Errorf("the transaction waited %v for a plan; expected at most one step of it, 100ms", waited)
			}
		}
		plan := <-done
		if n := p.compared.Load(); n <= plannedValues+20 {
			t.Errorf("%d comparisons: the plan was not interrupted", n)
		}
		if !reflect.DeepEqual(plan.Planned, undisturbed.Planned) {
			t.Errorf("planned %d operations after the interruptions, other than the %d without", plan.Planned.Len(), undisturbed.Planned.Len())
		}
		if plan.Seq != undisturbed.Seq+2 {
			t.Errorf("the plan is for transaction %d, want %d", plan.Seq, undisturbed.Seq+2)
		}
	})
}

// TestPlanGivesUp changes something in each attempt at a plan.
func TestPlanGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, stop := startPlanned(t)
		defer stop()
		p.takes(100 * time.Millisecond)
		quiet := p.commitsEvery(t, 500*time.Millisecond)
		_, err := p.Plan(t.Context(), p.txn(1))
		if !errors.Is(err, scheduler.ErrUnsettled) {
			t.Errorf("planned: %v; want ErrUnsettled", err)
		}
		quiet()
		p.comparing.Store(nil)
		if plan, err := p.Plan(t.Context(), p.txn(1)); err != nil || plan.Planned.Len() != plannedValues {
			t.Errorf("when it is quiet again: %v", err)
		}
	})
}

// TestSmallPlanIsNotInterrupted has something to do all the time: a plan of 10 ms is made
// nevertheless, at once.
func TestSmallPlanIsNotInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, stop := startPlanned(t)
		defer stop()
		p.takes(10 * time.Millisecond)
		defer p.commitsEvery(t, time.Millisecond)()
		begun := time.Now()
		_, err := p.Plan(t.Context(), scheduler.Txn{Changes: []scheduler.Change{p.change("if1", 1)}})
		if took := time.Since(begun); err != nil || took > 20*time.Millisecond {
			t.Errorf("planned in %v: %v", took, err)
		}
	})
}

// TestPlansEndWithTheirContext ends the contexts of one plan that is being made and of one
// that waits for it, and then the scheduler.
func TestPlansEndWithTheirContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, stop := startPlanned(t)
		p.takes(100 * time.Millisecond)
		errs, txn := make(chan error), p.txn(1)
		plan := func(timeout time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			_, err := p.Plan(ctx, txn)
			errs <- err
		}
		begun := time.Now()
		go plan(time.Second)
		synctest.Wait()
		go plan(500 * time.Millisecond)
		for range 2 {
			if err := <-errs; !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		}
		if took := time.Since(begun); took > 1100*time.Millisecond {
			t.Errorf("they ended after %v", took)
		}
		go plan(time.Hour)
		<-time.After(time.Second)
		stop()
		if err := <-errs; !errors.Is(err, scheduler.ErrStopped) {
			t.Error(err)
		}
	})
}

// BenchmarkPlanInterrupted measures how long a small transaction waits that comes while
// 400 k values are planned.
func BenchmarkPlanInterrupted(b *testing.B) {
	const n = 400_000
	ms := network(n)
	keys := keysOf(b, ms)
	for _, standing := range []bool{false, true} {
		b.Run(fmt.Sprintf("standing=%v", standing), func(b *testing.B) {
			s, stop := start(b)
			defer stop()
			plan := scheduler.Txn{Changes: wantAll(b, s, keys, ms)}
			if standing {
				mustCommit(b, s, plan)
				plan = scheduler.Txn{Replace: true}
			}
			one := scheduler.Txn{Changes: wantAll(b, s, keys[:1], ms[:1])}
			begun := time.Now()
			if _, err := s.Plan(b.Context(), plan); err != nil {
				b.Fatal(err)
			}
			whole := time.Since(begun)
			var most time.Duration
			for i := 0; b.Loop(); i++ {
				ctx, cancel := context.WithCancel(b.Context())
				done := make(chan struct{})
				go func() {
					_, _ = s.Plan(ctx, plan)
					close(done)
				}()
				<-time.After(whole * time.Duration(1+i%9) / 10)
				begun := time.Now()
				mustCommit(b, s, one)
				most = max(most, time.Since(begun))
				cancel()
				<-done
			}
			b.ReportMetric(float64(whole.Milliseconds()), "plan-ms")
			b.ReportMetric(float64(most.Milliseconds()), "longest-wait-ms")
		})
	}
}

// TestPlanNamesBases plans derived values that are created, deleted and waiting. The records that are
// kept have no bases.
func TestPlanNamesBases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type none = struct{}
		s := scheduler.New(scheduler.Options{Simulate: true})
		_, err := scheduler.Register(s, scheduler.Descriptor[*interfaces.Interface, none]{
			Name: "interface", Model: models.For[*interfaces.Interface](),
			Derived: func(_ string, v *interfaces.Interface) (out []scheduler.KeyValue) {
				for _, address := range v.IpAddresses {
					out = append(out, scheduler.KeyValue{Key: "address/" + address, Value: &emptypb.Empty{}})
				}
				return out
			},
			Create: func(context.Context, string, *interfaces.Interface) (none, error) { return none{}, nil },
			Update: func(context.Context, string, *interfaces.Interface, *interfaces.Interface, none) (none, error) {
				return none{}, nil
			},
			Delete: func(context.Context, string, *interfaces.Interface, none) error { return nil },
		})
		must(t, err)
		_, err = scheduler.Register(s, scheduler.Descriptor[*emptypb.Empty, none]{
			Name: "address", Prefix: "address/",
			Dependencies: func(key string, _ *emptypb.Empty) []scheduler.Dependency {
				if key == "address/waits" {
					return []scheduler.Dependency{{Label: "other", Key: "other"}}
				}
				return nil
			},
			Create: func(context.Context, string, *emptypb.Empty) (none, error) { return none{}, nil },
			Delete: func(context.Context, string, *emptypb.Empty, none) error { return nil },
		})
		must(t, err)
		defer begin(t, s)()
		change := func(addresses ...string) scheduler.Txn {
			m := &interfaces.Interface{Name: "if1", IpAddresses: addresses}
			v, err := s.Value(keyOf(t, m), m)
			must(t, err)
			return scheduler.Txn{Changes: []scheduler.Change{v.Change()}}
		}
		for _, record := range []*scheduler.Record{mustCommit(t, s, change("old")), s.History()[0]} {
			for _, ops := range []scheduler.Operations{record.Planned, record.Executed} {
				for _, o := range ops.All() {
					if o.Base != "" {
						t.Errorf("the record has the base of %s", o.Key)
					}
				}
			}
		}
		record, err := s.Plan(t.Context(), change("new", "waits"))
		must(t, err)
		got := map[string]string{}
		for _, o := range record.Planned.All() {
			got[o.Verb.String()+" "+o.Key] = o.Base
		}
		base := key("if1")
		want := map[string]string{"UPDATE " + base: "", "DELETE address/old": base, "CREATE address/new": base, "CREATE address/waits": base}
		if !maps.Equal(got, want) {
			t.Errorf("bases %v; expected %v", got, want)
		}
	})
}
