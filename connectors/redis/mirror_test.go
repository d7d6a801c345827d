package redis_test

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
)

const root = "/vnf-agent/vpp1/"

// A mirror follows a connector through a Source.
type mirror struct {
	t      *testing.T
	source *kvdbsync.Source
	has    map[string]string
	errs   map[string]error
	gone   int // deletions of keys that it held
	late   <-chan time.Time
}

func follow(t *testing.T, c kvdbsync.Connector) *mirror {
	t.Helper()
	m := &mirror{
		t: t, has: map[string]string{}, errs: map[string]error{}, late: time.After(time.Minute),
		source: kvdbsync.NewSource(kvdbsync.Options{Name: "redis", Connector: c, Root: root, MaxBackoff: 200 * time.Millisecond}),
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- m.source.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return m
}

// await takes changes until the mirror holds exactly want, pairs of key and value.
func (m *mirror) await(pairs ...string) {
	m.t.Helper()
	want := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		want[pairs[i]] = pairs[i+1]
	}
	m.until(func() bool { return maps.Equal(m.has, want) && m.source.Health().State == kvdbsync.Synced })
}

// until takes changes until ok.
func (m *mirror) until(ok func() bool) {
	m.t.Helper()
	for !ok() {
		select {
		case <-m.source.Ready():
		case <-m.late:
			m.t.Fatalf("the mirror has %.1000v; health %+v", m.has, m.source.Health())
		}
		c, _ := m.source.Take()
		for _, e := range c.Events {
			if _, had := m.has[e.Key]; had && e.Value == nil && e.Err == nil {
				m.gone++
			}
			delete(m.has, e.Key)
			delete(m.errs, e.Key)
			if e.Err != nil {
				m.errs[e.Key] = e.Err
			} else if e.Value != nil {
				m.has[e.Key] = string(e.Value)
			}
		}
	}
}

// awaitLost waits until the source has noticed, and returns why it thinks so.
func (m *mirror) awaitLost() error {
	m.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for m.source.Health().Err == nil {
		select {
		case <-tick.C:
		case <-m.late:
			m.t.Fatalf("the loss was not noticed: %+v", m.source.Health())
		}
	}
	return m.source.Health().Err
}

// watched is a Watch that has listed, read batch by batch.
type watched struct {
	t    *testing.T
	next func() (kvdbsync.Batch, error, bool)
}

func (w watched) read() kvdbsync.Batch {
	w.t.Helper()
	b, err, ok := w.next()
	if err != nil || !ok {
		w.t.Fatalf("the watch ended: %v", err)
	}
	return b
}
