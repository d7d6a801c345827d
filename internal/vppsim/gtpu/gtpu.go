// Package gtpu simulates VPP's plugin for GTPU tunnels. A tunnel is identified by its
// destination and its own TEID (VPP gtpu.c). VPP hides the interfaces of deleted tunnels;
// see tunnel.Recycler.
package gtpu

import (
	"cmp"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/gtpu"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/internal/vppsim/core"
	"github.com/keyplane/keyplane/internal/vppsim/ip"
	"github.com/keyplane/keyplane/internal/vppsim/l2"
	"github.com/keyplane/keyplane/internal/vppsim/tunnel"
)

// A device is the device of a tunnel: the request that created it, with VPP's defaults.
type device struct{ request gtpu.GtpuAddDelTunnel }

// maxDecapNext is the last node for decapsulated packets (VPP gtpu.api).
const maxDecapNext = uint32(gtpu.GTPU_API_DECAP_NEXT_IP6)

// A plugin has the interfaces of the tunnels of one VPP, also the hidden ones.
type plugin struct {
	vpp        *core.VPP
	tables     *ip.IP
	interfaces tunnel.Recycler
}

type index = interface_types.InterfaceIndex

// New adds the plugin.
func New(vpp *core.VPP, tables *ip.IP, switching *l2.L2) {
	p := &plugin{vpp, tables, tunnel.Recycler{VPP: vpp, L2: switching, Prefix: "gtpu_tunnel"}}
	vpp.Register(core.Plugin{Messages: []core.Message{
		core.Call(func(q *gtpu.GtpuAddDelTunnel, r *gtpu.GtpuAddDelTunnelReply) (e core.Errno) {
			r.SwIfIndex, e = p.change(*q)
			return e
		}),
		core.Dump(p.dump),
	}})
}

// change adds or deletes a tunnel. VPP checks endpoints and table in a delete as well. A
// TEID of 0 for packets to send means the tunnel's own TEID.
func (p *plugin) change(q gtpu.GtpuAddDelTunnel) (index, core.Errno) {
	refused := index(core.None)
	errno := tunnel.CheckEnds(p.tables, q.SrcAddress, q.DstAddress, q.EncapVrfID)
	if errno == core.OK {
		errno = tunnel.CheckMulticast(p.vpp, q.DstAddress, q.McastSwIfIndex)
	}
	if errno != core.OK {
		return refused, errno
	}
	existing := core.Find(p.vpp, func(d device) bool { return d.request.DstAddress == q.DstAddress && d.request.Teid == q.Teid })
	if !q.IsAdd {
		if existing == nil {
			return refused, api.NO_SUCH_ENTRY
		}
		p.interfaces.Hide(existing)
		return index(existing.Index), core.OK
	}
	if existing != nil {
		return refused, api.TUNNEL_EXIST
	}
	if q.DecapNextIndex == core.None {
		q.DecapNextIndex = tunnel.DecapL2
	}
	if q.DecapNextIndex > maxDecapNext {
		return refused, api.INVALID_DECAP_NEXT
	}
	q.Tteid = cmp.Or(q.Tteid, q.Teid)
	return p.interfaces.Up("GTPU", device{q}), core.OK
}

// dump lists one tunnel, or all for ~0.
func (p *plugin) dump(q *gtpu.GtpuTunnelDump, yield func(gtpu.GtpuTunnelDetails)) {
	for i, d := range core.Each[device](p.vpp, q.SwIfIndex) {
		t := d.request
		yield(gtpu.GtpuTunnelDetails{
			SwIfIndex: index(i.Index), SrcAddress: t.SrcAddress, DstAddress: t.DstAddress, McastSwIfIndex: t.McastSwIfIndex,
			EncapVrfID: t.EncapVrfID, DecapNextIndex: t.DecapNextIndex, Teid: t.Teid, Tteid: t.Tteid,
		})
	}
}
