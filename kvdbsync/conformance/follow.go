package conformance

import (
	"context"
	"testing"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
)

// A follower is a consumer of a running Source.
type follower struct {
	t       *testing.T
	h       Harness
	source  *kvdbsync.Source
	late    <-chan time.Time
	has     map[string]string
	deleted map[string]int // events by key
	resyncs int
}

// follow runs a Source on the harness until the test ends.
func follow(t *testing.T, h Harness) *follower {
	t.Helper()
	f := &follower{
		t: t, h: h,
		source: kvdbsync.NewSource(kvdbsync.Options{
			Name: "conformance", Connector: h.Connector, Root: h.Prefix,
			MinBackoff: time.Millisecond, MaxBackoff: 50 * time.Millisecond, AntiEntropy: -1,
		}),
		late:    time.After(h.Patience),
		has:     map[string]string{},
		deleted: map[string]int{},
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- f.source.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return f
}

// take waits for a change and applies it.
func (f *follower) take() kvdbsync.Change {
	f.t.Helper()
	for {
		if c, ok := f.source.Take(); ok {
			f.apply(c)
			return c
		}
		select {
		case <-f.source.Ready():
		case <-f.late:
			f.t.Fatalf("nothing came in time; health: %+v", f.source.Health())
		}
	}
}

// apply enters a change into the follower's content. It counts deletions by key, so a test
// can see that a key was never deleted in between.
func (f *follower) apply(c kvdbsync.Change) {
	if c.Resynced {
		f.resyncs++
	}
	for _, e := range c.Events {
		key := f.h.Prefix + e.Key
		if e.Value == nil {
			delete(f.has, key)
			f.deleted[key]++
			continue
		}
		f.has[key] = string(e.Value)
	}
}

// await takes changes until ok.
func (f *follower) await(ok func() bool) {
	f.t.Helper()
	for !ok() {
		f.take()
	}
}
