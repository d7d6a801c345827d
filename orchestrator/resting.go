package orchestrator

import (
	"context"

	"github.com/keyplane/keyplane/internal/pulse"
	"github.com/keyplane/keyplane/scheduler"
)

// resting is the scheduler as Run's goroutine calls it: a call is a wait, since a transaction begins only
// when the earlier ones allow it.
type resting struct {
	Committer
	pulse *pulse.Pulse
}

// Commit implements Committer.
func (r resting) Commit(ctx context.Context, txn scheduler.Txn) (*scheduler.Record, error) {
	r.pulse.Rest()
	defer r.pulse.Work()
	return r.Committer.Commit(ctx, txn)
}

// Start implements Committer.
func (r resting) Start(ctx context.Context, txn scheduler.Txn, ended func(*scheduler.Record, error)) error {
	r.pulse.Rest()
	defer r.pulse.Work()
	return r.Committer.Start(ctx, txn, ended)
}
