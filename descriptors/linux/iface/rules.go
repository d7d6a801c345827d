package iface

import (
	"context"
	"iter"

	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/keyplane/keyplane/descriptors/linux/internal/drift"
	"github.com/keyplane/keyplane/descriptors/linux/keys"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/scheduler"
)

// The kernel adds the rules that send packets of VRFs to their tables with the first VRF of a namespace only. Without
// them no VRF works, so they belong to each declared one. They stay when a VRF goes, as the kernel has it: VRFs of others
// need them too.

// foundRules is the form in which the rules of a VRF are retrieved.
type foundRules = scheduler.Found[*emptypb.Empty, struct{}]

// rulesDescriptor handles the rules that a VRF needs.
func (h *handler) rulesDescriptor() scheduler.Descriptor[*emptypb.Empty, struct{}] {
	return scheduler.Descriptor[*emptypb.Empty, struct{}]{
		Name:   RulesName,
		Prefix: keys.VRFRules,

		Create:        h.createRules,
		Delete:        h.deleteRules,
		Retrieve:      h.retrieveRules,
		RetrieveAfter: []string{Name}, // which tells the namespaces of the VRFs
	}
}

// createRules adds the rules that are missing.
func (h *handler) createRules(_ context.Context, key string, _ *emptypb.Empty) (struct{}, error) {
	none := struct{}{}
	vrf, _ := keys.ParseVRFRules(key)
	meta, space, err := h.openInterface(vrf)
	if err != nil {
		return none, err
	}
	defer space.Close()
	if err := space.AddVRFRules(); err != nil {
		return none, err
	}
	h.watchRules(space, meta, key)
	return none, nil
}

// watchRules records the rules for drift detection.
func (h *handler) watchRules(space *netns.Space, meta Meta, key string) {
	h.Watch.Created(space, drift.VRFRules(space.ID, meta.Index), drift.Entry{Key: key, Link: meta.Index}, 0)
}

// deleteRules leaves the rules.
func (h *handler) deleteRules(_ context.Context, key string, _ *emptypb.Empty, _ struct{}) error {
	vrf, _ := keys.ParseVRFRules(key)
	if meta, ok := h.index.Get(vrf); ok {
		h.Watch.Forget(drift.VRFRules(meta.NS, meta.Index))
	}
	return nil
}

// retrieveRules yields the VRFs whose namespace has all rules.
func (h *handler) retrieveRules(context.Context, []scheduler.Desired[*emptypb.Empty]) iter.Seq2[foundRules, error] {
	return func(yield func(foundRules, error) bool) {
		for name, meta := range h.index.All() {
			if meta.Table == 0 {
				continue
			}
			space, ok := h.Spaces.ByID(meta.NS)
			if !ok {
				continue // the VRF is gone with its namespace
			}
			complete, err := space.HasVRFRules()
			space.Close()
			key := keys.VRFRulesOf(name)
			learned := func() {
				h.Watch.Retrieved(space, drift.VRFRules(space.ID, meta.Index), drift.Entry{Key: key, Link: meta.Index})
			}
			if (complete || err != nil) && !yield(foundRules{Key: key, Value: &emptypb.Empty{}, Learned: learned}, err) {
				return
			}
		}
	}
}
