// Package wireguard simulates VPP's WireGuard plugin: interfaces and their peers. No packet is
// sent, so a test tells when a peer answers.
package wireguard

import (
	"crypto/ecdh"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/wireguard"

	"github.com/keyplane/keyplane/internal/vppsim/core"
	"github.com/keyplane/keyplane/internal/vppsim/tunnel"
)

// A device is the device of a WireGuard interface: the request that created it, with its
// number and public key.
type device struct{ itf wireguard.WireguardInterface }

type plugin struct{ vpp *core.VPP }

type index = interface_types.InterfaceIndex

// New adds the plugin, and returns the peers.
func New(vpp *core.VPP) *Peers {
	p, peers := plugin{vpp}, &Peers{vpp: vpp, all: map[uint32]*peer{}}
	messages := append(peers.messages(),
		core.Call(func(q *wireguard.WireguardInterfaceCreate, r *wireguard.WireguardInterfaceCreateReply) (e core.Errno) {
			r.SwIfIndex, e = p.create(q.Interface)
			return e
		}),
		core.On(vpp, func(q *wireguard.WireguardInterfaceDelete) index { return q.SwIfIndex }, p.delete),
		core.Dump(p.dump),
	)
	vpp.Register(core.Plugin{Messages: messages, Pages: map[string]func() string{"show wireguard peer": peers.show}, Removing: peers.removing})
	return peers
}

// create derives the public key from the private one. Any number of interfaces may listen
// at one port.
func (p plugin) create(itf wireguard.WireguardInterface) (index, core.Errno) {
	key, err := ecdh.X25519().NewPrivateKey(itf.PrivateKey)
	if err != nil {
		return index(core.None), api.INVALID_REGISTRATION
	}
	return tunnel.Numbered(p.vpp, "wg", "Wireguard Tunnel", itf.UserInstance, func(number uint32) any {
		itf.UserInstance, itf.PublicKey = number, key.PublicKey().Bytes()
		return device{itf}
	})
}

// delete refuses another kind of interface with INVALID_VALUE, and an unknown index with
// INVALID_SW_IF_INDEX.
func (p plugin) delete(i *core.Interface, _ *wireguard.WireguardInterfaceDelete, _ *wireguard.WireguardInterfaceDeleteReply) core.Errno {
	if _, is := i.Device.(device); !is {
		return api.INVALID_VALUE
	}
	p.vpp.Remove(i)
	return core.OK
}

// dump lists one interface, or all for ~0. Private keys are zero unless the request asks
// for them.
func (p plugin) dump(q *wireguard.WireguardInterfaceDump, yield func(wireguard.WireguardInterfaceDetails)) {
	for i, d := range core.Each[device](p.vpp, q.SwIfIndex) {
		d.itf.SwIfIndex = index(i.Index)
		if !q.ShowPrivateKey {
			d.itf.PrivateKey = make([]byte, len(d.itf.PrivateKey))
		}
		yield(wireguard.WireguardInterfaceDetails{Interface: d.itf})
	}
}
