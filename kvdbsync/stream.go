package kvdbsync

import (
	"context"
	"errors"
	"iter"
)

// errReaderStopped carries the end of an iteration through a watch.
var errReaderStopped = errors.New("the reader has stopped")

// Stream makes the result of Connector.Watch from a function. The function passes each
// Batch to emit, and returns when emit returns an error.
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
