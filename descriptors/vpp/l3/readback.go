package l3

import (
	"context"
	"iter"
	"net/netip"

	"github.com/keyplane/keyplane/scheduler"
)

// readBack is how values are read back of which VPP does not know whose they are: a
// declared one is ours, however it is spelled.
type readBack[V scheduler.Message] struct {
	// read asks VPP. What is on an interface that has no name is left out.
	read func(ctx context.Context, names map[uint32]string) ([]V, error)
	// place is what tells a value from others.
	place func(v V) string
	// spell spells v as the declared value in its place. Optional.
	spell func(v, declared V)
}

// retrieve is the Retrieve of a descriptor.
func (r readBack[V]) retrieve(h handler) func(context.Context, []scheduler.Wanted[V]) iter.Seq2[scheduler.Found[V, struct{}], error] {
	return func(ctx context.Context, wanted []scheduler.Wanted[V]) iter.Seq2[scheduler.Found[V, struct{}], error] {
		return func(yield func(scheduler.Found[V, struct{}], error) bool) {
			all, err := r.read(ctx, h.namesByIndex())
			if err != nil {
				yield(scheduler.Found[V, struct{}]{}, err)
				return
			}
			declared := make(map[string]V, len(wanted))
			for _, w := range wanted {
				declared[r.place(w.Value)] = w.Value
			}
			for _, v := range all {
				w, ours := declared[r.place(v)]
				if ours && r.spell != nil {
					r.spell(v, w)
				}
				if !yield(scheduler.Found[V, struct{}]{Value: v, Unknown: !ours}, nil) {
					return
				}
			}
		}
	}
}

// canonical is an address as we spell it; what is none stays as it is.
func canonical(text string) string {
	if a, err := netip.ParseAddr(text); err == nil {
		return a.String()
	}
	return text
}
