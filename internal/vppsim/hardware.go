package vppsim

import "go.fd.io/govpp/binapi/interface_types"

// A nic is the device of an interface that VPP has found by its DPDK plugin. Nothing deletes it.
type nic struct{}

func (nic) gone(*world, *iface) {}

func (w *world) findHardware(names []string) {
	for _, name := range names {
		i := &iface{name: name, devType: "dpdk", device: nic{}, linkMTU: 9000, mtu: [4]uint32{9000}}
		i.receive(1, interface_types.RX_MODE_API_POLLING)
		w.interfaces.add(i)
		i.mac = randomMAC(i.index)
	}
}
