package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/linux/l3"
	"github.com/keyplane/keyplane/scheduler"
)

// BenchmarkBesideRefused commits good values, each an interface and a route over it, while the system refuses many others
// of their connection: in one transaction, and in its retries. It reports how long the good ones take, with and without the
// refused ones beside them.
func BenchmarkBesideRefused(b *testing.B) {
	for _, refused := range []int{0, 100_000} {
		b.Run(fmt.Sprintf("%d", refused), func(b *testing.B) { besideRefused(b, refused) })
	}
}

func besideRefused(b *testing.B, refused int) {
	const each, between = 10 * time.Second, 100 * time.Millisecond
	s := scheduler.New(scheduler.Options{})
	slowSystem(b, s)
	defer begin(b, s)()
	var bad []scheduler.Change
	for i := range refused {
		bad = append(bad, scheduler.Want(keyOf(b, badInterface(i)), badInterface(i)))
	}
	for b.Loop() {
		if err := s.Submit(context.Background(), scheduler.Txn{Changes: bad}); err != nil {
			b.Fatal(err)
		}
		var took []time.Duration
		for begun := time.Now(); time.Since(begun) < each; <-time.After(between) {
			i := len(took)
			iface := &interfaces.Interface{Name: fmt.Sprintf("good%d", i), Type: interfaces.Interface_VETH}
			route := &l3.Route{OutgoingInterface: iface.Name, DstNetwork: fmt.Sprintf("10.0.%d.%d/32", i>>8, i&255)}
			asked := time.Now()
			mustCommit(b, s, scheduler.Txn{Changes: []scheduler.Change{scheduler.Want(keyOf(b, iface), iface), scheduler.Want(keyOf(b, route), route)}})
			took = append(took, time.Since(asked))
		}
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
		b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
		b.ReportMetric(float64(len(took)), "good")
	}
}

func badInterface(i int) *interfaces.Interface {
	return &interfaces.Interface{Name: fmt.Sprintf("bad%d", i), Type: interfaces.Interface_DUMMY}
}

var errRefused = errors.New("operation not supported")

// slowSystem has one connection, whose verbs take 50 us one after the other, as in a kernel.
func slowSystem(tb testing.TB, s *scheduler.Scheduler) {
	type none = struct{}
	var kernel sync.Mutex
	work := func() {
		kernel.Lock()
		defer kernel.Unlock()
		for begun := time.Now(); time.Since(begun) < 50*time.Microsecond; {
		}
	}
	create := func(_ context.Context, _ string, i *interfaces.Interface) (none, error) {
		if work(); i.Type == interfaces.Interface_DUMMY {
			return none{}, errRefused
		}
		return none{}, nil
	}
	_, err := scheduler.Register(s, scheduler.Descriptor[*interfaces.Interface, none]{
		Name: "interface", Model: models.For[*interfaces.Interface](), Connection: "linux",
		Create: create,
		Delete: func(context.Context, string, *interfaces.Interface, none) error { work(); return nil },
		Retrieve: func(_ context.Context, ws []scheduler.Desired[*interfaces.Interface]) scheduler.Retrieved[*interfaces.Interface, none] {
			return func(yield func(scheduler.Found[*interfaces.Interface, none], error) bool) {
				for _, w := range ws {
					if w.Value.Type == interfaces.Interface_VETH && !yield(scheduler.Found[*interfaces.Interface, none]{Key: w.Key, Value: w.Value}, nil) {
						return
					}
				}
			}
		},
	})
	if err != nil {
		tb.Fatal(err)
	}
	_, err = scheduler.Register(s, scheduler.Descriptor[*l3.Route, none]{
		Name: "route", Model: models.For[*l3.Route](), Connection: "linux",
		Dependencies: func(_ string, r *l3.Route) []scheduler.Dependency {
			return []scheduler.Dependency{{Label: "outgoing-interface", Key: models.For[*interfaces.Interface]().Prefix() + r.OutgoingInterface}}
		},
		Create:   func(context.Context, string, *l3.Route) (none, error) { work(); return none{}, nil },
		Delete:   func(context.Context, string, *l3.Route, none) error { work(); return nil },
		Retrieve: echo[*l3.Route](none{}),
	})
	if err != nil {
		tb.Fatal(err)
	}
}
