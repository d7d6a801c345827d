package vppsim

import (
	"crypto/ecdh"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/wireguard"
)

// A wireguardDevice is the device of a WireGuard interface. It has no peers.
type wireguardDevice struct{ itf wireguard.WireguardInterface }

func (d wireguardDevice) gone(w *world, _ *iface) { w.interfaces.release("wg", d.itf.UserInstance) }

func wireguardMessages() []entry {
	type index = interface_types.InterfaceIndex
	return []entry{
		call(func(w *world, q *wireguard.WireguardInterfaceCreate, r *wireguard.WireguardInterfaceCreateReply) (e errno) {
			r.SwIfIndex, e = w.createWireguard(q.Interface)
			return e
		}),
		on(func(q *wireguard.WireguardInterfaceDelete) index { return q.SwIfIndex },
			func(w *world, i *iface, _ *wireguard.WireguardInterfaceDelete, _ *wireguard.WireguardInterfaceDeleteReply) errno {
				if _, is := i.device.(wireguardDevice); !is {
					return api.INVALID_VALUE
				}
				w.remove(i)
				return ok
			}),
		dump(func(w *world, q *wireguard.WireguardInterfaceDump, yield func(wireguard.WireguardInterfaceDetails)) {
			for _, i := range w.interfaces.sorted() {
				d, is := i.device.(wireguardDevice)
				if !is || uint32(q.SwIfIndex) != none && uint32(q.SwIfIndex) != i.index {
					continue
				}
				d.itf.SwIfIndex = index(i.index)
				if !q.ShowPrivateKey {
					d.itf.PrivateKey = make([]byte, len(d.itf.PrivateKey))
				}
				yield(wireguard.WireguardInterfaceDetails{Interface: d.itf})
			}
		}),
	}
}

// createWireguard: any number of interfaces may listen at one port.
func (w *world) createWireguard(itf wireguard.WireguardInterface) (interface_types.InterfaceIndex, errno) {
	key, err := ecdh.X25519().NewPrivateKey(itf.PrivateKey)
	if err != nil {
		return interface_types.InterfaceIndex(none), api.INVALID_REGISTRATION
	}
	instance, index, errno := w.numbered("wg", "Wireguard Tunnel", itf.UserInstance)
	if errno == ok {
		itf.UserInstance, itf.PublicKey = instance, key.PublicKey().Bytes()
		w.interfaces.byIndex[uint32(index)].device = wireguardDevice{itf}
	}
	return index, errno
}
