package orchestrator_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"golang.org/x/sync/errgroup"

	"github.com/keyplane/keyplane/internal/budget"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/scheduler"
)

// A slowDecoder is a scheduler whose Decode of large values returns only when the test says so.
type slowDecoder struct {
	*scheduler.Scheduler
	release <-chan struct{}
	running atomic.Int32
	most    atomic.Int32 // of running
}

func (d *slowDecoder) Decode(key string, data []byte) (scheduler.Value, error) {
	if len(data) >= large {
		d.most.Store(max(d.most.Load(), d.running.Add(1)))
		<-d.release
		d.running.Add(-1)
	}
	return d.Scheduler.Decode(key, data)
}

// large is the size, in bytes, from which on a value of these tests takes long to decode.
const large = 128 << 10

// largeEvent is an event that takes long to decode. Spaces make it large.
func largeEvent(name, mtu string) kvdbsync.Event { return eventOfSize(name, mtu, large) }

func eventOfSize(name, mtu string, bytes int) kvdbsync.Event {
	e := event(name, mtu)
	e.Value = append(e.Value, strings.Repeat(" ", bytes)...)
	return e
}

// slowly runs test with sources of these names, whose snapshots are complete and empty. Large values
// are decoded when release says so.
func slowly(t *testing.T, memory *budget.Budget, test func(r *rig, decoder *slowDecoder, release chan struct{}), names ...string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r := &rig{inputs: map[string]*input{}, stands: map[string]string{}}
		r.sched = scheduler.New(scheduler.Options{})
		if _, err := scheduler.Register(r.sched, r.descriptor()); err != nil {
			t.Fatal(err)
		}
		release := make(chan struct{})
		decoder := &slowDecoder{Scheduler: r.sched, release: release}
		opts := orchestrator.Options{Decoding: memory}
		for i, name := range names {
			r.inputs[name] = newInput()
			opts.Sources = append(opts.Sources, orchestrator.Source{Name: name, Priority: i, Feed: r.inputs[name]})
		}
		r.orch = orchestrator.New(decoder, opts)
		var running errgroup.Group
		running.Go(func() error { return r.sched.Run(ctx) })
		running.Go(func() error { return r.orch.Run(ctx) })
		for name := range r.inputs {
			r.give(name, kvdbsync.Change{Synced: true})
		}
		test(r, decoder, release)
		cancel()
		if err := running.Wait(); err != nil {
			t.Error(err)
		}
	})
}

// TestLargeChangesDelayNoOtherSource: while large values of two sources are decoded, the
// change of a third one is applied. The large values follow, in the order of each source.
func TestLargeChangesDelayNoOtherSource(t *testing.T) {
	memory := budget.New(2 << 20)
	leave := memory.Press(2 << 20) // others parse texts
	slowly(t, memory, func(r *rig, decoder *slowDecoder, release chan struct{}) {
		r.give("etcd", kvdbsync.Change{Synced: true, Events: events("good=1")})
		for _, name := range []string{"files", "redis"} {
			slow := largeEvent("slow"+name, "1")
			r.give(name, kvdbsync.Change{Synced: true, Events: []kvdbsync.Event{slow}})
			r.inputs[name].give(kvdbsync.Change{Synced: true, Events: events(fmt.Sprintf("slow%s=2", name))})
		}
		r.give("etcd", kvdbsync.Change{Synced: true, Events: events("good=2")})
		if got := r.standing(); got != "good=2" {
			t.Errorf("while large values are decoded, %q stand; want the other source's change", got)
		}
		if n := decoder.running.Load(); n != 0 {
			t.Errorf("%d large values are decoded without memory", n)
		}
		leave()
		synctest.Wait()
		if n := decoder.running.Load(); n != 1 {
			t.Errorf("large values of %d sources are decoded at once, want 1: each takes memory", n)
		}
		close(release)
		synctest.Wait()
		if got := r.standing(); got != "good=2 slowfiles=2 slowredis=2" {
			t.Errorf("afterwards %q stand", got)
		}
	}, "files", "redis", "etcd")
}

// TestLargeValuesOfAChangeTakeTurns: a change has large values among many small ones. The large
// ones are decoded one by one, however many processors there are, because each takes memory.
func TestLargeValuesOfAChangeTakeTurns(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	slowly(t, budget.New(64<<20), func(r *rig, decoder *slowDecoder, release chan struct{}) {
		change := kvdbsync.Change{Synced: true}
		for n := range 4 {
			change.Events = append(change.Events, eventOfSize(fmt.Sprint("slow", n), "1", 1<<20))
			for small := range 100 {
				change.Events = append(change.Events, event(fmt.Sprintf("small%d-%d", n, small), "1"))
			}
		}
		r.give("files", change)
		for range 4 {
			release <- struct{}{}
			synctest.Wait()
		}
		if most := decoder.most.Load(); most != 1 {
			t.Errorf("%d large values were decoded at once, want 1", most)
		}
		if got := len(r.stands); got != 404 {
			t.Errorf("%d values stand, want 404", got)
		}
	}, "files")
}
