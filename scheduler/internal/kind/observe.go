package kind

import (
	"fmt"
	"reflect"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/scheduler/internal/graph"
)

// An Observation is a change in the system; see scheduler.Observed.
type Observation struct {
	Key   string
	Value proto.Message // nil: none
	Meta  any           // nil: unknown
}

// IsCurrent reports whether o says what is known already about its node, or nil. Most do: the kernel
// and VPP also report the changes that the scheduler itself has made.
func (o Observation) IsCurrent(n *graph.Node) bool {
	if n == nil || n.Actual() == nil {
		return o.Value == nil
	}
	return o.Value != nil && proto.Equal(o.Value, Message(n.Actual())) && (o.Meta == nil || reflect.DeepEqual(o.Meta, n.Meta()))
}

// CheckObservation returns the mistake in an observation.
func (r *Registry) CheckObservation(o Observation) error {
	d := r.Of(o.Key)
	switch {
	case d == nil:
		return ErrUnimplemented
	case o.Value == nil:
		return nil
	case o.Meta != nil && !d.IsMeta(o.Meta):
		return fmt.Errorf("metadata is a %T; descriptor %q has another type", o.Meta, d.Name)
	}
	return d.Accepts(o.Value)
}

// MetaOf returns the metadata of a value of d that was observed: its own, else that of its node n. It
// returns false if verbs need metadata and none is known.
func (d *Descriptor) MetaOf(o Observation, n *graph.Node) (meta any, known bool) {
	switch {
	case o.Meta != nil:
		return o.Meta, true
	case n != nil && n.Actual() != nil:
		return n.Meta(), true
	}
	return nil, d.Passive() || !d.Learns
}
