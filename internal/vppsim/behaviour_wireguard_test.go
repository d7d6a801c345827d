package vppsim_test

import (
	"bytes"
	"context"
	"net/netip"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/wireguard"

	"github.com/keyplane/keyplane/internal/vppwire"
)

// wireguardTunnel makes a WireGuard interface, for the time of the row.
func (v *vpp) wireguardTunnel(key byte) index {
	v.Helper()
	var r wireguard.WireguardInterfaceCreateReply
	itf := wireguard.WireguardInterface{
		UserInstance: ^uint32(0), PrivateKey: bytes.Repeat([]byte{key}, 32), PublicKey: make([]byte, 32), Port: 51820, SrcIP: addr("10.0.0.1"),
	}
	v.call("wireguard_interface_create", 0, &wireguard.WireguardInterfaceCreate{Interface: itf}, &r)
	v.Cleanup(func() {
		q := &wireguard.WireguardInterfaceDelete{SwIfIndex: r.SwIfIndex}
		_ = v.Call(context.WithoutCancel(v.Context()), q, &wireguard.WireguardInterfaceDeleteReply{}) // the row may have deleted it
	})
	return r.SwIfIndex
}

// wireguardPeer adds a peer.
func (v *vpp) wireguardPeer(at index, key byte, endpoint string, want api.VPPApiError, networks ...string) uint32 {
	v.Helper()
	var r wireguard.WireguardPeerAddReply
	one := wireguard.WireguardPeer{
		PublicKey: bytes.Repeat([]byte{key}, 32), Port: 9, PersistentKeepalive: 25, Endpoint: addr(endpoint), SwIfIndex: at,
	}
	for _, network := range networks {
		one.AllowedIps = append(one.AllowedIps, vppwire.Prefix(netip.MustParsePrefix(network)))
	}
	v.call("wireguard_peer_add", want, &wireguard.WireguardPeerAdd{Peer: one}, &r)
	return r.PeerIndex
}

func (v *vpp) wireguardPeers(number uint32) (out []wireguard.WireguardPeer) {
	v.Helper()
	for _, d := range dump[wireguard.WireguardPeersDetails](v, &wireguard.WireguardPeersDump{PeerIndex: number}) {
		out = append(out, d.Peer)
	}
	return out
}

func wireguardRows() []row {
	return []row{{"WireGuard peers", func(v *vpp) {
		remove := func(number uint32, want api.VPPApiError) {
			v.Helper()
			v.call("wireguard_peer_remove", want, &wireguard.WireguardPeerRemove{PeerIndex: number}, &wireguard.WireguardPeerRemoveReply{})
		}
		subscribe := func(number uint32) {
			v.Helper()
			v.call("want_wireguard_peer_events", 0, &wireguard.WantWireguardPeerEvents{SwIfIndex: none, PeerIndex: number, EnableDisable: 1}, &wireguard.WantWireguardPeerEventsReply{})
		}
		i, j := v.wireguardTunnel(1), v.wireguardTunnel(2)
		v.wireguardPeer(i, 7, "10.0.0.2", api.INVALID_VALUE)
		v.wireguardPeer(v.loop(), 7, "10.0.0.2", api.INVALID_SW_IF_INDEX, "10.1.0.0/16")
		v.wireguardPeer(unknown, 7, "10.0.0.2", api.INVALID_SW_IF_INDEX, "10.1.0.0/16")
		a := v.wireguardPeer(i, 7, "10.0.0.2", 0, "10.1.0.0/16", "fd00::/8", "10.1.0.1/24")
		v.wireguardPeer(j, 7, "10.0.0.3", api.ENTRY_ALREADY_EXISTS, "10.1.0.0/16")
		b := v.wireguardPeer(j, 8, "::1", 0, "0.0.0.0/0")
		got := v.wireguardPeers(a)
		want := []ip_types.Prefix{
			vppwire.Prefix(netip.MustParsePrefix("10.1.0.0/16")), vppwire.Prefix(netip.MustParsePrefix("fd00::/8")), vppwire.Prefix(netip.MustParsePrefix("10.1.0.1/24")),
		}
		if len(got) != 1 || got[0].Port != 9 || got[0].PersistentKeepalive != 25 || got[0].Endpoint != addr("10.0.0.2") || got[0].SwIfIndex != i || got[0].Flags != 0 || !slices.Equal(got[0].AllowedIps, want) {
			v.Errorf("the peer is %+v", got)
		}
		if got := v.wireguardPeers(b); len(got) != 1 || got[0].Endpoint != addr("0.0.0.1") { // it looks like IPv4
			v.Errorf("the peer is %+v", got)
		}
		if got := v.wireguardPeers(a + b + 1000); len(got) != 0 {
			v.Errorf("a peer that does not exist is %+v", got)
		}
		subscribe(a)
		subscribe(a)
		subscribe(uint32(none))
		subscribe(a + b + 1000)
		remove(a, 0)
		remove(a, api.NO_SUCH_ENTRY)
		if c := v.wireguardPeer(i, 9, "fd00::2", 0, "10.1.0.0/16"); c != a {
			v.Errorf("a new peer got the number %d; expected %d, the one that was released last", c, a)
		}
		v.call("delete", 0, &wireguard.WireguardInterfaceDelete{SwIfIndex: i}, &wireguard.WireguardInterfaceDeleteReply{}) // with its peers
		if got := v.wireguardPeers(uint32(none)); len(got) != 1 || got[0].PeerIndex != b {
			v.Errorf("peers are %+v", got)
		}
	}}}
}
