package owner

import (
	"context"
	"iter"

	"github.com/keyplane/keyplane/kvdbsync"
)

// Admitting returns a Connector with watches that yield nothing until the label is held in
// its store, or cannot be held. So an agent applies nothing from a store that names
// another owner, however late it reaches the store.
func Admitting(c kvdbsync.Connector, k *Keeper) kvdbsync.Connector { return admitting{c, k} }

// An admitting connector passes the first batch of a watch when the label is ours in the store.
type admitting struct {
	kvdbsync.Connector
	keeper *Keeper
}

// Watch implements kvdbsync.Connector.
func (a admitting) Watch(ctx context.Context, prefix string) iter.Seq2[kvdbsync.Batch, error] {
	return func(yield func(kvdbsync.Batch, error) bool) {
		admitted := false
		for b, err := range a.Connector.Watch(ctx, prefix) {
			if err == nil && !admitted {
				if a.keeper.Admit(ctx) != nil {
					return // ctx has ended, and so has the watch
				}
				admitted = true
			}
			if !yield(b, err) {
				return
			}
		}
	}
}
