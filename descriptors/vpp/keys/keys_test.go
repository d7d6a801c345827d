package keys

import (
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/internal/testkit/draw"
)

// FuzzParse checks that what a parser accepts, its builder makes again.
func FuzzParse(f *testing.F) {
	for _, key := range []string{
		Address{Interface: "a/b", Source: Static, Addr: "10.0.0.1/24"}.Key(), Address{Interface: "a", Addr: "alloc:net"}.Key(),
		VRF{Interface: "a", ID: 5, IPv4: true}.Key(), VRF{Interface: "a", IPv4: true, IPv6: true}.Key(), VRF{Interface: "a", From: "b/c"}.Key(),
		Interface("a/b").HasAddress(), Interface("a").LinkState(true), Interface("a").LinkState(false), Interface("a/b").RxModes(), Interface("a/b").RxPlacement(7), "vpp/interface/a/rx-placement/queue/07",
		BondMember("a", "b/c"), BridgeMembers.Key("a", "b/c"), "vpp/interface//address/static/x", "vpp/interface/a/vrf/05/ip-version/v4",
		ACLInterface{"a", true, "b/c"}.Key(), "vpp/acl/a/interface/sideways/b", ABFMembers.Key(7, "a/b"), "vpp/abf/07/interface/a",
		SPDMembers.Key(7, "a/b"), "vpp/spd/07/interface/a", WireguardPeerState("a/b", WireguardDead), "vpp/wg/peer/a/state/b",
		NATInterface("a/feature/in", true), NATInterface("a", false), NATAddress("10.0.0.1", true), NATAddress("10.0.0.1/32", false),
		NATPool{VRF: 7, First: netip.MustParseAddr("10.0.0.1")}.Key(), "vpp/nat44/twiceNAT-pool/vrf/07/addresses/10.0.0.1-10.0.0.2",
	} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		for again := range parsed(key) {
			if again != key {
				t.Errorf("%q is made %q again", key, again)
			}
		}
	})
}

// parsed is the key as each builder makes it again whose parser accepts it.
func parsed(key string) map[string]bool {
	out := map[string]bool{}
	if a, ok := ParseAddress(key); ok {
		out[a.Key()] = true
	}
	if v, ok := ParseVRF(key); ok {
		out[v.Key()] = true
	}
	if name, ok := ParseHasAddress(key); ok {
		out[Interface(name).HasAddress()] = true
	}
	if name, up, ok := ParseLinkState(key); ok {
		out[Interface(name).LinkState(up)] = true
	}
	if name, ok := ParseRxModes(key); ok {
		out[Interface(name).RxModes()] = true
	}
	if name, queue, ok := ParseRxPlacement(key); ok {
		out[Interface(name).RxPlacement(queue)] = true
	}
	if bond, name, ok := ParseBondMember(key); ok {
		out[BondMember(bond, name)] = true
	}
	if bd, name, ok := BridgeMembers.Parse(key); ok {
		out[BridgeMembers.Key(bd, name)] = true
	}
	if a, ok := ParseACLInterface(key); ok {
		out[a.Key()] = true
	}
	if policy, name, ok := ABFMembers.Parse(key); ok {
		out[ABFMembers.Key(policy, name)] = true
	}
	if database, name, ok := SPDMembers.Parse(key); ok {
		out[SPDMembers.Key(database, name)] = true
	}
	if name, inside, ok := ParseNATInterface(key); ok {
		out[NATInterface(name, inside)] = true
	}
	if addr, isTwice, ok := ParseNATAddress(key); ok {
		out[NATAddress(addr, isTwice)] = true
	}
	if pool, ok := ParseNATPool(key); ok {
		out[pool.Key()] = true
	}
	if peer, state, ok := ParseWireguardPeerState(key); ok {
		out[WireguardPeerState(peer, state)] = true
	}
	return out
}

// TestNATPool asks pools for addresses.
func TestNATPool(t *testing.T) {
	addr := netip.MustParseAddr
	several := NATPool{Twice: true, First: addr("10.0.0.9"), Last: addr("10.0.0.11")}
	for text, want := range map[string]bool{"10.0.0.8": false, "10.0.0.9": true, "10.0.0.10": true, "10.0.0.11": true, "10.0.0.12": false} {
		if several.Has(addr(text)) != want || (NATPool{First: addr("10.0.0.10")}).Has(addr(text)) != (text == "10.0.0.10") {
			t.Errorf("%s is in one of them, or not; expected otherwise", text)
		}
	}
	if key := several.Key(); key != "vpp/nat44/twiceNAT-pool/vrf/0/addresses/10.0.0.9-10.0.0.11" {
		t.Errorf("the key is %s", key)
	}
}

// TestEachKeyHasOneParser has every sort of key read by its parser.
func TestEachKeyHasOneParser(t *testing.T) {
	for _, key := range []string{
		Address{Interface: "a/b", Source: Static, Addr: "10.0.0.1/24"}.Key(), VRF{Interface: "a", ID: 5, IPv6: true}.Key(),
		VRF{Interface: "a", From: "b"}.Key(), Interface("a").HasAddress(), Interface("a").LinkState(true), Interface("a").RxModes(), Interface("a").RxPlacement(7),
		BondMember("a", "b"), BridgeMembers.Key("a", "b/c"), ACLInterface{"a", true, "b/c"}.Key(), ACLInterface{ACL: "a/b", Interface: "c"}.Key(),
		ABFMembers.Key(7, "a/b"), SPDMembers.Key(7, "a/b"), WireguardPeerState("a/state/b", WireguardEstablished),
		NATInterface("a/b", true), NATInterface("a", false), NATAddress("10.0.0.1", true), NATAddress("10.0.0.1", false),
		NATPool{VRF: 7, First: netip.MustParseAddr("10.0.0.1"), Last: netip.MustParseAddr("10.0.0.2")}.Key(),
		NATPool{Twice: true, First: netip.MustParseAddr("10.0.0.1")}.Key(),
	} {
		if got := parsed(key); len(got) != 1 || !got[key] {
			t.Errorf("%s is read as %v", key, got)
		}
	}
}

// TestPartIn has names made of all that could be mistaken: either they are refused, or the
// keys of all parts are read back.
func TestPartIn(t *testing.T) {
	pieces := []string{"a", "vrf", "address", "link-state", "rx-placement", "queue", "rx-modes", "has-IP-address", "unnumbered", "dhcp-client", "dhcp-lease", "ip6nd", "interface", ""}
	draw.Check(t, func(t *rapid.T) {
		name := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 4).Draw(t, "pieces"), "/")
		if name == "" {
			return
		}
		if PartIn(name) == "" {
			a, okA := ParseAddress(Address{Interface: name, Source: Static, Addr: "10.0.0.1/24"}.Key())
			v, okV := ParseVRF(VRF{Interface: name, ID: 7, IPv4: true}.Key())
			l, _, okL := ParseLinkState(Interface(name).LinkState(true))
			p, _, okP := ParseRxPlacement(Interface(name).RxPlacement(3))
			if !okA || !okV || !okL || !okP || a.Interface != name || v.Interface != name || l != name || p != name {
				t.Errorf("%q: %v %v %q %q", name, a, v, l, p)
			}
		}
		if MembersIn(name) == "" {
			bd, member, ok := BridgeMembers.Parse(BridgeMembers.Key(name, "x/interface/y"))
			if !ok || bd != name || member != "x/interface/y" {
				t.Errorf("%q: %q %q", name, bd, member)
			}
		}
	})
}

// A name is clean if its key has it as it is written.
func TestIsClean(t *testing.T) {
	for name, clean := range map[string]bool{
		"a": true, "a/b": true, "...": true, ".a": true, "a b": true,
		"/a": false, "a/": false, "a//b": false, ".": false, "..": false, "a/./b": false, "a/../b": false, "../a": false, "/": false,
	} {
		if IsClean(name) != clean {
			t.Errorf("%q is clean: %t; expected %t", name, !clean, clean)
		}
	}
}
