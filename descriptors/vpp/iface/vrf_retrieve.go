package iface

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"

	"go.fd.io/govpp/api"
	vppif "go.fd.io/govpp/binapi/interface"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface/internal/kinds"
	"github.com/keyplane/keyplane/descriptors/vpp/iface/internal/tables"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/reading"
)

// The key of a VRF membership has the IP versions for which an interface is in the VRF.
// These follow from its declared addresses, some of which may be pending. So the actual
// membership is not derived from the addresses in VPP, but from the tables that the
// interface is bound to:
//
//	bound to                                   actual membership
//	the tables of a declared membership        the declared one
//	the tables of a lender that is gone        one of these tables, which is to be deleted
//	a table that no declared membership has    one of that table, which is to be deleted
//	table 0, none declared                     none
//
// A membership in the tables of a lender does not depend on these tables, but on the
// membership of the lender. Without a lender, nothing would keep the tables until the
// interface has left them, and VPP disables all interfaces in a table that is flushed.

// A foundVRF is an actual membership.
type foundVRF = scheduler.Found[*emptypb.Empty, struct{}]

// A membership has the VRFs that an interface may be in.
type membership struct {
	wanted string // the key of the declared membership; empty: none
	shown  string // the key that VPP's state of the interface would have; empty: no address, in VRF 0
	// borrows means that shown is the VRF of the interface's lender.
	borrows          bool
	foreign, unknown bool // as for the interface
}

// rememberVRFs stores the memberships of interfaces that were read. all means that there
// are no others. Those of a look are only for looks at memberships, until the next read that counts.
func (h *handler) rememberVRFs(read []*kinds.Found, all, learns bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	stored := &h.looked
	if learns {
		stored = &h.memberships
	}
	if all || *stored == nil {
		*stored = make(map[string]membership, len(read))
	}
	for _, f := range read {
		if f.Skipped || f.Details.Tag == "" && f.Desired == nil {
			continue
		}
		m := membership{borrows: f.Value.GetUnnumbered() != nil, foreign: h.isForeign(f), unknown: h.isUnknown(f)}
		if m.borrows || f.Value.GetVrf() != 0 || len(f.Value.GetIpAddresses()) > 0 {
			m.shown = h.vrfKeyOf(f.Value)
		}
		if f.Desired != nil {
			m.wanted = h.vrfKeyOf(f.Desired)
		}
		(*stored)[f.Value.GetName()] = m
		if learns {
			delete(h.looked, f.Value.GetName())
		}
	}
	if all && learns {
		h.looked = nil
	}
}

// retrieveVRFs yields the memberships of the interfaces that the last read found, and of
// those that were created since.
func (h *handler) retrieveVRFs(ctx context.Context, wanted []scheduler.Desired[*emptypb.Empty]) iter.Seq2[foundVRF, error] {
	return reading.Of(func(learns bool, yield func(foundVRF, error) bool) {
		all := map[string]membership{}
		h.mu.Lock()
		for name := range h.entered {
			all[name] = membership{}
		}
		maps.Copy(all, h.memberships)
		if !learns { // nothing counts that was read since
			maps.Copy(all, h.looked)
		}
		h.mu.Unlock()
		want(all, wanted)
		h.readVRFs(ctx, all, learns, yield)
	})
}

// retrieveSomeVRFs yields the memberships of the interfaces in these keys, from what the
// last read of the interfaces has shown.
func (h *handler) retrieveSomeVRFs(ctx context.Context, of []string, wanted []scheduler.Desired[*emptypb.Empty]) iter.Seq2[foundVRF, error] {
	return reading.Of(func(learns bool, yield func(foundVRF, error) bool) {
		some := map[string]membership{}
		h.mu.Lock()
		for _, key := range of {
			v, _ := keys.ParseVRF(key)
			some[v.Interface] = h.memberships[v.Interface]
		}
		h.mu.Unlock()
		want(some, wanted)
		h.readVRFs(ctx, some, learns, yield)
	})
}

// want enters the declared memberships, which are newer than the last read.
func want(all map[string]membership, wanted []scheduler.Desired[*emptypb.Empty]) {
	for _, w := range wanted {
		v, _ := keys.ParseVRF(w.Key)
		m := all[v.Interface]
		m.wanted = w.Key
		all[v.Interface] = m
	}
}

// readVRFs yields the actual memberships of these interfaces.
func (h *handler) readVRFs(ctx context.Context, of map[string]membership, learns bool, yield func(foundVRF, error) bool) {
	tables, err := h.tablesOf(ctx, of)
	if err != nil {
		yield(foundVRF{}, err)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		m := of[name]
		if tables[name] == nil {
			continue
		}
		for _, v := range h.actualMemberships(name, m, tables, learns) {
			if !yield(foundVRF{Key: v.Key(), Value: &emptypb.Empty{}, Foreign: m.foreign, OwnerUnknown: m.unknown}, nil) {
				return
			}
		}
	}
}

type bound = tables.Bound

// tablesOf reads the tables of interfaces and of their lenders, by name. A missing
// interface has no entry.
func (h *handler) tablesOf(ctx context.Context, of map[string]membership) (map[string]*bound, error) {
	metas := map[string]Meta{}
	for name, m := range of {
		all := []string{name}
		for _, key := range []string{m.wanted, m.shown, h.lastEntered(name)} {
			v, _ := keys.ParseVRF(key)
			all = append(all, v.From)
		}
		for _, one := range all {
			if meta, ok := h.index.Get(one); ok {
				metas[one] = meta
			}
		}
	}
	names := slices.Sorted(maps.Keys(metas))
	var steps []*conn.Step
	for _, name := range names {
		for _, ipv6 := range []bool{false, true} {
			steps = append(steps, conn.Ask(&vppif.SwInterfaceGetTable{SwIfIndex: metas[name].SwIfIndex(), IsIPv6: ipv6}, &vppif.SwInterfaceGetTableReply{}))
		}
	}
	if err := h.API.Batch(ctx, steps...); err != nil && !errors.Is(err, api.INVALID_SW_IF_INDEX) {
		return nil, err
	}
	out := make(map[string]*bound, len(names))
	for i, name := range names {
		its := &bound{}
		for version, s := range steps[2*i : 2*i+2] {
			switch {
			case errors.Is(s.Err, api.INVALID_SW_IF_INDEX): // the interface was deleted meanwhile
				its = nil
			case s.Err != nil:
				return nil, s.Err
			case its != nil:
				its[version] = s.Reply.(*vppif.SwInterfaceGetTableReply).VrfID
			}
		}
		if its != nil {
			out[name] = its
		}
	}
	return out, nil
}

// actualMemberships returns the actual memberships of an interface. No two have the same IP version: if one of them is
// deleted, the interface must not leave the table of the other one, where its addresses are.
func (h *handler) actualMemberships(name string, m membership, tables map[string]*bound, learns bool) (out []keys.VRF) {
	rest := h.leavableTables(name, *tables[name]) // tables without a membership so far
	entered := h.lastEntered(name)
	known := []string{m.wanted, m.shown, entered}
	if v, _ := keys.ParseVRF(entered); v.From == "" {
		known = []string{m.wanted, entered, m.shown} // some of its addresses may be gone, but not its tables
	}
	for _, key := range known {
		v, ok := keys.ParseVRF(key)
		if !ok || len(out) > 0 && !rest.Needs(v) || !h.isBound(v, m, tables) {
			continue
		}
		out, rest = append(out, v), rest.Without(v)
	}
	if learns && len(out) > 0 && out[0].From == "" && out[0].Key() == m.wanted {
		h.replaceEntered(name, entered, m.wanted) // leaving another one must not count as leaving this one
	}
	return append(out, rest.Memberships(name)...)
}

// isBound tells whether an interface is bound to the tables of a VRF.
func (h *handler) isBound(v keys.VRF, m membership, tables map[string]*bound) bool {
	its := tables[v.Interface]
	if v.From == "" {
		return (!v.IPv4 || its[0] == v.ID) && (!v.IPv6 || its[1] == v.ID)
	}
	lender := tables[v.From]
	if m.borrows && v.Key() == m.shown || h.lastEntered(v.Interface) == v.Key() {
		return lender != nil || *its == bound{} // nothing deletes table 0
	}
	return lender != nil && *its == *lender && *its != bound{}
}

// lastEntered returns the key of the VRF that an interface entered last; empty: none is
// known.
func (h *handler) lastEntered(name string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.entered[name]
}

// leavableTables returns b without the table that VPP does not let the interface leave.
func (h *handler) leavableTables(name string, b bound) bound {
	meta, _ := h.index.Get(name)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stuck[meta.Index] == name {
		b[1] = 0
	}
	return b
}
