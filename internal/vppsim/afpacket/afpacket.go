// Package afpacket simulates VPP's interfaces on links of the host. The link must exist
// when the interface is made; its name identifies the interface.
package afpacket

import (
	"net"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/af_packet"
	"go.fd.io/govpp/binapi/ethernet_types"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/internal/vppsim/core"
)

// A device is an interface's link of the host.
type device struct{ host string }

type plugin struct{ vpp *core.VPP }

type index = interface_types.InterfaceIndex

// New adds the plugin. The two versions of the creation differ in fields that the
// simulated VPP does not use.
func New(vpp *core.VPP) {
	p := plugin{vpp}
	vpp.Register(core.Plugin{Messages: []core.Message{
		core.Call(func(q *af_packet.AfPacketCreateV3, r *af_packet.AfPacketCreateV3Reply) (e core.Errno) {
			r.SwIfIndex, e = p.create(q.HostIfName, q.HwAddr, q.UseRandomHwAddr)
			return e
		}),
		core.Call(func(q *af_packet.AfPacketCreateV2, r *af_packet.AfPacketCreateV2Reply) (e core.Errno) {
			r.SwIfIndex, e = p.create(q.HostIfName, q.HwAddr, q.UseRandomHwAddr)
			return e
		}),
		core.Call(p.delete),
		core.Dump(func(_ *af_packet.AfPacketDump, yield func(af_packet.AfPacketDetails)) {
			for i, d := range core.Each[device](vpp, index(core.None)) {
				yield(af_packet.AfPacketDetails{SwIfIndex: index(i.Index), HostIfName: d.host})
			}
		}),
	}})
}

func (p plugin) on(host string) *core.Interface {
	return core.Find(p.vpp, func(d device) bool { return d.host == host })
}

// create makes an interface that is down, with its link up. For a link in use the reply
// has the existing index beside the error; for a link that does not exist it has index 0.
// The queues have no adaptive mode.
func (p plugin) create(host string, mac ethernet_types.MacAddress, random bool) (index, core.Errno) {
	if i := p.on(host); i != nil {
		return index(i.Index), api.IF_ALREADY_EXISTS
	}
	if _, err := net.InterfaceByName(host); err != nil {
		return 0, api.INVALID_INTERFACE
	}
	i := &core.Interface{
		Name: "host-" + host, DevType: "af-packet", Device: device{host}, MAC: mac,
		Flags: core.LinkUp, NoAdaptive: true, LinkMTU: 9000, MTU: [4]uint32{9000},
	}
	i.Receive(1, interface_types.RX_MODE_API_INTERRUPT)
	p.vpp.Create(i)
	if random || mac == (ethernet_types.MacAddress{}) {
		i.MAC = core.RandomMAC(i.Index)
	}
	return index(i.Index), core.OK
}

// delete takes the name of the link. An unknown name is refused with SYSCALL_ERROR_1.
func (p plugin) delete(q *af_packet.AfPacketDelete, _ *af_packet.AfPacketDeleteReply) core.Errno {
	i := p.on(q.HostIfName)
	if i == nil {
		return api.SYSCALL_ERROR_1
	}
	p.vpp.Remove(i)
	return core.OK
}
