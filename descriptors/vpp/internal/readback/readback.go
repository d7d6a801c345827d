// Package readback reads back values of which VPP does not know whose they are: a declared
// one is ours and has the key under which it was declared, and of others a Memory may know.
package readback

import (
	"context"
	"errors"
	"iter"

	"github.com/keyplane/keyplane/scheduler"
)

// An Of is how values of one sort are read back.
type Retriever[V scheduler.Message] struct {
	// Read asks VPP. Where this VPP has no such messages there are no such values.
	Read func(ctx context.Context) ([]V, error)
	// Place is what tells a value from others.
	ID func(v V) string
	// Spell spells v as the declared value in its place. Optional.
	AsDeclared func(v, declared V)
}

// Retrieve is that of the descriptor.
func (o Retriever[V]) Retrieve(ctx context.Context, wanted []scheduler.Desired[V]) iter.Seq2[scheduler.Found[V, struct{}], error] {
	return func(yield func(scheduler.Found[V, struct{}], error) bool) {
		all, err := o.Read(ctx)
		if errors.Is(err, scheduler.ErrUnimplemented) {
			return
		}
		if err != nil {
			yield(scheduler.Found[V, struct{}]{}, err)
			return
		}
		declared := make(map[string]scheduler.Desired[V], len(wanted))
		for _, w := range wanted {
			declared[o.ID(w.Value)] = w
		}
		for _, v := range all {
			w, ours := declared[o.ID(v)]
			if ours && o.AsDeclared != nil {
				o.AsDeclared(v, w.Value)
			}
			if !yield(scheduler.Found[V, struct{}]{Key: w.Key, Value: v, OwnerUnknown: !ours}, nil) {
				return
			}
		}
	}
}
