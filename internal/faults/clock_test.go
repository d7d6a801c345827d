package faults

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/internal/faults/history"
	"github.com/keyplane/keyplane/internal/faults/stores"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
)

// A clock that leaps ahead makes everything due at once that waits for a time. Nothing
// of it may touch the network. (One that goes back is not seen: what is waited for is
// measured by the monotonic clock.)
func TestClockLeaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store conformance.Memory
		put := func(name, text string) {
			store.Txn(kvdbsync.Event{Key: stores.KeyOf(name), Value: stores.ValueOf(name, text)})
		}
		put("if0", "v1")
		put("if1", "v1")
		south := newSouthbound(map[string]string{}, func(history.Change) error { return nil })
		agent, err := newAgent(agentOptions{connector: &store, south: south, log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() { done <- agent.Run(t.Context()) }()
		<-south.Expect(map[string]string{"if0": "v1", "if1": "v1"})
		before, _ := south.Verbs()
		for _, leap := range []time.Duration{time.Hour, 30 * 24 * time.Hour} {
			<-time.After(leap)
			synctest.Wait()
			if n, _ := south.Verbs(); n != before {
				t.Errorf("%d operations after a leap of %v", n-before, leap)
			}
		}
		put("if0", "v2")
		<-south.Expect(map[string]string{"if0": "v2", "if1": "v1"})
		t.Cleanup(func() {
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	})
}
