package conformance

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
)

// A Mirror follows a connector through a Source, for the connector's own tests.
type Mirror struct {
	t      testing.TB
	Source *kvdbsync.Source
	Has    map[string]string // the content of the store, without the root
	Errs   map[string]error  // of keys whose content is not a value
	Gone   int               // deletions of keys that it had
}

// Follow runs a Source on c until the test ends. Each wait of the Mirror may take five minutes.
func Follow(t testing.TB, c kvdbsync.Connector, root string) *Mirror {
	t.Helper()
	m := &Mirror{
		t: t, Has: map[string]string{}, Errs: map[string]error{},
		Source: kvdbsync.NewSource(kvdbsync.Options{Name: "followed", Connector: c, Root: root, MaxBackoff: 200 * time.Millisecond}),
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- m.Source.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return m
}

// Await takes changes until the mirror is synced and has exactly these pairs of key and value.
func (m *Mirror) Await(pairs ...string) {
	m.t.Helper()
	want := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		want[pairs[i]] = pairs[i+1]
	}
	m.Until(func() bool { return maps.Equal(m.Has, want) && m.Source.Health().State == kvdbsync.Synced })
}

// Until takes changes until holds.
func (m *Mirror) Until(holds func() bool) {
	m.t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	for !holds() {
		select {
		case <-m.Source.Ready():
		case <-late.C:
			m.t.Fatalf("the mirror has %.1000v; health %+v", m.Has, m.Source.Health())
		}
		c, _ := m.Source.Take()
		for _, e := range c.Events {
			m.take(e)
		}
	}
}

// take enters an event. A key with an error has no content, but it is not deleted.
func (m *Mirror) take(e kvdbsync.Event) {
	if _, had := m.Has[e.Key]; had && e.Value == nil && e.Err == nil {
		m.Gone++
	}
	delete(m.Has, e.Key)
	delete(m.Errs, e.Key)
	if e.Err != nil {
		m.Errs[e.Key] = e.Err
	} else if e.Value != nil {
		m.Has[e.Key] = string(e.Value)
	}
}

// AwaitLost waits until the source is lost with an error that is accepts, and returns it.
func (m *Mirror) AwaitLost(is func(error) bool) error {
	m.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		if err := m.Source.Health().Err; err != nil && is(err) {
			return err
		}
		select {
		case <-tick.C:
		case <-late.C:
			m.t.Fatalf("the loss was not noticed: %+v", m.Source.Health())
		}
	}
}

// Any accepts every error.
func Any(error) bool { return true }
