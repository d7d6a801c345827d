// Package scheduler keeps a system as declared: values under keys, created,
// updated and deleted in the order their dependencies ask for.
package scheduler

import (
	"iter"

	"google.golang.org/protobuf/proto"
)

// A Scheduler (being written).
type Scheduler struct{}

// Register adds d to s. It must be called before Run. The Index that it
// returns looks up the metadata of the values that stand.
func Register[V proto.Message, M any](s *Scheduler, d Descriptor[V, M]) (*Index[M], error) {
	return &Index[M]{}, nil
}

// Index looks up metadata by the name of a value: the part of its key after
// the prefix. Safe for use by any goroutine.
type Index[M any] struct{}

// Get returns the metadata of the value with the given name.
func (x *Index[M]) Get(name string) (m M, ok bool) { return m, ok }

// All yields name and metadata of every value that stands.
func (x *Index[M]) All() iter.Seq2[string, M] { return nil }

// Terminal marks an error of a verb that trying again cannot mend: the value
// is FAILED until it changes.
func Terminal(err error) error { return err }

// Observed is what the southbound did by itself: under Key stands Value now,
// with Meta where the descriptor has metadata, or nothing (nil).
type Observed struct {
	Key   string
	Value proto.Message
	Meta  any
}

// Observe tells the scheduler what changed by itself in the southbound. For a
// key of a descriptor with verbs, a nil Value says that what was made is gone:
// it will be made again, with all that stands on it. It never blocks; of a key
// that changes often the newest counts.
func (s *Scheduler) Observe(seen ...Observed) {}

// Refresh has the scheduler soon read again what the descriptors with these
// names retrieve (none: all). It never blocks.
func (s *Scheduler) Refresh(descriptors ...string) {}

// Retry has the scheduler try failed values of these descriptors (none: all)
// again now, without waiting for their back-off. It never blocks.
func (s *Scheduler) Retry(descriptors ...string) {}
