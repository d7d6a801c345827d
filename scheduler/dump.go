package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	for _, d := range s.registry.all {
		out = append(out, DescriptorInfo{d.name, d.prefix, d.modelled, d.retrieve != nil, d.pool.Connection})
	}
	slices.SortFunc(out, func(a, b DescriptorInfo) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// ErrNoRetrieve is returned by Dump if the descriptor has no Retrieve.
var ErrNoRetrieve = errors.New("the descriptor has no Retrieve")

// Dump reads back the actual values of a descriptor, sorted by key. It changes no state of
// the scheduler, and no transaction waits for it.
func (s *Scheduler) Dump(ctx context.Context, name string) ([]Found[Message, any], error) {
	i := slices.IndexFunc(s.registry.all, func(d *descriptor) bool { return d.name == name })
	if i < 0 || s.registry.all[i].retrieve == nil {
		return nil, fmt.Errorf("%q: %w", name, ErrNoRetrieve)
	}
	d := s.registry.all[i]
	var ws []wanted
	for st := range s.statuses.All() {
		if st.Descriptor == d.name && st.Desired != nil && st.Base == "" {
			ws = append(ws, wanted{st.Key, message(st.value)})
		}
	}
	got, err := s.collect(ctx, reading{d: d}, ws)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.name, err)
	}
	out := make([]Found[Message, any], len(got.items))
	for i, it := range got.items {
		out[i] = Found[Message, any]{Key: it.key, Value: it.value, Meta: it.meta, Foreign: it.foreign}
	}
	slices.SortFunc(out, func(a, b Found[Message, any]) int { return strings.Compare(a.Key, b.Key) })
	return out, nil
}
