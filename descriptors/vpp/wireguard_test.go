package vpp_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/vppsim"
	"github.com/keyplane/keyplane/scheduler"
)

// A WireGuard interface and its peer.
const (
	wireguardKey  = "config/vpp/v2/interfaces/wg1"
	wireguardLink = `{"name":"wg1","type":"WIREGUARD_TUNNEL","enabled":true,"wireguard":{"private_key":"AAECAwQFBgcICQoLDA0ODw8ODQwLCgkIBwYFBAMCAQA=","src_addr":"10.9.0.1"}}`
	peerAt        = "10.9.0.3"
	peerName      = "wg1/endpoint/" + peerAt + "/51820"
	peerKey       = "config/vpp/wg/v1/peer/" + peerName
	peerPublic    = "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc="
)

// peerValue is a peer at an endpoint.
func peerValue(endpoint string) string {
	return fmt.Sprintf(`{"wg_if_name":"wg1","endpoint":%q,"port":51820,"public_key":%q,"allowed_ips":["10.11.0.0/16"],"persistent_keepalive":25}`, endpoint, peerPublic)
}

// TestWireguardPeers has a peer answer, move to another address and fall silent. Its state follows,
// and the other address is no difference, also to an agent that was started again.
func TestWireguardPeers(t *testing.T) {
	onEachRelease(t, func(t *testing.T, sim *vppsim.Sim, socket string) {
		a := startAgent(t, socket)
		awaitReady(t, a)
		record, err := a.declare(true, wireguardKey, wireguardLink, peerKey, peerValue(peerAt))
		if sim.Release() == "22.02" {
			a.expectState(peerKey, scheduler.Unimplemented)
			return
		}
		if err != nil {
			t.Fatal(record, err)
		}
		state := func(state string) {
			t.Helper()
			a.awaitState(keys.WireguardPeerState(peerName, state), scheduler.Obtained)
			for _, other := range []string{keys.WireguardHandshake, keys.WireguardEstablished, keys.WireguardDead} {
				if _, has := a.sched.Status(keys.WireguardPeerState(peerName, other)); has != (other == state) {
					t.Errorf("the peer is %s, and has the state %s: %v", state, other, has)
				}
			}
		}
		meet := func(from netip.AddrPort) {
			t.Helper()
			if err := sim.Meet(peerPublic, from); err != nil {
				t.Fatal(err)
			}
		}
		state(keys.WireguardHandshake)
		meet(netip.MustParseAddrPort("10.9.0.77:1234"))
		state(keys.WireguardEstablished)
		a.stop()
		vpp := &simulated.VPP{TB: t, Sim: sim, Socket: socket}
		vpp.Counts()
		a = startAgent(t, socket)
		awaitReady(t, a)
		a.want(true, wireguardKey, wireguardLink, peerKey, peerValue(peerAt))
		expectOnlyReads(t, vpp)
		state(keys.WireguardEstablished)
		awaits(t, vpp, "show wireguard peer", "endpoint 10.9.0.77 port 1234")

		meet(netip.AddrPort{})
		state(keys.WireguardHandshake)
		a.want(true, wireguardKey, wireguardLink, peerKey, peerValue(peerAt)) // nobody is at the other address
		awaits(t, vpp, "show wireguard peer", "endpoint "+peerAt+" port 51820")
		const moved = "10.9.0.4"
		a.want(true, wireguardKey, wireguardLink, "config/vpp/wg/v1/peer/wg1/endpoint/"+moved+"/51820", peerValue(moved))
		awaits(t, vpp, "show wireguard peer", "endpoint "+moved+" port 51820")
		a.want(true)
		if text := sim.Show("show wireguard peer"); text != "" {
			t.Errorf("left behind:\n%s", text)
		}
		if _, has := a.sched.Status(keys.WireguardPeerState(peerName, keys.WireguardHandshake)); has {
			t.Error("a deleted peer has a state")
		}
	})
}
