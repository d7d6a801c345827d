package orchestrator

import (
	"context"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/scheduler"
)

// A Local is the content of a source that the process itself declares. It is complete from
// the start. The Memory is its only store. Sources that come into being at run time are
// layers: see [Orchestrator.Declare].
//
// Requests are processed one after the other, each as one transaction. Methods may be
// called from any goroutine, but not from a verb.
type Local struct{ *queue }

// NewLocal returns a Local for Source.Local.
func NewLocal() *Local { return &Local{newQueue(make(chan struct{}))} }

// Apply sets the pairs that have a value and deletes the others. It returns the record of
// the transaction, which is nil if no effective value changed. The error is a
// *scheduler.TxnError if values were refused or verbs failed. When ctx ends, a request
// that has not begun is withdrawn; one that has begun goes on. Keys are relative to the
// prefix of the agent.
func (l *Local) Apply(ctx context.Context, pairs []kvdbsync.Pair) (*scheduler.Record, error) {
	return l.do(ctx, &request{events: eventsOf(pairs), done: make(chan struct{})})
}

// Replace is Apply, and deletes all keys that are not in pairs.
func (l *Local) Replace(ctx context.Context, pairs []kvdbsync.Pair) (*scheduler.Record, error) {
	return l.do(ctx, &request{events: eventsOf(pairs), replace: true, done: make(chan struct{})})
}

// eventsOf converts pairs to events without a revision.
func eventsOf(pairs []kvdbsync.Pair) []kvdbsync.Event {
	out := make([]kvdbsync.Event, len(pairs))
	for i, p := range pairs {
		out[i] = kvdbsync.Event{Key: p.Key, Value: p.Value}
	}
	return out
}
