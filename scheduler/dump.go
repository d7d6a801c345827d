package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/scheduler/internal/kind"
)

// A DescriptorInfo is the public description of a descriptor.
type DescriptorInfo struct {
	Name       string
	Prefix     string // of its keys; the whole key if it has only one
	Modelled   bool   // its values are declared under the keys of a model
	Retrieves  bool   // its actual values can be read back
	Connection string
}

// Descriptors returns the registered descriptors, sorted by name.
func (s *Scheduler) Descriptors() []DescriptorInfo {
	var out []DescriptorInfo
	for _, d := range s.registry.All {
		out = append(out, DescriptorInfo{d.Name, d.Prefix, d.Modelled, d.Retrieve != nil, d.Pool.Connection})
	}
	slices.SortFunc(out, func(a, b DescriptorInfo) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// ErrNoRetrieve is returned by Dump if the descriptor has no Retrieve.
var ErrNoRetrieve = errors.New("the descriptor has no Retrieve")

// Dump reads back the actual values of a descriptor, sorted by key. It changes no state of
// the scheduler, and no transaction waits for it.
func (s *Scheduler) Dump(ctx context.Context, name string) ([]Found[Message, any], error) {
	i := slices.IndexFunc(s.registry.All, func(d *descriptor) bool { return d.Name == name })
	if i < 0 || s.registry.All[i].Retrieve == nil {
		return nil, fmt.Errorf("%q: %w", name, ErrNoRetrieve)
	}
	d := s.registry.All[i]
	var ws []kind.Desired
	bases := map[string]string{}
	for st := range s.statuses.All() {
		if st.Descriptor == d.Name && st.Base != "" {
			bases[st.Key] = st.Base
		}
		if st.Descriptor == d.Name && st.Desired != nil && st.Base == "" {
			ws = append(ws, kind.Desired{Key: st.Key, Value: kind.Message(st.value)})
		}
	}
	got, err := s.collect(ctx, reading{d: d}, ws)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.Name, err)
	}
	out := make([]Found[Message, any], len(got.items))
	for i := range got.items {
		it := &got.items[i]
		out[i] = Found[Message, any]{Key: it.Key, Value: it.Value, Meta: it.Meta, Foreign: !s.oursByStatus(d, it, bases)}
	}
	slices.SortFunc(out, func(a, b Found[Message, any]) int { return strings.Compare(a.Key, b.Key) })
	return out, nil
}
