package iface

import (
	"context"
	"maps"
	"slices"

	"github.com/keyplane/keyplane/descriptors/vpp/iface/internal/kinds"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/leftovers"
)

// couldBe are the interfaces that may be orphans, by index.
func couldBe(all map[uint32]*kinds.Found, lost map[string]leftovers.Creation, known map[uint32]bool) []*kinds.Found {
	for _, one := range lost {
		delete(known, one.Index)
	}
	return slices.DeleteFunc(kinds.Sorted(all), func(f *kinds.Found) bool {
		return f.Details.Tag != "" || f.Meta.Index == 0 || known[f.Meta.Index]
	})
}

// adopt gives the orphans that VPP has their names, and tells whether it had to look for
// any. Each interface in question is held against each orphan: what VPP does not tell of
// it is then what the orphan says.
func (h *handler) adopt(ctx context.Context, all map[uint32]*kinds.Found, lost map[string]leftovers.Creation) (looked bool, err error) {
	strays := couldBe(all, lost, h.table.ReportedIndexes())
	if len(strays) == 0 {
		return false, nil
	}
	placed, loose := map[uint32]string{}, []string{}
	for _, name := range slices.Sorted(maps.Keys(lost)) {
		if index := lost[name].Index; index != 0 {
			placed[index] = name
		} else {
			loose = append(loose, name)
		}
	}
	for round := range max(1, len(loose)) {
		for i, f := range strays {
			name := placed[f.Meta.Index]
			if name == "" && len(loose) > 0 {
				name = loose[(i+round)%len(loose)]
			}
			f.Desired = lost[name].Value
		}
		if err := h.nameThose(ctx, all, strays); err != nil {
			return true, err
		}
	}
	return true, nil
}

// nameThose names the strays that are just what they are held against, each name once.
func (h *handler) nameThose(ctx context.Context, all map[uint32]*kinds.Found, strays []*kinds.Found) error {
	if err := h.lookAtLinks(ctx, all); err != nil {
		return err
	}
	for _, f := range strays {
		if f.Details.Tag != "" || f.Desired == nil || named(all, f.Desired.GetName()) || !h.madeBy(f, f.Desired) {
			continue
		}
		if err := h.env.SetTag(ctx, f.Meta, f.Desired.GetName()); err != nil {
			return err
		}
		f.Details.Tag, f.Value.Name = f.Desired.GetName(), f.Desired.GetName()
	}
	return nil
}

// named tells whether an interface has the name.
func named(all map[uint32]*kinds.Found, name string) bool {
	for _, f := range all {
		if f.Details.Tag == name {
			return true
		}
	}
	return false
}
