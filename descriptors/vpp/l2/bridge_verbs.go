package l2

import (
	"context"
	"errors"
	"fmt"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	vppl2 "go.fd.io/govpp/binapi/l2"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/lists"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l2"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/reading"
)

// allIDs selects all bridge domains or interfaces in a dump request (~0).
const allIDs = ^uint32(0)

// createBridge creates a bridge domain. A bridge domain with the same name that an earlier,
// failed attempt created is reused.
func (h *handler) createBridge(ctx context.Context, key string, v *l2.BridgeDomain) (BridgeMeta, error) {
	if has, meta, ok := h.existing(ctx, v.GetName()); ok {
		return h.updateBridge(ctx, key, has, v, meta)
	}
	for {
		meta := BridgeMeta{ID: h.nextID()}
		err := h.API.Call(ctx, &vppl2.BridgeDomainAddDel{
			BdID: meta.ID, IsAdd: true, BdTag: v.GetName(), MacAge: uint8(v.GetMacAge()),
			Flood: v.GetFlood(), UuFlood: v.GetUnknownUnicastFlood(), Forward: v.GetForward(), Learn: v.GetLearn(), ArpTerm: v.GetArpTermination(),
		}, &vppl2.BridgeDomainAddDelReply{})
		if errors.Is(err, api.BD_ALREADY_EXISTS) {
			continue // another client has created it since the last dump
		}
		if err != nil {
			return BridgeMeta{}, err
		}
		h.remember(v.GetName(), meta.ID)
		return meta, h.changeARP(ctx, meta, &l2.BridgeDomain{}, v)
	}
}

// existing returns the bridge domain of this name, without members and tables, if an earlier attempt
// created it and it still exists.
func (h *handler) existing(ctx context.Context, name string) (*l2.BridgeDomain, BridgeMeta, bool) {
	h.mu.Lock()
	id, known := h.ids[name]
	h.mu.Unlock()
	if !known {
		return nil, BridgeMeta{}, false
	}
	all, err := h.dump(ctx, id)
	if err != nil || len(all) != 1 || all[0].BdTag != name {
		return nil, BridgeMeta{}, false
	}
	return bridgeFromVPP(all[0], nil), BridgeMeta{ID: id}, true
}

// maxBridgeID is the maximum bd_id: VPP uses 24 bits (VPP l2_bd.h, L2_BD_ID_MAX).
const maxBridgeID = 1<<24 - 1

// nextID returns a bd_id that is probably free. VPP does not assign numbers itself;
// createBridge tries the next one if another client has used it.
func (h *handler) nextID() uint32 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lastID++; h.lastID > maxBridgeID {
		h.lastID = 1
	}
	return h.lastID
}

// remember records the bd_id of a bridge domain that was created.
func (h *handler) remember(name string, id uint32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ids[name] = id
}

// updateBridge changes the settings and the ARP termination table in place, so that the members go on
// to forward. Other changes concern derived values.
func (h *handler) updateBridge(ctx context.Context, _ string, old, new *l2.BridgeDomain, meta BridgeMeta) (BridgeMeta, error) {
	if err := h.changeSettings(ctx, meta, settingsOf(old), settingsOf(new)); err != nil {
		return meta, err
	}
	return meta, h.changeARP(ctx, meta, old, new)
}

// changeSettings changes the settings of a bridge domain from those of was to those of is. Flags that
// no value declares keep their state.
func (h *handler) changeSettings(ctx context.Context, meta BridgeMeta, was, is settings) error {
	var steps []*conn.Step
	if set := is.flags &^ was.flags; set != 0 {
		steps = append(steps, conn.Ask(&vppl2.BridgeFlags{BdID: meta.ID, IsSet: true, Flags: set}, &vppl2.BridgeFlagsReply{}))
	}
	if unset := was.flags &^ is.flags; unset != 0 {
		steps = append(steps, conn.Ask(&vppl2.BridgeFlags{BdID: meta.ID, Flags: unset}, &vppl2.BridgeFlagsReply{}))
	}
	if was.macAge != is.macAge {
		steps = append(steps, conn.Ask(&vppl2.BridgeDomainSetMacAge{BdID: meta.ID, MacAge: uint8(is.macAge)}, &vppl2.BridgeDomainSetMacAgeReply{}))
	}
	return h.API.Batch(ctx, steps...)
}

// changeARP changes the ARP termination table from that of old to that of new.
func (h *handler) changeARP(ctx context.Context, meta BridgeMeta, old, new *l2.BridgeDomain) error {
	was, is := arpEntries(old), arpEntries(new)
	for _, e := range lists.Without(was, is) {
		// VPP answers UNSPECIFIED if the entry does not exist.
		if err := h.setARP(ctx, meta, e, false); err != nil && !errors.Is(err, api.UNSPECIFIED) {
			return err
		}
	}
	for _, e := range lists.Without(is, was) {
		if err := h.setARP(ctx, meta, e, true); err != nil {
			return err
		}
	}
	return nil
}

// setARP adds or deletes one entry (VPP bd_ip_mac_add_del).
func (h *handler) setARP(ctx context.Context, meta BridgeMeta, e arpEntry, add bool) error {
	entry := vppl2.BdIPMac{BdID: meta.ID, IP: vppwire.Address(e.ip), Mac: e.mac}
	return h.API.Call(ctx, &vppl2.BdIPMacAddDel{IsAdd: add, Entry: entry}, &vppl2.BdIPMacAddDelReply{})
}

// deleteBridge deletes a bridge domain. VPP refuses to delete one with members (BD_IN_USE),
// so members that the agent does not know are removed first.
func (h *handler) deleteBridge(ctx context.Context, _ string, v *l2.BridgeDomain, meta BridgeMeta) error {
	remove := func() error {
		return h.API.Call(ctx, &vppl2.BridgeDomainAddDel{BdID: meta.ID}, &vppl2.BridgeDomainAddDelReply{})
	}
	err := remove()
	if errors.Is(err, api.BD_IN_USE) {
		err = h.empty(ctx, meta)
		if err == nil {
			err = remove()
		}
	}
	if err != nil && !errors.Is(err, api.NO_SUCH_ENTRY) {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.ids, v.GetName())
	return nil
}

// empty removes all interfaces from a bridge domain.
func (h *handler) empty(ctx context.Context, meta BridgeMeta) error {
	all, err := h.dump(ctx, meta.ID)
	if err != nil {
		return err
	}
	for _, d := range all {
		for _, m := range d.SwIfDetails {
			if err := h.setMember(ctx, uint32(m.SwIfIndex), meta, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// dump returns the bridge domain with this number, or all of them for allIDs.
func (h *handler) dump(ctx context.Context, id uint32) ([]vppl2.BridgeDomainDetails, error) {
	return conn.Dump[vppl2.BridgeDomainDetails](ctx, h.API, &vppl2.BridgeDomainDump{BdID: id, SwIfIndex: interface_types.InterfaceIndex(allIDs)})
}

// retrieveBridges yields all bridge domains. Members without an interface name are left
// out: the interface is deleted. The known numbers and the attachments are learned from it.
func (h *handler) retrieveBridges(ctx context.Context, wanted []scheduler.Desired[*l2.BridgeDomain]) scheduler.Retrieved[*l2.BridgeDomain, BridgeMeta] {
	type found = scheduler.Found[*l2.BridgeDomain, BridgeMeta]
	return reading.Of(func(learns bool, yield func(found, error) bool) {
		declared := make(map[string]bool, len(wanted))
		for _, w := range wanted {
			declared[w.Value.GetName()] = true
			h.Tags.Expect(w.Value.GetName())
		}
		all, err := h.dump(ctx, allIDs)
		if err != nil {
			yield(found{}, err)
			return
		}
		answers, err := h.arpTables(ctx)
		if err != nil {
			yield(found{}, err)
			return
		}
		if learns {
			h.rememberAll(all)
		}
		names, members := h.interfaceNames(), map[string]attachment{}
		for _, d := range all {
			v := bridgeFromVPP(d, names)
			for _, m := range v.GetInterfaces() {
				members[m.GetName()] = attachment{inBridge, v.GetName()}
			}
			v.ArpTerminationTable = answers[d.BdID]
			one := found{Value: v, Meta: BridgeMeta{ID: d.BdID}}
			one.Foreign = d.BdTag == "" || h.Tags.Foreign(d.BdTag)
			one.OwnerUnknown = !declared[d.BdTag] && h.Tags.Unsigned(d.BdTag)
			if !yield(one, nil) {
				return
			}
		}
		if learns {
			h.attachments.replace(inBridge, members)
		}
	})
}

// arpTables returns the ARP termination tables by bd_id.
func (h *handler) arpTables(ctx context.Context) (map[uint32][]*l2.BridgeDomain_ArpTerminationEntry, error) {
	all, err := conn.Dump[vppl2.BdIPMacDetails](ctx, h.API, &vppl2.BdIPMacDump{BdID: allIDs})
	out := map[uint32][]*l2.BridgeDomain_ArpTerminationEntry{}
	for _, d := range all {
		e := d.Entry
		out[e.BdID] = append(out[e.BdID], &l2.BridgeDomain_ArpTerminationEntry{
			IpAddress: vppwire.Addr(e.IP).String(), PhysAddress: e.Mac.String(),
		})
	}
	return out, err
}

// bridgeFromVPP converts VPP's answer to a value. names are those of interfaces by
// sw_if_index.
func bridgeFromVPP(d vppl2.BridgeDomainDetails, names map[uint32]string) *l2.BridgeDomain {
	v := &l2.BridgeDomain{
		Name: d.BdTag, Flood: d.Flood, UnknownUnicastFlood: d.UuFlood, Forward: d.Forward, Learn: d.Learn,
		ArpTermination: d.ArpTerm, MacAge: uint32(d.MacAge),
	}
	if v.Name == "" {
		v.Name = fmt.Sprintf("UNTAGGED-%d", d.BdID)
	}
	for _, m := range d.SwIfDetails {
		if name := names[uint32(m.SwIfIndex)]; name != "" {
			v.Interfaces = append(v.Interfaces, &l2.BridgeDomain_Interface{
				Name: name, SplitHorizonGroup: uint32(m.Shg), BridgedVirtualInterface: m.SwIfIndex == d.BviSwIfIndex,
			})
		}
	}
	return v
}

// rememberAll replaces the known numbers by those of a dump.
func (h *handler) rememberAll(all []vppl2.BridgeDomainDetails) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ids = map[string]uint32{}
	h.lastID = 0
	for _, d := range all {
		h.lastID = max(h.lastID, d.BdID)
		h.Tags.Learn(d.BdTag)
		if d.BdTag != "" {
			h.ids[d.BdTag] = d.BdID
		}
	}
}

// createMember adds an interface to a bridge domain. updateMember uses it too: VPP replaces
// the split horizon group. VPP dies of a BVI without a MAC address.
func (h *handler) createMember(ctx context.Context, key string, v *l2.BridgeDomain_Interface) (struct{}, error) {
	bd, name, _ := keys.BridgeMembers.Parse(key)
	bridge, err := h.bridgeNamed(bd)
	if err != nil {
		return struct{}{}, err
	}
	meta, err := iface.Find(h.Interfaces, name)
	if err != nil {
		return struct{}{}, err
	}
	if v.GetBridgedVirtualInterface() {
		if err := iface.NeedMAC(ctx, h.API, name, meta, "the BVI of a bridge domain"); err != nil {
			return struct{}{}, err
		}
	}
	if err := h.attachments.add(name, attachment{inBridge, bd}); err != nil {
		return struct{}{}, err
	}
	return struct{}{}, h.setMember(ctx, meta.Index, bridge, v)
}

// updateMember changes the split horizon group.
func (h *handler) updateMember(ctx context.Context, key string, _, new *l2.BridgeDomain_Interface, _ struct{}) (struct{}, error) {
	return h.createMember(ctx, key, new)
}

// deleteMember removes an interface from its bridge domain.
func (h *handler) deleteMember(ctx context.Context, key string, _ *l2.BridgeDomain_Interface, _ struct{}) error {
	bd, name, _ := keys.BridgeMembers.Parse(key)
	defer h.attachments.remove(name, attachment{inBridge, bd})
	meta, ok := h.Interfaces.Get(name)
	if !ok {
		return nil // VPP has removed it together with the interface
	}
	bridge, _ := h.bridges.Get(bd)
	err := h.setMember(ctx, meta.Index, bridge, nil)
	if errors.Is(err, api.INVALID_SW_IF_INDEX) {
		return nil
	}
	return err
}

// setMember adds an interface to a bridge domain, or removes it if v is nil.
func (h *handler) setMember(ctx context.Context, index uint32, bridge BridgeMeta, v *l2.BridgeDomain_Interface) error {
	request := &vppl2.SwInterfaceSetL2Bridge{
		RxSwIfIndex: interface_types.InterfaceIndex(index), BdID: bridge.ID, Enable: v != nil, Shg: uint8(v.GetSplitHorizonGroup()),
	}
	if v.GetBridgedVirtualInterface() {
		request.PortType = vppl2.L2_API_PORT_TYPE_BVI
	}
	if v == nil {
		return h.modes().Leave(ctx, request.RxSwIfIndex, request, &vppl2.SwInterfaceSetL2BridgeReply{})
	}
	if err := h.modes().Enter(ctx, request.RxSwIfIndex); err != nil {
		return err
	}
	return h.API.Call(ctx, request, &vppl2.SwInterfaceSetL2BridgeReply{})
}
