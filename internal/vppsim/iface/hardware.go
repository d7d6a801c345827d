package iface

import (
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/internal/vppsim/core"
)

// A nic is the device of an interface that VPP's DPDK plugin has found. No message deletes it.
type nic struct{}

// findHardware adds the interfaces of Options.Hardware. They exist before the first client
// connects, so no event reports them.
func (p plugin) findHardware() {
	for _, name := range p.vpp.Options.Hardware {
		i := &core.Interface{Name: name, DevType: "dpdk", Device: nic{}, LinkMTU: 9000, MTU: [4]uint32{9000}}
		i.Receive(1, interface_types.RX_MODE_API_POLLING)
		p.vpp.Add(i)
		i.MAC = core.RandomMAC(i.Index)
	}
}
