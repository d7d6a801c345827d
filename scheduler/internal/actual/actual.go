// Package actual reads back the actual values of a scheduler beside its loop, for packages drift and
// inspect. No transaction waits for it, and its results are never used to decide anything.
package actual

import (
	"context"

	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
	"github.com/keyplane/keyplane/scheduler/internal/readback"
)

// A Reader reads back descriptors with the desired values of one moment. Any goroutine may use it.
type Reader struct {
	s       *scheduler.Scheduler
	desired map[string][]kind.Desired // by name of the descriptor
	bases   map[string]string         // of derived values
}

// NewReader returns a Reader with the values that are desired now: those of all descriptors, or of
// one only, which is cheaper.
func NewReader(s *scheduler.Scheduler, only *kind.Descriptor) *Reader {
	r := &Reader{s, map[string][]kind.Desired{}, map[string]string{}}
	for st := range s.All() {
		switch {
		case only != nil && st.Descriptor != only.Name:
		case st.Base != "":
			r.bases[st.Key] = st.Base
		case st.State == scheduler.Invalid && st.Actual == nil: // another value may have what it claims
		case st.Desired != nil:
			r.desired[st.Descriptor] = append(r.desired[st.Descriptor], kind.Desired{Key: st.Key, Value: st.Normalized()})
		}
	}
	return r
}

// Read reads back all values of a descriptor. A value that is not ours is Foreign in its result.
// most is about the memory, in bytes, that they may take; 0: no bound.
func (r *Reader) Read(ctx context.Context, d *kind.Descriptor, most int64) ([]kind.Found, error) {
	got, err := r.s.Inside().Reader.Look(ctx, readback.Part{Of: d, Most: most}, r.desired[d.Name])
	for i := range got.Items {
		it := &got.Items[i]
		it.Foreign = !r.ours(d, it)
	}
	return got.Items, err
}

// ours reports whether a retrieved item is ours, for a reader who does not own the graph. The
// rules are those of Found.OwnerUnknown; package readback has them for the graph.
func (r *Reader) ours(d *kind.Descriptor, it *kind.Found) bool {
	if !it.OwnerUnknown || d.Passive() || it.Foreign || r.bases[it.Key] == "" {
		return !d.Passive() && !it.Foreign && (!it.OwnerUnknown || r.s.Inside().Remembers(it.Key))
	}
	base, known := r.s.Status(r.bases[it.Key])
	return known && base.State != scheduler.Obtained
}
