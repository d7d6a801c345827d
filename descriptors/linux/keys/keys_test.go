package keys_test

import (
	"testing"

	"github.com/keyplane/keyplane/descriptors/linux/keys"
)

func TestSpelling(t *testing.T) {
	addr := func(iface string, source keys.Source, addr string) string {
		return keys.Address{Interface: iface, Source: source, Addr: addr}.Key()
	}
	tests := []struct{ got, want string }{
		{keys.HostName("eth0"), "linux/interface/host-name/eth0"},
		{keys.HostName(""), "linux/interface/host-name/<invalid>"},
		{keys.HostAddress("eth0", "10.0.0.1/24"), "linux/interface/host-name/eth0/address/10.0.0.1/24"},
		{keys.HostAddress("", ""), "linux/interface/host-name/<invalid>/address/<invalid>"},
		{keys.HostVRF("eth0", "blue"), "linux/interface/host-name/eth0/vrf-host-name/blue"},
		{keys.HostVRFs("eth0"), "linux/interface/host-name/eth0/vrf-host-name/"},
		{keys.State("veth1", true), "linux/interface/state/veth1/UP"},
		{keys.State("veth1", false), "linux/interface/state/veth1/DOWN"},
		{addr("veth1", keys.Static, "10.0.0.1/24"), "linux/interface/veth1/address/static/10.0.0.1/24"},
		{addr("veth1", "", "fd00::1/64"), "linux/interface/veth1/address/undefined/fd00::1/64"},
		{addr("veth1", keys.Static, "alloc:net1"), "linux/interface/veth1/address/alloc_ref/alloc:net1"},
		{addr("", keys.Existing, ""), "linux/interface/<invalid>/address/existing/<invalid>"},
		{keys.VRF("veth1", "blue"), "linux/interface/veth1/vrf/blue"},
		{keys.VRF("", ""), "linux/interface/<invalid>/vrf/<invalid>"},
		{keys.Microservice("m1"), "linux/microservice/m1"},
		{keys.Namespace("red"), "linux/netns/red"},
		{keys.LinkLocalRoute("veth1", "10.0.0.0/8"), "linux/link-local-route/veth1/dest-address/10.0.0.0/8"},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("got %s, want %s", tt.got, tt.want)
		}
	}
}

func TestParseAddress(t *testing.T) {
	tests := []struct {
		key  string
		want keys.Address
		ok   bool
	}{
		{"linux/interface/veth1/address/static/10.0.0.1/24", keys.Address{"veth1", keys.Static, "10.0.0.1/24"}, true},
		{"linux/interface/a/b/address/existing/fd00::1/64", keys.Address{"a/b", keys.Existing, "fd00::1/64"}, true},
		{"linux/interface/veth1/address/alloc_ref/alloc:net1", keys.Address{"veth1", keys.AllocRef, "alloc:net1"}, true},
		{"linux/interface/<invalid>/address/static/<invalid>", keys.Address{"<invalid>", keys.Static, "<invalid>"}, true},
		{"linux/interface/veth1/address/static/alloc:net1", keys.Address{}, false},
		{"linux/interface/veth1/address/somehow/10.0.0.1/24", keys.Address{}, false},
		{"linux/interface/vrf/address/static/10.0.0.1/24", keys.Address{}, false},
		{"linux/interface/state/address/static/10.0.0.1/24", keys.Address{}, false},
		{"linux/interface/host-name/eth0/address/10.0.0.1/24", keys.Address{}, false},
		{"linux/interface/veth1/vrf/blue", keys.Address{}, false},
		{"vpp/interface/veth1/address/static/10.0.0.1/24", keys.Address{}, false},
	}
	for _, tt := range tests {
		got, ok := keys.ParseAddress(tt.key)
		if got != tt.want || ok != tt.ok {
			t.Errorf("%s: got %+v %v, want %+v %v", tt.key, got, ok, tt.want, tt.ok)
		}
	}
}

func TestParseOthers(t *testing.T) {
	if iface, vrf, ok := keys.ParseVRF("linux/interface/a/b/vrf/blue"); iface != "a/b" || vrf != "blue" || !ok {
		t.Errorf("VRF: %q %q %v", iface, vrf, ok)
	}
	if _, _, ok := keys.ParseVRF("linux/interface/address/vrf/blue"); ok {
		t.Error("an element called address must not parse as VRF key")
	}
	if host, addr, ok := keys.ParseHostAddress("linux/interface/host-name/eth0/address/::1/128"); host != "eth0" || addr != "::1/128" || !ok {
		t.Errorf("host address: %q %q %v", host, addr, ok)
	}
	if host, vrf, ok := keys.ParseHostVRF("linux/interface/host-name/eth0/vrf-host-name/blue"); host != "eth0" || vrf != "blue" || !ok {
		t.Errorf("host VRF: %q %q %v", host, vrf, ok)
	}
	if iface, up, ok := keys.ParseState("linux/interface/state/veth1/DOWN"); iface != "veth1" || up || !ok {
		t.Errorf("state: %q %v %v", iface, up, ok)
	}
	if _, _, ok := keys.ParseState("linux/interface/state/a/b/UP"); ok {
		t.Error("the state of a name with a slash must not parse")
	}
	if vrf, ok := keys.ParseVRFRules("linux/vrf-rules/a/b"); vrf != "a/b" || !ok {
		t.Errorf("rules of a VRF: %q %v", vrf, ok)
	}
	if iface, dst, ok := keys.ParseLinkLocalRoute("linux/link-local-route/a/dest-address/alloc:n/i"); iface != "a" || dst != "alloc:n/i" || !ok {
		t.Errorf("link-local route: %q %q %v", iface, dst, ok)
	}
}

// FuzzParse holds that a key that parses is the key its parts make.
func FuzzParse(f *testing.F) {
	f.Add("linux/interface/veth1/address/static/10.0.0.1/24")
	f.Add("linux/interface/a/b/vrf/blue")
	f.Add("linux/interface/host-name/eth0/address/::1/128")
	f.Add("linux/interface/host-name/eth0/vrf-host-name/blue")
	f.Add("linux/interface/state/veth1/UP")
	f.Add("linux/vrf-rules/blue")
	f.Add("linux/link-local-route/veth1/dest-address/alloc:net/if")
	f.Fuzz(func(t *testing.T, key string) {
		again := []string{}
		if a, ok := keys.ParseAddress(key); ok {
			again = append(again, a.Key())
		}
		if iface, vrf, ok := keys.ParseVRF(key); ok {
			again = append(again, keys.VRF(iface, vrf))
		}
		if len(again) > 1 {
			t.Fatalf("%q is both an address and a VRF", key)
		}
		if host, addr, ok := keys.ParseHostAddress(key); ok {
			again = append(again, keys.HostAddress(host, addr))
		}
		if host, vrf, ok := keys.ParseHostVRF(key); ok {
			again = append(again, keys.HostVRF(host, vrf))
		}
		if iface, up, ok := keys.ParseState(key); ok {
			again = append(again, keys.State(iface, up))
		}
		if iface, dst, ok := keys.ParseLinkLocalRoute(key); ok {
			again = append(again, keys.LinkLocalRoute(iface, dst))
		}
		if vrf, ok := keys.ParseVRFRules(key); ok {
			again = append(again, keys.VRFRulesOf(vrf))
		}
		for _, made := range again {
			if made != key {
				t.Fatalf("%q parses, but makes %q", key, made)
			}
		}
	})
}
