// Package vxlan simulates VPP's plugin for VXLAN tunnels. A tunnel is identified by its
// endpoints, its VNI, and the table of its outer packets.
//
// Both versions of the message that VPP offers lead to the same tunnels: an agent that
// knows only the older one must find its tunnels in the dump of the newer one.
package vxlan

import (
	"cmp"
	"fmt"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/vxlan"

	"github.com/keyplane/keyplane/internal/vppsim/core"
	"github.com/keyplane/keyplane/internal/vppsim/ip"
	"github.com/keyplane/keyplane/internal/vppsim/tunnel"
)

// defaultPort is the UDP port of VXLAN (RFC 7348).
const defaultPort = 4789

// A device is the device of a tunnel: the request that created it, with VPP's defaults.
type device struct{ request vxlan.VxlanAddDelTunnelV3 }

// A plugin adds its messages to a VPP. The tables tell which endpoints are possible.
type plugin struct {
	vpp    *core.VPP
	tables *ip.IP
}

type index = interface_types.InterfaceIndex

// New adds the plugin. The second version of the message has no choice between layer 2 and
// layer 3.
func New(vpp *core.VPP, tables *ip.IP) {
	p := plugin{vpp, tables}
	vpp.Register(core.Plugin{Messages: []core.Message{
		core.Call(func(q *vxlan.VxlanAddDelTunnelV3, r *vxlan.VxlanAddDelTunnelV3Reply) (e core.Errno) {
			r.SwIfIndex, e = p.change(*q)
			return e
		}),
		core.Call(func(q *vxlan.VxlanAddDelTunnelV2, r *vxlan.VxlanAddDelTunnelV2Reply) (e core.Errno) {
			r.SwIfIndex, e = p.change(vxlan.VxlanAddDelTunnelV3{
				IsAdd: q.IsAdd, Instance: q.Instance, SrcAddress: q.SrcAddress, DstAddress: q.DstAddress, SrcPort: q.SrcPort, DstPort: q.DstPort,
				McastSwIfIndex: q.McastSwIfIndex, EncapVrfID: q.EncapVrfID, DecapNextIndex: q.DecapNextIndex, Vni: q.Vni,
			})
			return e
		}),
		core.Dump(p.dump),
	}})
}

// change adds or deletes a tunnel. A new tunnel is up at once and has a random MAC
// address. VPP does not limit the VNI to 24 bits. The reply to a delete has the index of
// the deleted interface.
func (p plugin) change(q vxlan.VxlanAddDelTunnelV3) (index, core.Errno) {
	existing := core.Find(p.vpp, func(d device) bool {
		o := d.request
		return o.SrcAddress == q.SrcAddress && o.DstAddress == q.DstAddress && o.Vni == q.Vni && o.EncapVrfID == q.EncapVrfID
	})
	switch {
	case q.IsAdd:
		return p.add(q, existing)
	case existing == nil:
		return index(core.None), api.NO_SUCH_ENTRY
	}
	p.vpp.Remove(existing)
	return index(existing.Index), core.OK
}

// add makes a tunnel after the checks of the real plugin, in its order. Ports and the next
// node that the request leaves out are filled in, because the dump shows them with VPP's
// defaults.
func (p plugin) add(q vxlan.VxlanAddDelTunnelV3, existing *core.Interface) (index, core.Errno) {
	refused := index(core.None)
	if q.SrcAddress.Af != q.DstAddress.Af {
		return refused, api.INVALID_VALUE
	}
	if errno := tunnel.CheckEnds(p.tables, q.SrcAddress, q.DstAddress, q.EncapVrfID); errno != core.OK {
		return refused, errno
	}
	if errno := tunnel.CheckMulticast(p.vpp, q.DstAddress, q.McastSwIfIndex); errno != core.OK {
		return refused, errno
	}
	if existing != nil {
		return refused, api.TUNNEL_EXIST
	}
	number, free := p.vpp.Number("vxlan", q.Instance)
	if !free {
		return refused, api.INSTANCE_IN_USE
	}
	q.Instance, q.SrcPort, q.DstPort = number.N, cmp.Or(q.SrcPort, defaultPort), cmp.Or(q.DstPort, defaultPort)
	if q.DecapNextIndex == core.None {
		q.DecapNextIndex = tunnel.DecapL2
	}
	i := &core.Interface{
		Name: fmt.Sprintf("vxlan_tunnel%d", number.N), DevType: "VXLAN", Device: device{q}, Number: number,
		Flags: core.AdminUp | core.LinkUp, LinkMTU: tunnel.MTU, MTU: [4]uint32{tunnel.MTU},
	}
	p.vpp.Create(i)
	i.MAC = core.RandomMAC(i.Index)
	return index(i.Index), core.OK
}

// dump lists one tunnel, or all for ~0. Ports and the next node are shown with VPP's defaults.
func (p plugin) dump(q *vxlan.VxlanTunnelV2Dump, yield func(vxlan.VxlanTunnelV2Details)) {
	for i, d := range core.Each[device](p.vpp, q.SwIfIndex) {
		t := d.request
		yield(vxlan.VxlanTunnelV2Details{
			SwIfIndex: index(i.Index), Instance: t.Instance, SrcAddress: t.SrcAddress, DstAddress: t.DstAddress,
			SrcPort: t.SrcPort, DstPort: t.DstPort, McastSwIfIndex: t.McastSwIfIndex, EncapVrfID: t.EncapVrfID,
			DecapNextIndex: t.DecapNextIndex, Vni: t.Vni,
		})
	}
}
