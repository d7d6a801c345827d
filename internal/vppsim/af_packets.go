package vppsim

import (
	"net"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/af_packet"
	"go.fd.io/govpp/binapi/ethernet_types"
	"go.fd.io/govpp/binapi/interface_types"
)

// An afPacket is the device of an interface on a link of the host.
type afPacket struct{ host string }

func (afPacket) gone(*world, *iface) {}

func afPacketMessages() []entry {
	return []entry{
		call(func(w *world, q *af_packet.AfPacketCreateV3, r *af_packet.AfPacketCreateV3Reply) (e errno) {
			r.SwIfIndex, e = w.createAFPacket(q.HostIfName, q.HwAddr, q.UseRandomHwAddr)
			return e
		}),
		call(func(w *world, q *af_packet.AfPacketCreateV2, r *af_packet.AfPacketCreateV2Reply) (e errno) {
			r.SwIfIndex, e = w.createAFPacket(q.HostIfName, q.HwAddr, q.UseRandomHwAddr)
			return e
		}),
		call(func(w *world, q *af_packet.AfPacketDelete, _ *af_packet.AfPacketDeleteReply) errno {
			i := w.afPacketOn(q.HostIfName)
			if i == nil {
				return api.SYSCALL_ERROR_1
			}
			w.remove(i)
			return ok
		}),
		dump(func(w *world, _ *af_packet.AfPacketDump, yield func(af_packet.AfPacketDetails)) {
			for _, i := range w.interfaces.sorted() {
				if a, is := i.device.(afPacket); is {
					yield(af_packet.AfPacketDetails{SwIfIndex: interface_types.InterfaceIndex(i.index), HostIfName: a.host})
				}
			}
		}),
	}
}

func (w *world) afPacketOn(host string) *iface {
	for _, i := range w.interfaces.byIndex {
		if i.device == (afPacket{host}) {
			return i
		}
	}
	return nil
}

func (w *world) createAFPacket(host string, mac ethernet_types.MacAddress, random bool) (interface_types.InterfaceIndex, errno) {
	if i := w.afPacketOn(host); i != nil {
		return interface_types.InterfaceIndex(i.index), api.IF_ALREADY_EXISTS
	}
	if _, err := net.InterfaceByName(host); err != nil {
		return 0, api.INVALID_INTERFACE
	}
	i := &iface{
		name: "host-" + host, devType: "af-packet", device: afPacket{host}, mac: mac,
		flags: linkUp, linkMTU: 9000, mtu: [4]uint32{9000},
	}
	i.receive(1, interface_types.RX_MODE_API_INTERRUPT)
	w.create(i)
	if random || mac == (ethernet_types.MacAddress{}) {
		i.mac = randomMAC(i.index)
	}
	return interface_types.InterfaceIndex(i.index), ok
}
