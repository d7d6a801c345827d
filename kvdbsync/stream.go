package kvdbsync

import (
	"context"
	"errors"
	"iter"
)

// errReaderStopped carries the end of an iteration through a watch.
var errReaderStopped = errors.New("the reader has stopped")

// Emitting makes the result of Connector.Watch of a function that hands each Batch to
// emit, and returns as soon as that fails.
func Stream(ctx context.Context, watch func(emit func(Batch) error) error) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		err := watch(func(b Batch) error {
			if !yield(b, nil) {
				return errReaderStopped
			}
			return nil
		})
		if ctx.Err() == nil && !errors.Is(err, errReaderStopped) {
			yield(Batch{}, err)
		}
	}
}
