package agent

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/proto/ligato/linux/l3"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler/inspect"
)

// A property, and whatever a value depends on, belongs to a descriptor. Otherwise a key that nobody could read would
// count as missing, and what depends on it would be withdrawn. This holds for the samples of all models, and for what is
// only observed.
func TestWhatIsUnknownHasADescriptor(t *testing.T) {
	s := describedScheduler(t)
	checked := map[string]bool{} // names of descriptors with properties
	check := func(key string, v proto.Message) {
		parts := inspect.Message(s, key, v)
		for _, derived := range parts.Derived {
			if inspect.Message(s, derived, nil).Descriptor != "" {
				continue
			}
			checked[parts.Descriptor] = true
			if of := inspect.KindOf(s, derived); of != parts.Descriptor {
				t.Errorf("%s derives the property %s of the descriptor %q; expected its prefix in Properties", parts.Descriptor, derived, of)
			}
			// A dependency on any key with a prefix asks all descriptors that may have one.
			for end := range derived {
				if derived[end] == '/' && !slices.Contains(inspect.KindsUnder(s, derived[:end+1]), parts.Descriptor) {
					t.Errorf("%s derives the property %s, and may have no key with the prefix %s", parts.Descriptor, derived, derived[:end+1])
				}
			}
		}
		for _, d := range parts.Dependencies {
			keys := d.Keys
			if d.Key != "" {
				keys = append(keys, d.Key)
			}
			for _, key := range keys {
				if inspect.KindOf(s, key) == "" {
					t.Errorf("%s: the dependency %s has the key %s, which no descriptor has", parts.Descriptor, d.Label, key)
				}
			}
			for _, prefix := range d.Prefixes {
				if len(inspect.KindsUnder(s, prefix)) == 0 {
					t.Errorf("%s: the dependency %s has the prefix %s, which no descriptor has", parts.Descriptor, d.Label, prefix)
				}
			}
		}
	}
	for _, one := range allSamples(t) {
		check(one.key, one.value)
	}
	for _, d := range inspect.Descriptors(s) {
		switch d.Name {
		case "vpp-dhcp-lease":
			check(d.Prefix+"eth0", &interfaces.DHCPLease{InterfaceName: "eth0", HostIpAddress: "10.0.0.9/24"})
		case "linux-route":
			check(d.Prefix+"10.1.0.0/16/eth0", &l3.Route{OutgoingInterface: "eth0", DstNetwork: "10.1.0.0/16", Scope: l3.Route_LINK})
		}
	}
	for _, name := range []string{"linux-interface", "linux-route", "vpp-nat44-global", "vpp-nat44-address-pool"} {
		if !checked[name] {
			t.Errorf("no sample has a property of %s; with properties there are those of %v", name, checked)
		}
	}
}
