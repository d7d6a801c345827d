// Package gre simulates VPP's plugin for GRE tunnels. A tunnel is identified by its
// endpoints, its type, its session, and the table of its outer packets.
//
// The real plugin keeps no name for a tunnel: two requests with the same identity mean the
// same tunnel, and a delete needs the identity and not the index. A descriptor must
// therefore keep the whole request to delete its tunnel.
package gre

import (
	"fmt"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/gre"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/tunnel_types"

	"github.com/keyplane/keyplane/internal/vppsim/core"
	"github.com/keyplane/keyplane/internal/vppsim/ip"
	"github.com/keyplane/keyplane/internal/vppsim/tunnel"
)

// A device is the device of a tunnel.
type device struct{ tunnel gre.GreTunnel }

// Mode implements tunnel.Protectable.
func (d device) Mode() tunnel_types.TunnelMode { return d.tunnel.Mode }

// A plugin adds its messages to a VPP. The tables tell which endpoints are possible.
type plugin struct {
	vpp    *core.VPP
	tables *ip.IP
}

type index = interface_types.InterfaceIndex

// New adds the plugin.
func New(vpp *core.VPP, tables *ip.IP) {
	p := plugin{vpp, tables}
	vpp.Register(core.Plugin{Messages: []core.Message{
		core.Call(func(q *gre.GreTunnelAddDel, r *gre.GreTunnelAddDelReply) (e core.Errno) {
			r.SwIfIndex, e = p.change(q.IsAdd, q.Tunnel)
			return e
		}),
		core.Dump(func(q *gre.GreTunnelDump, yield func(gre.GreTunnelDetails)) {
			for i, d := range core.Each[device](vpp, q.SwIfIndex) {
				d.tunnel.SwIfIndex = index(i.Index)
				// Of other types VPP has the session in its table of tunnels only (gre/interface.c, vnet_gre_tunnel_add).
				if d.tunnel.Type != gre.GRE_API_TUNNEL_TYPE_ERSPAN {
					d.tunnel.SessionID = 0
				}
				yield(gre.GreTunnelDetails{Tunnel: d.tunnel})
			}
		}),
	}})
}

// change adds or deletes a tunnel. A new tunnel is down. The reply to a delete has the
// index of the deleted interface.
func (p plugin) change(add bool, t gre.GreTunnel) (index, core.Errno) {
	existing := core.Find(p.vpp, func(d device) bool {
		o := d.tunnel
		return o.Src == t.Src && o.Dst == t.Dst && o.Type == t.Type && o.OuterTableID == t.OuterTableID && o.SessionID == t.SessionID
	})
	switch {
	case add:
		return p.add(t, existing)
	case existing == nil:
		return index(core.None), api.NO_SUCH_ENTRY
	}
	p.vpp.Remove(existing)
	return index(existing.Index), core.OK
}

// MTUs of the link, by the content of packets. Only Ethernet tunnels have a MAC address.
const (
	l3MTU       = 65512
	ethernetMTU = 8998
)

// add makes a tunnel after the checks of the real plugin, in its order: the reply has the
// first error only, so a test that makes two mistakes sees the same one.
func (p plugin) add(t gre.GreTunnel, existing *core.Interface) (index, core.Errno) {
	refused := index(core.None)
	if errno := tunnel.CheckEnds(p.tables, t.Src, t.Dst, t.OuterTableID); errno != core.OK {
		return refused, errno
	}
	if existing != nil {
		return refused, api.IF_ALREADY_EXISTS
	}
	number, free := p.vpp.Number("gre", t.Instance)
	if !free {
		return refused, api.INSTANCE_IN_USE
	}
	t.Instance = number.N
	i := &core.Interface{
		Name: fmt.Sprintf("gre%d", number.N), DevType: "GRE tunnel device", Device: device{t}, Number: number,
		LinkMTU: l3MTU, MTU: [4]uint32{tunnel.MTU}, NoMAC: t.Type == gre.GRE_API_TUNNEL_TYPE_L3,
	}
	if !i.NoMAC {
		i.LinkMTU = ethernetMTU
	}
	p.vpp.Create(i)
	if !i.NoMAC {
		i.MAC = core.RandomMAC(i.Index)
	}
	return index(i.Index), core.OK
}
