package l2

import (
	"context"
	"errors"
	"slices"

	"go.fd.io/govpp/api"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	vppl2 "go.fd.io/govpp/binapi/l2"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
)

// Modes has interfaces enter and leave layer 2, and keeps what they have there.
type Modes struct{ h *handler }

// Enter is called before an interface enters layer 2: a bridge domain, a cross-connect, or the steering of
// frames. If somebody else has had it leave layer 2 before, VPP has forgotten what it lists.
func (m *Modes) Enter(ctx context.Context, index interface_types.InterfaceIndex) error {
	return errors.Join(m.h.restoreMirrors(ctx, index), m.h.Reapply(ctx, index))
}

// Leave sends a request that may make an interface leave layer 2. VPP then resets the mirrors of
// the interface, its VLAN tag rewrite, what has it look at access lists, and what has segment routing
// send frames out of it. Leave restores them: other descriptors own these settings and do not notice
// the change.
func (m *Modes) Leave(ctx context.Context, index interface_types.InterfaceIndex, request, reply api.Message) error {
	before, err := conn.Dump[vppif.SwInterfaceDetails](ctx, m.h.API, &vppif.SwInterfaceDump{SwIfIndex: index})
	if err != nil {
		return err
	}
	if err := m.h.API.Call(ctx, request, reply); err != nil {
		return err
	}
	return errors.Join(m.h.restoreRewrite(ctx, index, before), m.Enter(ctx, index), m.h.Left(ctx, index))
}

// Keep is Leave for an interface whose place in layer 2 the request must not change, but may. The interface
// is in its bridge domain or cross-connect again afterwards.
func (m *Modes) Keep(ctx context.Context, index interface_types.InterfaceIndex, request, reply api.Message) error {
	before, err := m.h.place(ctx, index)
	if err != nil {
		return err
	}
	if err := m.Leave(ctx, index, request, reply); err != nil || before == nil {
		return err
	}
	after, err := m.h.place(ctx, index)
	if err != nil || after != nil {
		return err
	}
	return m.h.API.Batch(ctx, before)
}

// place returns the request that puts an interface into the bridge domain or cross-connect in which it is;
// nil: it is in none.
func (h *handler) place(ctx context.Context, index interface_types.InterfaceIndex) (*conn.Step, error) {
	domains, err := h.dump(ctx, allIDs)
	if err != nil {
		return nil, err
	}
	for _, d := range domains {
		if m, is := memberOf(d, index); is {
			return conn.Ask(m, &vppl2.SwInterfaceSetL2BridgeReply{}), nil
		}
	}
	crossed, err := conn.Dump[vppl2.L2XconnectDetails](ctx, h.API, &vppl2.L2XconnectDump{})
	if err == nil {
		crossed, err = h.withoutSteering(ctx, crossed)
	}
	for _, d := range crossed {
		if d.RxSwIfIndex == index {
			return conn.Ask(&vppl2.SwInterfaceSetL2Xconnect{RxSwIfIndex: index, TxSwIfIndex: d.TxSwIfIndex, Enable: true}, &vppl2.SwInterfaceSetL2XconnectReply{}), err
		}
	}
	return nil, err
}

// memberOf returns the request that makes an interface the member of a bridge domain that it is.
func memberOf(d vppl2.BridgeDomainDetails, index interface_types.InterfaceIndex) (m *vppl2.SwInterfaceSetL2Bridge, is bool) {
	m = &vppl2.SwInterfaceSetL2Bridge{RxSwIfIndex: index, BdID: d.BdID, Enable: true}
	if d.UuFwdSwIfIndex == index { // it is not among the others
		m.PortType = vppl2.L2_API_PORT_TYPE_UU_FWD
		return m, true
	}
	if d.BviSwIfIndex == index {
		m.PortType = vppl2.L2_API_PORT_TYPE_BVI
	}
	at := slices.IndexFunc(d.SwIfDetails, func(one vppl2.BridgeDomainSwIf) bool { return one.SwIfIndex == index })
	if at >= 0 {
		m.Shg = d.SwIfDetails[at].Shg
	}
	return m, at >= 0
}

// restoreRewrite restores the VLAN tag rewrite of a sub-interface. On other interfaces a rewrite
// comes from an earlier interface with the same index.
func (h *handler) restoreRewrite(ctx context.Context, index interface_types.InterfaceIndex, before []vppif.SwInterfaceDetails) error {
	for _, d := range before {
		if d.SwIfIndex != index || d.Type != interface_types.IF_API_TYPE_SUB || d.VtrOp == 0 {
			continue // VPP answers a dump of index 0 with all interfaces
		}
		err := h.API.Call(ctx, &vppl2.L2InterfaceVlanTagRewrite{
			SwIfIndex: index, VtrOp: d.VtrOp, PushDot1q: d.VtrPushDot1q, Tag1: d.VtrTag1, Tag2: d.VtrTag2,
		}, &vppl2.L2InterfaceVlanTagRewriteReply{})
		// VPP answers INVALID_VLAN_TAG_COUNT for a rewrite that is possible only in layer 2.
		if err != nil && !errors.Is(err, api.INVALID_VLAN_TAG_COUNT) {
			return err
		}
	}
	return nil
}
