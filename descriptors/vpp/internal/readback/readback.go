// Package readback implements Retrieve for values without an owner in VPP. A value that is
// declared is the agent's own and gets the declared key. For other values, the scheduler's
// memory decides.
package readback

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/reading"
)

// A Retriever implements Retrieve for one kind of value.
type Retriever[V proto.Message] struct {
	// Read dumps the values from VPP. Without learns, somebody only looks: it changes nothing.
	Read func(ctx context.Context, learns bool) ([]V, error)
	// ID identifies a value among those of its kind, independent of the notation of
	// addresses.
	ID func(v V) string
	// AsDeclared changes v to the notation of the declared value, so that both compare
	// equal. Optional.
	AsDeclared func(v, declared V)
	// Details returns what VPP tells of a value besides, for people who look. Optional.
	Details func(v V) any
	// Declared is called with each declared value that VPP has, unless somebody only looks. Optional.
	Declared func(v V)
}

// Retrieve implements the verb of the descriptor.
func (o Retriever[V]) Retrieve(ctx context.Context, wanted []scheduler.Desired[V]) scheduler.Retrieved[V, struct{}] {
	return reading.Of(func(learns bool, yield func(scheduler.Found[V, struct{}], error) bool) {
		all, err := o.Read(ctx, learns)
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
			if ours && learns && o.Declared != nil {
				o.Declared(w.Value)
			}
			one := scheduler.Found[V, struct{}]{Key: w.Key, Value: v, OwnerUnknown: !ours}
			if !learns && o.Details != nil {
				one.Details = o.Details(v)
			}
			if !yield(one, nil) {
				return
			}
		}
	})
}
