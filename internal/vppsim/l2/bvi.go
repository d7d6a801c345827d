package l2

import (
	"fmt"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ethernet_types"
	"go.fd.io/govpp/binapi/l2"

	"github.com/keyplane/keyplane/internal/vppsim/core"
)

// A bvi is the device of an interface that is made as a BVI. Any other interface can
// become the BVI of a bridge domain as well; see setBridge.
type bvi struct{}

// bviMessages returns the messages of bridged virtual interfaces.
func (p *L2) bviMessages() []core.Message {
	return []core.Message{
		core.Call(p.createBVI),
		core.Call(func(q *l2.BviDelete, _ *l2.BviDeleteReply) core.Errno {
			return core.Delete[bvi](p.vpp, q.SwIfIndex, api.INVALID_SW_IF_INDEX)
		}),
	}
}

// createBVI makes a BVI that is down and in no bridge domain. Without a MAC address it
// gets b0:b0:00:00:00:xx, where the last byte is the instance number.
func (p *L2) createBVI(q *l2.BviCreate, r *l2.BviCreateReply) core.Errno {
	r.SwIfIndex = index(core.None)
	number, free := p.vpp.Number("bvi", q.UserInstance)
	if !free {
		return api.INVALID_REGISTRATION
	}
	mac := q.Mac
	if mac == (ethernet_types.MacAddress{}) {
		mac = ethernet_types.MacAddress{0xb0, 0xb0, 0, 0, 0, byte(number.N)}
	}
	r.SwIfIndex = p.vpp.Create(&core.Interface{
		Name: fmt.Sprintf("bvi%d", number.N), DevType: "BVI", Device: bvi{}, Number: number,
		MAC: mac, LinkMTU: 9000, MTU: [4]uint32{9000},
	})
	return core.OK
}
