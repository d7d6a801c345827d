package vppsim

// A nic is the device of an interface that VPP has found by its DPDK plugin. Nothing deletes it.
type nic struct{}

func (nic) gone(*world, *iface) {}

func (w *world) findHardware(names []string) {
	for _, name := range names {
		i := &iface{name: name, devType: "dpdk", device: nic{}, linkMTU: 9000, mtu: [4]uint32{9000}}
		w.interfaces.add(i)
		i.mac = randomMAC(i.index)
	}
}
