package iface

import (
	"fmt"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ethernet_types"
	vppif "go.fd.io/govpp/binapi/interface"

	"github.com/keyplane/keyplane/internal/vppsim/core"
)

// A loopback is the device of a loopback interface. Its instance number is part of its
// name, and independent of the interface's index.
type loopback struct{}

// maxLoopbacks bounds instance numbers: 16383 is the largest.
const maxLoopbacks = 16384

// loopbacks registers creation and deletion. Deleting any other interface is refused with
// INVALID_SW_IF_INDEX.
func (p plugin) loopbacks() {
	p.vpp.Register(core.Plugin{Messages: []core.Message{
		core.Call(func(q *vppif.CreateLoopback, r *vppif.CreateLoopbackReply) (e core.Errno) {
			r.SwIfIndex, e = p.createLoopback(q.MacAddress, core.None)
			return e
		}),
		core.Call(func(q *vppif.CreateLoopbackInstance, r *vppif.CreateLoopbackInstanceReply) (e core.Errno) {
			wanted := core.None
			if q.IsSpecified {
				// VPP checks ~0 like any other number here. It does not mean "any".
				wanted = min(q.UserInstance, maxLoopbacks)
			}
			r.SwIfIndex, e = p.createLoopback(q.MacAddress, wanted)
			return e
		}),
		core.Call(func(q *vppif.DeleteLoopback, _ *vppif.DeleteLoopbackReply) core.Errno {
			return core.Delete[loopback](p.vpp, q.SwIfIndex, api.INVALID_SW_IF_INDEX)
		}),
	}})
}

// createLoopback makes a loopback that is down. Without a MAC address it gets
// de:ad:00:00:00:xx, where the last byte is the instance number. Two loopbacks may have
// one MAC address.
func (p plugin) createLoopback(mac ethernet_types.MacAddress, wanted uint32) (index, core.Errno) {
	if wanted != core.None && wanted >= maxLoopbacks {
		return index(core.None), api.INVALID_REGISTRATION
	}
	number, free := p.vpp.Number("loop", wanted)
	if !free {
		return index(core.None), api.INVALID_REGISTRATION
	}
	if mac == (ethernet_types.MacAddress{}) {
		mac = ethernet_types.MacAddress{0xde, 0xad, 0, 0, 0, byte(number.N)}
	}
	return p.vpp.Create(&core.Interface{
		Name: fmt.Sprintf("loop%d", number.N), DevType: "Loopback", Device: loopback{}, Number: number,
		MAC: mac, LinkMTU: 9000, MTU: [4]uint32{9000},
	}), core.OK
}
