package scheduler_test

import (
	"context"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/keyplane/keyplane/scheduler"
)

// Somebody changes a value while it is read back, and takes away a part of it: that is observed before the result of the
// reading counts. The result does not count then, so the value is read once more, and repaired.
func TestPartGoesWhileItsBaseIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const base, part = "thing/a", "part/a"
		var stands atomic.Value // a string
		var read atomic.Int32
		stands.Store("1")
		held, holds := make(chan struct{}), make(chan chan struct{}, 1) // a reading that finds held waits for its end
		s := scheduler.New(scheduler.Options{})
		_, err := scheduler.Register(s, scheduler.Descriptor[note, struct{}]{
			Name: "thing", Prefix: "thing/",
			Create: func(_ context.Context, _ string, m note) (struct{}, error) {
				stands.Store(m.GetValue())
				return struct{}{}, nil
			},
			Update: func(_ context.Context, _ string, _, m note, _ struct{}) (struct{}, error) {
				stands.Store(m.GetValue())
				return struct{}{}, nil
			},
			Delete: func(context.Context, string, note, struct{}) error { return nil },
			Derived: func(string, note) []scheduler.KeyValue {
				return []scheduler.KeyValue{{Key: part, Value: wrapperspb.String("1")}}
			},
			Retrieve: func(context.Context, []scheduler.Desired[note]) iter.Seq2[noteFound, error] {
				return func(yield func(noteFound, error) bool) {
					now := stands.Load().(string)
					read.Add(1)
					select {
					case wait := <-holds:
						<-wait
					default:
					}
					yield(noteFound{Key: base, Value: wrapperspb.String(now)}, nil)
				}
			},
		})
		must(t, err)
		_, err = scheduler.Register(s, scheduler.Descriptor[note, struct{}]{
			Name: "part", Prefix: "part/",
			Create: func(context.Context, string, note) (struct{}, error) { return struct{}{}, nil },
			Delete: func(context.Context, string, note, struct{}) error { return nil },
		})
		must(t, err)
		stop := begin(t, s)
		defer stop()
		must(t, declare(t, s, base, "1"))
		must(t, commitRefresh(t, s))

		stands.Store("2") // by somebody else
		read.Store(0)
		holds <- held
		must(t, s.Refresh("thing"))
		<-time.After(time.Second) // the scheduler does other work meanwhile
		s.Observe(scheduler.Observed{Key: part})
		<-time.After(time.Second)
		close(held)
		<-time.After(3 * time.Second) // with the rest before the next reading
		if stands.Load() != "1" || read.Load() < 2 {
			t.Errorf("after %d readings, there is %q; want what is declared: 1", read.Load(), stands.Load())
		}
		expect(t, "the states", states(s), "part/a CONFIGURED 1; thing/a CONFIGURED 1")
	})
}
