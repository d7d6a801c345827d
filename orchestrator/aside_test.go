package orchestrator_test

import (
	"context"
	"fmt"
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

// A slowDecoder is a scheduler whose Decode of some keys returns only when the test says so.
type slowDecoder struct {
	*scheduler.Scheduler
	release <-chan struct{}
	running atomic.Int32
	most    atomic.Int32 // of running
}

func (d *slowDecoder) Decode(key string, data []byte) (scheduler.Value, error) {
	if strings.HasPrefix(key, prefix+"slow") {
		d.most.Store(max(d.most.Load(), d.running.Add(1)))
		<-d.release
		d.running.Add(-1)
	}
	return d.Scheduler.Decode(key, data)
}

// largeEvent is an event that takes long to decode. Spaces make it large.
func largeEvent(name, mtu string) kvdbsync.Event {
	e := event(name, mtu)
	e.Value = append(e.Value, strings.Repeat(" ", 128<<10)...)
	return e
}

// TestLargeChangesDelayNoOtherSource: while large values of two sources are decoded, the
// change of a third one is applied. The large values follow, in the order of each source.
func TestLargeChangesDelayNoOtherSource(t *testing.T) {
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
		memory := budget.New(1 << 20)
		leave, err := memory.Enter(ctx, 1<<20) // others parse texts
		if err != nil {
			t.Fatal(err)
		}
		opts := orchestrator.Options{Decoding: memory}
		for i, name := range []string{"files", "redis", "etcd"} {
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
		close(release)
		synctest.Wait()
		if got := r.standing(); got != "good=2 slowfiles=2 slowredis=2" {
			t.Errorf("afterwards %q stand", got)
		}
		if most := decoder.most.Load(); most != 1 {
			t.Errorf("large values of %d sources were decoded at once, want 1: each takes memory", most)
		}
		cancel()
		if err := running.Wait(); err != nil {
			t.Error(err)
		}
	})
}
