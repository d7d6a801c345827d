package wireguard

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	vppwg "go.fd.io/govpp/binapi/wireguard"

	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/existing"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/proto/ligato/vpp/wireguard"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/conformance"
)

// releases are those that have the messages of peers as in 25.10.
func releases() []string {
	return slices.DeleteFunc(simulated.Releases(), func(release string) bool { return release == "22.02" })
}

// onVPP returns peers for a VPP with the WireGuard interfaces wg1 and wg2, and the loopback if1.
func onVPP(t *testing.T, release string) (*Peers, *simulated.VPP) {
	t.Helper()
	vpp := simulated.Start(t, release)
	c := vpp.Dial()
	links := existing.Loopbacks(vpp, c, "if1")
	for i, name := range []string{"wg1", "wg2"} {
		var r vppwg.WireguardInterfaceCreateReply
		vpp.Ask(c, &vppwg.WireguardInterfaceCreate{Interface: vppwg.WireguardInterface{
			UserInstance: all, PrivateKey: bytes.Repeat([]byte{byte(100 + i)}, keyBytes), PublicKey: make([]byte, keyBytes), SrcIP: vppwire.Address(peerOf(at(t, "wg1", 1, "")).endpoint.Addr()),
		}}, &r)
		links[name] = iface.Meta{Index: uint32(r.SwIfIndex), DevType: device}
	}
	return newPeers(Options{API: c, Interfaces: links}, func(...scheduler.Observed) {}), vpp
}

// public returns a public key in base64.
func public(number byte) string {
	return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{number}, keyBytes))
}

// at returns a peer on an interface; more replaces its endpoint and networks.
func at(t *testing.T, name string, number byte, more string) *wireguard.Peer {
	t.Helper()
	if more == "" {
		more = `endpoint: "10.0.0.2" port: 51820 allowed_ips: "10.1.0.0/16"`
	}
	return testkit.Parse[*wireguard.Peer](t, fmt.Sprintf(`wg_if_name: %q public_key: %q %s`, name, public(number), more))
}

func TestPeerConforms(t *testing.T) {
	const nets = `allowed_ips: "10.1.0.0/16" `
	change := func(name, from, to string, how conformance.How) conformance.Change[*wireguard.Peer] {
		return conformance.Change[*wireguard.Peer]{Name: name, Key: "config/vpp/wg/v1/peer/x", From: at(t, "wg1", 1, from), To: at(t, "wg1", 1, to), How: how}
	}
	for _, release := range releases() {
		t.Run(release, func(t *testing.T) {
			conformance.Run(t, conformance.Suite[*wireguard.Peer, Meta]{
				New: func(t *testing.T) scheduler.Descriptor[*wireguard.Peer, Meta] {
					p, _ := onVPP(t, release)
					return p.descriptor()
				},
				SameMeta: func(Meta, Meta) bool { return true }, // the order of creation gives the numbers
				Values: []scheduler.Desired[*wireguard.Peer]{
					{Value: at(t, "wg1", 1, "")},
					{Value: at(t, "wg2", 2, `endpoint: "FD00::2" port: 65535 persistent_keepalive: 65535 allowed_ips: "fd00::/8" allowed_ips: "0.0.0.0/0"`)},
					{Value: at(t, "wg1", 3, `endpoint: "::2" `+nets)},
				},
				Changes: []conformance.Change[*wireguard.Peer]{
					change("keepalive", `endpoint: "10.0.0.2" `+nets, `endpoint: "10.0.0.2" persistent_keepalive: 9 `+nets, conformance.Recreated),
					change("networks", `endpoint: "10.0.0.2" `+nets, `endpoint: "10.0.0.2" allowed_ips: "10.3.0.0/16" `+nets, conformance.Recreated),
					change("notation", `endpoint: "fd00::2" allowed_ips: "fd01::/16" `+nets, `endpoint: "FD00:0::2" `+nets+nets+`allowed_ips: "FD01::1/16"`, conformance.Unchanged),
				},
				Invalid: []conformance.Invalid[*wireguard.Peer]{
					{Name: "nothing", Value: &wireguard.Peer{}, Fields: []string{"public_key", "wg_if_name", "endpoint", "allowed_ips"}},
					{Name: "numbers", Value: at(t, "wg1", 1, `endpoint: "10.0.0.2" port: 65536 persistent_keepalive: 65536 `+nets), Fields: []string{"port", "persistent_keepalive"}},
					{Name: "addresses", Value: at(t, "wg1", 1, `endpoint: "host" allowed_ips: "x"`), Fields: []string{"endpoint", "allowed_ips[0]"}},
					{Name: "short key", Value: testkit.Parse[*wireguard.Peer](t, `wg_if_name: "a" public_key: "AAAA" endpoint: "10.0.0.1" `+nets), Fields: []string{"public_key"}},
					{Name: "many networks", Value: at(t, "wg1", 1, `endpoint: "10.0.0.2" `+strings.Repeat(nets, 256)), Fields: []string{"allowed_ips"}},
				},
			})
		})
	}
}

// TestPeerUnimplemented has a VPP without the messages: nothing is found, and the reason is named.
func TestPeerUnimplemented(t *testing.T) {
	if simulated.Newest() == simulated.Real {
		t.Skip("SKIPPED: a real VPP has the messages")
	}
	p, _ := onVPP(t, "22.02")
	if _, err := p.create(t.Context(), "", at(t, "wg1", 1, "")); !errors.Is(err, scheduler.ErrUnimplemented) {
		t.Errorf("the error is %v", err)
	}
	for f, err := range conformance.Taken(p.retrieve(t.Context(), nil)) {
		t.Errorf("found %v, %v", f, err)
	}
}

// TestPeerOfAnotherKind declares a peer on a loopback and on an interface that does not exist.
func TestPeerOfAnotherKind(t *testing.T) {
	p, _ := onVPP(t, simulated.Newest())
	_, err := p.create(t.Context(), "", at(t, "if1", 1, ""))
	if err == nil || !strings.Contains(err.Error(), "expected one of type WIREGUARD_TUNNEL") {
		t.Errorf("the error is %v", err)
	}
	if _, err := p.create(t.Context(), "", at(t, "wg9", 1, "")); !errors.Is(err, iface.ErrNotFound) {
		t.Errorf("the error is %v", err)
	}
}

// TestPeerOfTheSameNumber deletes a peer whose number belongs to another one meanwhile.
func TestPeerOfTheSameNumber(t *testing.T) {
	p, vpp := onVPP(t, simulated.Newest())
	a, b := at(t, "wg1", 1, ""), at(t, "wg1", 2, "")
	meta, err := p.create(t.Context(), "a", a)
	if err != nil {
		t.Fatal(err)
	}
	vpp.Ask(vpp.Dial(), &vppwg.WireguardPeerRemove{PeerIndex: meta.Index}, &vppwg.WireguardPeerRemoveReply{})
	if other, err := p.create(t.Context(), "b", b); err != nil || other != meta {
		t.Fatal(other, err)
	}
	if err := p.delete(t.Context(), "a", a, meta); err != nil {
		t.Error(err)
	}
	if left, err := p.dump(t.Context(), all); err != nil || len(left) != 1 {
		t.Errorf("peers are %v, %v", left, err)
	}
}
