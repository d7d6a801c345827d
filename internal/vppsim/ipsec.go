package vppsim

import (
	"fmt"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ipsec"
)

// An ipsecDevice is the device of an interface whose packets IPsec protects.
type ipsecDevice struct{ itf ipsec.IpsecItf }

func (d ipsecDevice) gone(w *world, _ *iface) { w.interfaces.release("ipsec", d.itf.UserInstance) }

// mostInstances is how many interfaces of IPsec, and of WireGuard, there can be (VPP ipsec_itf.c,
// wireguard_if.c).
const mostInstances = 16 * 1024

func ipsecMessages() []entry {
	type index = interface_types.InterfaceIndex
	return []entry{
		call(func(w *world, q *ipsec.IpsecItfCreate, r *ipsec.IpsecItfCreateReply) (e errno) {
			q.Itf.UserInstance, r.SwIfIndex, e = w.numbered("ipsec", "IPSEC Tunnel", q.Itf.UserInstance)
			if e == ok {
				w.interfaces.byIndex[uint32(r.SwIfIndex)].device = ipsecDevice{q.Itf}
			}
			return e
		}),
		on(func(q *ipsec.IpsecItfDelete) index { return q.SwIfIndex },
			func(w *world, i *iface, _ *ipsec.IpsecItfDelete, _ *ipsec.IpsecItfDeleteReply) errno {
				if _, is := i.device.(ipsecDevice); !is {
					return api.INVALID_SW_IF_INDEX
				}
				w.remove(i)
				return ok
			}),
		dump(func(w *world, q *ipsec.IpsecItfDump, yield func(ipsec.IpsecItfDetails)) {
			for _, i := range w.interfaces.sorted() {
				if d, is := i.device.(ipsecDevice); is && (uint32(q.SwIfIndex) == none || uint32(q.SwIfIndex) == i.index) {
					d.itf.SwIfIndex = index(i.index)
					yield(ipsec.IpsecItfDetails{Itf: d.itf})
				}
			}
		}),
	}
}

// numbered makes an interface that is called by its kind and a number: the lowest that is
// free, or wanted one.
func (w *world) numbered(kind, devType string, wanted uint32) (uint32, interface_types.InterfaceIndex, errno) {
	refused := interface_types.InterfaceIndex(none)
	if wanted != none && wanted >= mostInstances {
		return 0, refused, api.INVALID_REGISTRATION
	}
	instance, free := w.interfaces.instance(kind, wanted != none, wanted)
	if !free {
		return 0, refused, api.INVALID_REGISTRATION
	}
	i := &iface{name: fmt.Sprintf("%s%d", kind, instance), devType: devType, mtu: [4]uint32{9000}}
	return instance, interface_types.InterfaceIndex(w.create(i)), ok
}
