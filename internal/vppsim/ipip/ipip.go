// Package ipip simulates VPP's IP-in-IP tunnels. A tunnel is identified by its endpoints
// and the table of its outer packets.
//
// Unlike the other tunnels, these are deleted by the index of their interface. Their
// interface can be protected by IPsec: see tunnel.Protectable.
package ipip

import (
	"fmt"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/ipip"
	"go.fd.io/govpp/binapi/tunnel_types"

	"github.com/keyplane/keyplane/internal/vppsim/core"
	"github.com/keyplane/keyplane/internal/vppsim/ip"
	"github.com/keyplane/keyplane/internal/vppsim/tunnel"
)

// A device is the device of a tunnel.
type device struct{ tunnel ipip.IpipTunnel }

// Mode implements tunnel.Protectable.
func (d device) Mode() tunnel_types.TunnelMode { return d.tunnel.Mode }

// A plugin adds its messages to a VPP. The tables tell which endpoints are possible.
type plugin struct {
	vpp    *core.VPP
	tables *ip.IP
}

type index = interface_types.InterfaceIndex

// New adds the plugin. An index that is no IP-in-IP tunnel is refused with NO_SUCH_ENTRY.
func New(vpp *core.VPP, tables *ip.IP) {
	p := plugin{vpp, tables}
	vpp.Register(core.Plugin{Messages: []core.Message{
		core.Call(func(q *ipip.IpipAddTunnel, r *ipip.IpipAddTunnelReply) (e core.Errno) {
			r.SwIfIndex, e = p.add(q.Tunnel)
			return e
		}),
		core.Call(func(q *ipip.IpipDelTunnel, _ *ipip.IpipDelTunnelReply) core.Errno {
			return core.Delete[device](vpp, q.SwIfIndex, api.NO_SUCH_ENTRY)
		}),
		core.Dump(func(q *ipip.IpipTunnelDump, yield func(ipip.IpipTunnelDetails)) {
			for i, d := range core.Each[device](vpp, q.SwIfIndex) {
				d.tunnel.SwIfIndex = index(i.Index)
				yield(ipip.IpipTunnelDetails{Tunnel: d.tunnel})
			}
		}),
	}})
}

// linkMTU is the MTU of a new tunnel's link.
const linkMTU = 65516

// add makes a tunnel that is down. For an existing tunnel the reply has its index beside
// the error.
func (p plugin) add(t ipip.IpipTunnel) (index, core.Errno) {
	refused := index(core.None)
	if t.Src.Af != t.Dst.Af {
		return refused, api.INVALID_PROTOCOL
	}
	if !p.tables.HasTable(t.Src.Af == ip_types.ADDRESS_IP6, t.TableID) {
		return refused, api.NO_SUCH_FIB
	}
	existing := core.Find(p.vpp, func(d device) bool {
		return d.tunnel.Src == t.Src && d.tunnel.Dst == t.Dst && d.tunnel.TableID == t.TableID
	})
	if existing != nil {
		return index(existing.Index), api.IF_ALREADY_EXISTS
	}
	number, free := p.vpp.Number("ipip", t.Instance)
	if !free {
		return refused, api.INSTANCE_IN_USE
	}
	t.Instance = number.N
	return p.vpp.Create(&core.Interface{
		Name: fmt.Sprintf("ipip%d", number.N), DevType: "IPIP tunnel device", Device: device{t}, Number: number, NoMAC: true,
		LinkMTU: linkMTU, MTU: [4]uint32{tunnel.MTU},
	}), core.OK
}
