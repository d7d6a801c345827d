// Package vxlangpe simulates VPP's plugin for VXLAN-GPE tunnels. A tunnel is identified by
// its endpoints, its VNI, and its local port. VPP hides the interfaces of deleted tunnels;
// see tunnel.Recycler.
package vxlangpe

import (
	"cmp"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/vxlan_gpe"

	"github.com/keyplane/keyplane/internal/vppsim/core"
	"github.com/keyplane/keyplane/internal/vppsim/ip"
	"github.com/keyplane/keyplane/internal/vppsim/l2"
	"github.com/keyplane/keyplane/internal/vppsim/tunnel"
)

const (
	defaultPort = 4790 // draft-ietf-nvo3-vxlan-gpe
	protocolIP4 = 1    // the tunnel carries IPv4
)

// A device is the device of a tunnel: the request that created it, with VPP's defaults.
type device struct {
	request vxlan_gpe.VxlanGpeAddDelTunnelV2
}

// A plugin has the interfaces of the tunnels of one VPP, also the hidden ones.
type plugin struct {
	vpp        *core.VPP
	tables     *ip.IP
	interfaces tunnel.Recycler
}

type index = interface_types.InterfaceIndex

// New adds the plugin.
func New(vpp *core.VPP, tables *ip.IP, switching *l2.L2) {
	p := &plugin{vpp, tables, tunnel.Recycler{VPP: vpp, L2: switching, Prefix: "vxlan_gpe_tunnel"}}
	vpp.Register(core.Plugin{Messages: []core.Message{
		core.Call(func(q *vxlan_gpe.VxlanGpeAddDelTunnelV2, r *vxlan_gpe.VxlanGpeAddDelTunnelV2Reply) (e core.Errno) {
			r.SwIfIndex, e = p.change(*q)
			return e
		}),
		core.Dump(p.dump),
	}})
}

// change adds or deletes a tunnel. VPP looks for the outer table among the IPv4 tables
// only, also for IPv6 endpoints. It checks the inner table only for a tunnel that carries
// IPv4 (VPP vxlan_gpe_api.c). All checks apply to a delete too.
func (p *plugin) change(q vxlan_gpe.VxlanGpeAddDelTunnelV2) (index, core.Errno) {
	refused := index(core.None)
	switch {
	case !p.tables.HasTable(false, q.EncapVrfID):
		return refused, api.NO_SUCH_FIB
	case q.Protocol == protocolIP4 && !p.tables.HasTable(false, q.DecapVrfID):
		return refused, api.NO_SUCH_INNER_FIB
	case q.Local == q.Remote:
		return refused, api.SAME_SRC_DST
	}
	q.LocalPort, q.RemotePort = cmp.Or(q.LocalPort, defaultPort), cmp.Or(q.RemotePort, defaultPort)
	existing := core.Find(p.vpp, func(d device) bool {
		o := d.request
		return o.Local == q.Local && o.Remote == q.Remote && o.Vni == q.Vni && o.LocalPort == q.LocalPort
	})
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
	return p.interfaces.Up("VXLAN_GPE", device{q}), core.OK
}

// dump lists one tunnel, or all for ~0.
func (p *plugin) dump(q *vxlan_gpe.VxlanGpeTunnelV2Dump, yield func(vxlan_gpe.VxlanGpeTunnelV2Details)) {
	for i, d := range core.Each[device](p.vpp, q.SwIfIndex) {
		t := d.request
		yield(vxlan_gpe.VxlanGpeTunnelV2Details{
			SwIfIndex: index(i.Index), Local: t.Local, Remote: t.Remote, LocalPort: t.LocalPort, RemotePort: t.RemotePort,
			Vni: t.Vni, Protocol: t.Protocol, McastSwIfIndex: t.McastSwIfIndex, EncapVrfID: t.EncapVrfID, DecapVrfID: t.DecapVrfID,
		})
	}
}
