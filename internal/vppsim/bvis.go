package vppsim

import (
	"fmt"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ethernet_types"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/l2"
)

// A bviDevice is the device of an interface that is made as a BVI. It has an instance:
// that of its name.
type bviDevice struct{ instance uint32 }

func (b bviDevice) gone(w *world, _ *iface) { w.interfaces.release("bvi", b.instance) }

func bviMessages() []entry {
	return []entry{
		call(createBVI),
		on(func(q *l2.BviDelete) interface_types.InterfaceIndex { return q.SwIfIndex },
			func(w *world, i *iface, _ *l2.BviDelete, _ *l2.BviDeleteReply) errno {
				if _, is := i.device.(bviDevice); !is {
					return api.INVALID_SW_IF_INDEX
				}
				w.remove(i)
				return ok
			}),
	}
}

func createBVI(w *world, q *l2.BviCreate, r *l2.BviCreateReply) errno {
	r.SwIfIndex = interface_types.InterfaceIndex(none)
	instance, free := w.interfaces.instance("bvi", q.UserInstance != none, q.UserInstance)
	if !free {
		return api.INVALID_REGISTRATION
	}
	mac := q.Mac
	if mac == (ethernet_types.MacAddress{}) {
		mac = ethernet_types.MacAddress{0xb0, 0xb0, 0, 0, 0, byte(instance)}
	}
	r.SwIfIndex = interface_types.InterfaceIndex(w.create(&iface{
		name: fmt.Sprintf("bvi%d", instance), devType: "BVI", device: bviDevice{instance}, mac: mac, linkMTU: 9000, mtu: [4]uint32{9000},
	}))
	return ok
}
