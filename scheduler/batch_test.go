package scheduler_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

type (
	port    = *interfaces.Interface
	created = scheduler.Created[string]
)

// together is a southbound that notes which values were created with which others.
type together struct {
	mu      sync.Mutex
	bunches [][]string
	corrupt func(all []created) []created // nil: all goes well
}

func (s *together) note(names ...string) {
	<-time.After(time.Second) // so that others wait meanwhile
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bunches = append(s.bunches, names)
}

// all are the names, sorted, and the largest bunch.
func (s *together) all() (names []string, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.bunches {
		most = max(most, len(b))
		names = append(names, b...)
	}
	slices.Sort(names)
	return names, most
}

func (s *together) register(t *testing.T, sched *scheduler.Scheduler) {
	_, err := scheduler.Register(sched, scheduler.Descriptor[port, string]{
		Name: "interface", Model: models.For[port](), Connection: "kernel",
		Create: func(_ context.Context, _ string, v port) (string, error) {
			s.note(v.GetName())
			return v.GetName(), nil
		},
		CreateAll: func(_ context.Context, values []scheduler.Desired[port]) []created {
			var names []string
			out := make([]created, len(values))
			for i, w := range values {
				names = append(names, w.Value.GetName())
				out[i].Meta = w.Value.GetName()
			}
			s.note(names...)
			if s.corrupt != nil {
				out = s.corrupt(out)
			}
			return out
		},
		Delete: func(context.Context, string, port, string) error { return nil },
	})
	must(t, err)
}

var errSpoilt = errors.New("spoilt")

// Values that wait for the same verb are created together, each once, and each has its own
// result.
func TestValuesAreCreatedTogether(t *testing.T) {
	const n = 100
	for _, test := range []struct {
		name    string
		corrupt func([]created) []created
		fails   func(bunch int) int // of so many, so many fail
	}{
		{"all", nil, func(int) int { return 0 }},
		{"but the last", func(all []created) []created {
			all[len(all)-1].Err = errSpoilt
			return all
		}, func(int) int { return 1 }},
		{"one result is missing", func(all []created) []created { return all[1:] }, func(bunch int) int { return bunch }},
		{"it panics", func([]created) []created { panic("oh") }, func(bunch int) int { return bunch }},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, south := scheduler.New(scheduler.Options{Concurrency: 2}), &together{corrupt: test.corrupt}
				south.register(t, s)
				defer begin(t, s)()
				changes := interfacesNamed(t, s, n)
				_, err := s.Commit(t.Context(), scheduler.Txn{Changes: changes, Retry: scheduler.RetryPolicy{Never: true}})
				names, most := south.all()
				if len(names) != n || len(slices.Compact(names)) != n || most < 2 {
					t.Errorf("%d were created, at most %d together: %v", len(names), most, names)
				}
				want := 0
				for _, bunch := range south.bunches {
					if len(bunch) > 1 {
						want += test.fails(len(bunch))
					}
				}
				var failures *scheduler.TxnError
				if errors.As(err, &failures); want > 0 && (failures == nil || len(failures.Failed) != want) || want == 0 && err != nil {
					t.Errorf("want %d failures: %v", want, err)
				}
			})
		})
	}
}

// Who is around the verbs of a group is around those that are called together, or has them
// called one by one.
func TestAroundVerbsThatAreCalledTogether(t *testing.T) {
	const n = 100
	for _, allowed := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s, south := scheduler.New(scheduler.Options{Concurrency: 2}), &together{}
			var mu sync.Mutex
			seen := 0
			see := func(n int) {
				mu.Lock()
				defer mu.Unlock()
				seen += n
			}
			g := group(t, s, "kernel")
			must(t, g.Intercept(func(_ string, _ proto.Message, verb func() error) error { see(1); return verb() }))
			must(t, g.InterceptAll(func(values []scheduler.KeyValue, verbs func() []error) bool {
				if allowed {
					see(len(values))
					if errs := verbs(); len(errs) != len(values) || errors.Join(errs...) != nil {
						t.Errorf("%d errors of %d: %v", len(errs), len(values), errs)
					}
				}
				return allowed
			}))
			south.register(t, s)
			defer begin(t, s)()
			g.Ready()
			synctest.Wait()
			mustCommit(t, s, scheduler.Txn{Changes: interfacesNamed(t, s, n)})
			names, most := south.all()
			if len(names) != n || seen != n || (most > 1) != allowed {
				t.Errorf("%d were created, at most %d together, and %d seen", len(names), most, seen)
			}
		})
	}
}
