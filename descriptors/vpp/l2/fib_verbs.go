package l2

import (
	"context"
	"errors"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	vppl2 "go.fd.io/govpp/binapi/l2"
	"go.fd.io/govpp/binapi/sr"
	"go.fd.io/govpp/binapi/sr_types"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l2"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/reading"
)

// createFIB adds an L2 FIB entry. Entries that drop have no interface.
func (h *handler) createFIB(ctx context.Context, _ string, v *l2.FIBEntry) (FIBMeta, error) {
	bridge, err := h.bridgeNamed(v.GetBridgeDomain())
	if err != nil {
		return FIBMeta{}, err
	}
	meta := FIBMeta{Bridge: bridge.ID, Interface: allIDs}
	if v.GetAction() == l2.FIBEntry_FORWARD {
		out, err := iface.Find(h.Interfaces, v.GetOutgoingInterface())
		if err != nil {
			return FIBMeta{}, err
		}
		meta.Interface = out.Index
	}
	return meta, h.setFIB(ctx, v, meta, true)
}

// deleteFIB deletes an entry with the interface from its metadata: for another interface,
// VPP deletes nothing.
func (h *handler) deleteFIB(ctx context.Context, _ string, v *l2.FIBEntry, meta FIBMeta) error {
	err := h.setFIB(ctx, v, meta, false)
	if errors.Is(err, api.NO_SUCH_ENTRY) {
		return nil
	}
	return err
}

// setFIB adds or deletes an entry (VPP l2fib_add_del). VPP requires that entries which drop
// are static.
func (h *handler) setFIB(ctx context.Context, v *l2.FIBEntry, meta FIBMeta, add bool) error {
	mac, err := vppwire.MAC(v.GetPhysAddress())
	if err != nil {
		return err
	}
	drop := v.GetAction() == l2.FIBEntry_DROP
	return h.API.Call(ctx, &vppl2.L2fibAddDel{
		Mac: mac, BdID: meta.Bridge, SwIfIndex: interface_types.InterfaceIndex(meta.Interface), IsAdd: add,
		StaticMac: v.GetStaticConfig() || drop, FilterMac: drop, BviMac: v.GetBridgedVirtualInterface(),
	}, &vppl2.L2fibAddDelReply{})
}

// retrieveFIBs yields the entries of named bridge domains. VPP records no owner, and
// also lists addresses that it has learned, so undeclared entries are Unknown. The entry of
// a BVI belongs to VPP unless it is declared.
func (h *handler) retrieveFIBs(ctx context.Context, wanted []scheduler.Desired[*l2.FIBEntry]) scheduler.Retrieved[*l2.FIBEntry, FIBMeta] {
	type found = scheduler.Found[*l2.FIBEntry, FIBMeta]
	return func(yield func(found, error) bool) {
		all, err := conn.Dump[vppl2.L2FibTableDetails](ctx, h.API, &vppl2.L2FibTableDump{BdID: allIDs})
		if err != nil {
			yield(found{}, err)
			return
		}
		declared := map[string]string{} // the MAC address as declared, which may be in upper case
		for _, w := range wanted {
			declared[placeOf(w.Value)] = w.Value.GetPhysAddress()
		}
		bridges, names := h.bridgeNames(), h.interfaceNames()
		for _, d := range all {
			v := entryOf(d, bridges, names)
			if v == nil {
				continue
			}
			declaredMAC, ours := declared[placeOf(v)]
			if d.BviMac && !ours {
				continue
			}
			if ours {
				v.PhysAddress = declaredMAC
			}
			meta := FIBMeta{Bridge: d.BdID, Interface: uint32(d.SwIfIndex)}
			if !yield(found{Value: v, Meta: meta, OwnerUnknown: !ours}, nil) {
				return
			}
		}
	}
}

// placeOf returns the identity of an entry: its key with the MAC address in the notation of VPP.
func placeOf(v *l2.FIBEntry) string {
	mac := v.GetPhysAddress()
	if parsed, err := vppwire.MAC(mac); err == nil {
		mac = parsed.String()
	}
	key, _ := models.For[*l2.FIBEntry]().Key(&l2.FIBEntry{BridgeDomain: v.GetBridgeDomain(), PhysAddress: mac})
	return key
}

// fibIdentity implements the Identity of the descriptor.
func fibIdentity(_ string, v *l2.FIBEntry) scheduler.Claim {
	return scheduler.Claim{
		Resource: placeOf(v), Field: "phys_address", Value: v.GetPhysAddress(), Want: "an address of this bridge domain that no other entry has",
	}
}

// entryOf converts an entry to a value, or returns nil if its bridge domain is unknown. The
// outgoing interface is empty if it was deleted.
func entryOf(d vppl2.L2FibTableDetails, bridges, names map[uint32]string) *l2.FIBEntry {
	v := &l2.FIBEntry{
		PhysAddress: d.Mac.String(), BridgeDomain: bridges[d.BdID],
		StaticConfig: d.StaticMac, BridgedVirtualInterface: d.BviMac,
	}
	if v.BridgeDomain == "" {
		return nil
	}
	if d.FilterMac {
		v.Action = l2.FIBEntry_DROP
		return v
	}
	v.OutgoingInterface = names[uint32(d.SwIfIndex)]
	return v
}

// bridgeNames returns the names of existing bridge domains by bd_id.
func (h *handler) bridgeNames() map[uint32]string {
	out := map[uint32]string{}
	for name, meta := range h.bridges.All() {
		out[meta.ID] = name
	}
	return out
}

// createXConnect adds a cross-connect. VPP would replace another attachment of the receiving
// interface without an error, so that is checked first.
func (h *handler) createXConnect(ctx context.Context, _ string, v *l2.XConnectPair) (XConnectMeta, error) {
	receive, err := iface.Find(h.Interfaces, v.GetReceiveInterface())
	if err != nil {
		return XConnectMeta{}, err
	}
	transmit, err := iface.Find(h.Interfaces, v.GetTransmitInterface())
	if err != nil {
		return XConnectMeta{}, err
	}
	if err := h.attachments.add(v.GetReceiveInterface(), xconnectTo(v)); err != nil {
		return XConnectMeta{}, err
	}
	return XConnectMeta{Receive: receive.Index}, h.setXConnect(ctx, receive.SwIfIndex(), transmit.SwIfIndex(), true)
}

// xconnectTo returns the attachment of the receiving interface.
func xconnectTo(v *l2.XConnectPair) attachment {
	return attachment{inXConnect, "to " + v.GetTransmitInterface()}
}

// deleteXConnect deletes a cross-connect. It needs no transmitting interface: VPP identifies
// a cross-connect by the receiving one.
func (h *handler) deleteXConnect(ctx context.Context, _ string, v *l2.XConnectPair, meta XConnectMeta) error {
	defer h.attachments.remove(v.GetReceiveInterface(), xconnectTo(v))
	receive := interface_types.InterfaceIndex(meta.Receive)
	err := h.setXConnect(ctx, receive, receive, false)
	if errors.Is(err, api.INVALID_SW_IF_INDEX) {
		return nil
	}
	return err
}

// setXConnect adds or deletes a cross-connect (VPP sw_interface_set_l2_xconnect).
func (h *handler) setXConnect(ctx context.Context, receive, transmit interface_types.InterfaceIndex, on bool) error {
	request := &vppl2.SwInterfaceSetL2Xconnect{RxSwIfIndex: receive, TxSwIfIndex: transmit, Enable: on}
	if !on {
		return h.modes().Leave(ctx, receive, request, &vppl2.SwInterfaceSetL2XconnectReply{})
	}
	if err := h.modes().Enter(ctx, receive); err != nil {
		return err
	}
	return h.API.Call(ctx, request, &vppl2.SwInterfaceSetL2XconnectReply{})
}

// A transmitter has the index of the interface of a cross-connect that transmits, under the name of
// vpp-agent 3.5.
type transmitter struct {
	Index uint32 `json:"transmit_interface_sw_if_idx"`
}

// retrieveXConnects yields the cross-connects of named receiving interfaces. VPP
// records no owner, so undeclared ones are Unknown. It also updates the attachments.
func (h *handler) retrieveXConnects(ctx context.Context, wanted []scheduler.Desired[*l2.XConnectPair]) scheduler.Retrieved[*l2.XConnectPair, XConnectMeta] {
	type found = scheduler.Found[*l2.XConnectPair, XConnectMeta]
	return reading.Of(func(learns bool, yield func(found, error) bool) {
		all, err := conn.Dump[vppl2.L2XconnectDetails](ctx, h.API, &vppl2.L2XconnectDump{})
		if err != nil {
			yield(found{}, err)
			return
		}
		if all, err = h.withoutSteering(ctx, all); err != nil {
			yield(found{}, err)
			return
		}
		declared := map[string]bool{}
		for _, w := range wanted {
			declared[w.Value.GetReceiveInterface()] = true
		}
		names, used := h.interfaceNames(), map[string]attachment{}
		for _, d := range all {
			v := &l2.XConnectPair{ReceiveInterface: names[uint32(d.RxSwIfIndex)], TransmitInterface: names[uint32(d.TxSwIfIndex)]}
			if v.ReceiveInterface == "" {
				continue
			}
			used[v.ReceiveInterface] = xconnectTo(v)
			one := found{Value: v, Meta: XConnectMeta{Receive: uint32(d.RxSwIfIndex)}, OwnerUnknown: !declared[v.ReceiveInterface]}
			if !learns {
				one.Details = &transmitter{uint32(d.TxSwIfIndex)}
			}
			if !yield(one, nil) {
				return
			}
		}
		if learns {
			h.attachments.replace(inXConnect, used)
		}
	})
}

// withoutSteering removes the cross-connects that are none: from 26.06 on, VPP lists an interface whose
// frames segment routing steers as one to the interface with index 0.
func (h *handler) withoutSteering(ctx context.Context, all []vppl2.L2XconnectDetails) ([]vppl2.L2XconnectDetails, error) {
	if !slices.ContainsFunc(all, func(d vppl2.L2XconnectDetails) bool { return d.TxSwIfIndex == 0 }) {
		return all, nil
	}
	steering, err := conn.Dump[sr.SrSteeringPolDetails](ctx, h.API, &sr.SrSteeringPolDump{})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(d vppl2.L2XconnectDetails) bool {
		return d.TxSwIfIndex == 0 && slices.ContainsFunc(steering, func(s sr.SrSteeringPolDetails) bool {
			return s.TrafficType == sr_types.SR_STEER_API_L2 && s.SwIfIndex == d.RxSwIfIndex
		})
	}), nil
}
