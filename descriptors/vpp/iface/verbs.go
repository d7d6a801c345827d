package iface

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"go.fd.io/govpp/api"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface/internal/events"
	"github.com/keyplane/keyplane/descriptors/vpp/iface/internal/kinds"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/leftovers"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
)

// create creates the interface, or adopts one that an earlier attempt left with its tag or
// without any. After a failure it deletes the interface again, so that no interface stays
// without a tag.
func (h *handler) create(ctx context.Context, _ string, v *interfaces.Interface) (Meta, error) {
	if meta, ok := h.existing(ctx, v.GetName()); ok {
		meta.TAPHost = kinds.TAPHostOf(v)
		return meta, h.configure(ctx, meta, v)
	}
	k := h.kindOf(v)
	defer h.unconfirmed.Begin(v)()
	index, old, err := h.adoptUntagged(ctx, v)
	if err == nil && !old {
		index, err = h.createNew(ctx, k, v)
		err = h.heldBy(ctx, v, err)
	}
	// VPP may have created it, and the next read adopts it.
	if leftovers.IsUncertain(err) {
		h.unconfirmed.Add(v, index)
	}
	if err != nil {
		return Meta{}, err
	}
	h.table.Claim(v.GetName(), index)
	h.forgetEntered(v.GetName(), "")
	h.bonded.Leave(v.GetName())
	meta := Meta{Index: index, TAPHost: kinds.TAPHostOf(v)}
	settings := h.settings(meta, v)
	h.suspectAutoconf(index)
	err = h.leftovers.Clear(ctx, h.API, index)
	if err == nil {
		meta, err = h.tagNew(ctx, meta, v, settings)
	}
	if err != nil {
		gone := k.Delete(ctx, h.env, v, meta)
		// It stays without a tag, or with one that nobody knows of; the next read looks
		// for it.
		if gone != nil {
			h.unconfirmed.Add(v, index)
		}
		return Meta{}, errors.Join(err, gone)
	}
	h.table.Tagged(v.GetName(), index, !old && !k.MayExist && !k.Hides)
	h.autoconf.Forget(v.GetName())
	return meta, h.finishSettings(ctx, meta, v, settings)
}

// mostLost is how many indexes of lost interfaces a creation avoids.
const mostLost = 256

// errLost is the error of a creation that has got none but these.
var errLost = errors.New("VPP gives out the indexes of interfaces that somebody has just deleted")

// createNew creates the interface. VPP may give it the index of one that somebody has deleted, and of which the scheduler does not
// know that yet: what VPP keeps of that one would count as what others have put on the new one. So it gets another index.
func (h *handler) createNew(ctx context.Context, k kinds.Kind, v *interfaces.Interface) (uint32, error) {
	index, err := k.Create(ctx, h.env, v)
	if err != nil || k.MayExist || !h.isLost(index) {
		return index, err
	}
	exists := true
	remove := func() error {
		err := k.Delete(ctx, h.env, v, Meta{Index: index, TAPHost: kinds.TAPHostOf(v)})
		if exists = err != nil; exists {
			h.unconfirmed.Add(v, index) // it stays without a tag; the next read looks for it
		}
		return err
	}
	err = h.leftovers.Filling(ctx, h.API, func(fill func() error) error {
		for range mostLost {
			if err := remove(); err != nil {
				return err
			}
			if err := fill(); err != nil { // it gets that index
				return err
			}
			index, err = k.Create(ctx, h.env, v)
			if exists = err == nil; !exists || !h.isLost(index) {
				return err
			}
		}
		return errLost
	})
	if err != nil && exists {
		err = errors.Join(err, remove())
	}
	return index, err
}

// isLost tells whether an index that VPP has just given to a new interface is that of another one for the scheduler.
func (h *handler) isLost(index uint32) bool {
	for _, name := range []string{h.table.Holder(index), h.holder(index)} {
		if meta, known := h.index.Get(name); known && meta.Index == index && !h.table.LostByUs(name, index) {
			return true
		}
	}
	return false
}

// tagNew tags a new interface and reads its metadata. It sends the settings in the same
// batch; err is not about those.
func (h *handler) tagNew(ctx context.Context, meta Meta, v *interfaces.Interface, settings []*conn.Step) (Meta, error) {
	var details []vppif.SwInterfaceDetails
	look := conn.List(&vppif.SwInterfaceDump{SwIfIndex: meta.SwIfIndex()}, &details)
	tag := conn.Ask(kinds.Tagging(meta, v.GetName()), &vppif.SwInterfaceTagAddDelReply{})
	_ = h.API.Batch(ctx, append([]*conn.Step{look, tag}, settings...)...) // each step has its own error
	if err := cmp.Or(look.Err, tag.Err); err != nil {
		return meta, err
	}
	if len(details) != 1 {
		return meta, fmt.Errorf("%w: VPP has no interface %d any more", kinds.ErrNotThere, meta.Index)
	}
	if details[0].VtrOp != 0 { // tag rewriting of the previous interface with this index
		if err := kinds.RewriteTags(ctx, h.env, meta.Index, nil); err != nil {
			return meta, err
		}
	}
	if len(details[0].Mtu) > 0 {
		h.mtus.created(v.GetName(), details[0].Mtu[0]) // the batch sets the MTU after this reading
	}
	if mtu := h.mtu(v); mtu != 0 {
		h.mtus.declared(v.GetName(), mtu)
	}
	out := ifindex.MetaOf(details[0])
	out.TAPHost = meta.TAPHost
	return out, nil
}

// configure sends all settings that are not part of the creation, and enables or disables
// the interface last.
func (h *handler) configure(ctx context.Context, meta Meta, v *interfaces.Interface) error {
	settings := h.settings(meta, v)
	if mtu := h.mtu(v); mtu != 0 {
		h.mtus.declared(v.GetName(), mtu)
	}
	_ = h.API.Batch(ctx, settings...) // each step has its own error
	return h.finishSettings(ctx, meta, v, settings)
}

// settings returns the requests for MAC address and MTU. If there are none, it returns the
// request that enables or disables the interface, which must be the last of all. A member of a
// bond keeps the bond's MAC address.
func (h *handler) settings(meta Meta, v *interfaces.Interface) (out []*conn.Step) {
	k := h.kindOf(v)
	if mac, ok := kinds.ParseMAC(v.GetPhysAddress()); ok && !k.NoMAC && !k.CreatedWithMAC && !h.bonded.Postpone(v.GetName(), v.GetPhysAddress()) {
		out = append(out, conn.Ask(&vppif.SwInterfaceSetMacAddress{SwIfIndex: meta.SwIfIndex(), MacAddress: mac}, &vppif.SwInterfaceSetMacAddressReply{}))
	}
	// VPP cannot change the MTU of the hardware interface for most types, so this is the
	// MTU of the software interface.
	if mtu := h.mtu(v); mtu != 0 && !k.NoMTU {
		out = append(out, conn.Ask(&vppif.SwInterfaceSetMtu{SwIfIndex: meta.SwIfIndex(), Mtu: []uint32{mtu, 0, 0, 0}}, &vppif.SwInterfaceSetMtuReply{}))
	}
	if len(out) == 0 && k.Configure == nil {
		out = append(out, conn.Ask(enabling(meta, v.GetEnabled()), &vppif.SwInterfaceSetFlagsReply{}))
	}
	return out
}

// finishSettings checks the answers to the settings, and sends the requests that come
// after them.
func (h *handler) finishSettings(ctx context.Context, meta Meta, v *interfaces.Interface, settings []*conn.Step) error {
	for _, s := range settings {
		if _, last := s.Request.(*vppif.SwInterfaceSetFlags); last {
			return h.finishEnabled(ctx, v, s.Err)
		}
		if s.Err != nil {
			return s.Err
		}
	}
	if k := h.kindOf(v); k.Configure != nil {
		if err := k.Configure(ctx, h.env, meta.Index, v); err != nil {
			return err
		}
	}
	return h.finishEnabled(ctx, v, h.setEnabled(ctx, meta, v.GetEnabled()))
}

// update changes the link if the kind can, and sends all settings again. They are
// idempotent, and cheaper than finding out which of them differ.
func (h *handler) update(ctx context.Context, _ string, old, new *interfaces.Interface, meta Meta) (Meta, error) {
	k := h.kindOf(new)
	if k.Update != nil && !h.sameLink(old, new) {
		if err := k.Update(ctx, h.env, meta, old, new); err != nil {
			return meta, err
		}
	}
	if h.mtu(new) == 0 && !k.NoMTU {
		if err := h.restoreMTU(ctx, meta, new.GetName(), old.GetMtu()); err != nil {
			return meta, err
		}
	}
	return meta, h.configure(ctx, meta, new)
}

// delete disables the interface first, so that VPP does not forward over it during the
// deletion. A missing interface is no error.
func (h *handler) delete(ctx context.Context, _ string, v *interfaces.Interface, meta Meta) error {
	k := h.kindOf(v)
	if k.Delete == nil {
		return fmt.Errorf("%s: VPP has %s there, a %s, which no value can be: delete it in VPP, or take its tag away", v.GetName(), meta.InternalName, meta.DevType)
	}
	h.table.Deleting(v.GetName(), meta.Index)
	raise := h.env.LinkRaiser(v)
	err := h.setEnabled(ctx, meta, false)
	if err == nil && meta.DevType == ifindex.Hardware {
		err = h.restoreMTU(ctx, meta, v.GetName(), h.mtu(v))
	}
	if k.Hides {
		defer h.unconfirmed.Begin(v)()
	}
	if err == nil && k.Hides {
		err = h.env.SetTag(ctx, meta, "")
	}
	if err == nil {
		err = k.Delete(ctx, h.env, v, meta)
	}
	if err != nil && !errors.Is(err, api.INVALID_SW_IF_INDEX) {
		if k.Hides {
			h.unconfirmed.Add(v, meta.Index) // VPP may have removed its tag already
		}
		h.table.Kept(v.GetName())
		h.wakeEvents()
		return err
	}
	raise()
	h.table.Deleted(v.GetName(), meta.Index)
	h.mtus.deleted(v.GetName())
	h.autoconf.Forget(v.GetName())
	if h.observe != nil && meta.DevType != ifindex.Hardware {
		h.observe(events.LinkGone(v.GetName())...) // VPP sends no event for hidden interfaces
	}
	return nil
}

// setEnabled sets the administrative state.
func (h *handler) setEnabled(ctx context.Context, meta Meta, enabled bool) error {
	return h.API.Call(ctx, enabling(meta, enabled), &vppif.SwInterfaceSetFlagsReply{})
}

// enabling returns the request that setEnabled sends; settings pipelines it.
func enabling(meta Meta, enabled bool) *vppif.SwInterfaceSetFlags {
	var flags interface_types.IfStatusFlags
	if enabled {
		flags = kinds.AdminUp
	}
	return &vppif.SwInterfaceSetFlags{SwIfIndex: meta.SwIfIndex(), Flags: flags}
}

// existing tells whether VPP still has an interface that was known under this name.
func (h *handler) existing(ctx context.Context, name string) (Meta, bool) {
	index, known := h.table.Index(name)
	if !known {
		return Meta{}, false
	}
	all, err := conn.Dump[vppif.SwInterfaceDetails](ctx, h.API, &vppif.SwInterfaceDump{SwIfIndex: interface_types.InterfaceIndex(index)})
	if err != nil || len(all) != 1 || all[0].Tag != name {
		return Meta{}, false
	}
	return ifindex.MetaOf(all[0]), true
}

// kindOf returns the kind of v; the zero Kind if its form is unknown.
func (h *handler) kindOf(v *interfaces.Interface) kinds.Kind { return h.kinds[kinds.FormOf(v)] }
