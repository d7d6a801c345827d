package iface

import (
	"testing"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/conformance"
)

// TestBondedHostLinkStays has an AF_PACKET interface, whose MAC address is one of its creation, in a
// bond with another address: it is in sync, and not created again.
func TestBondedHostLinkStays(t *testing.T) {
	for _, release := range simulated.Releases() {
		t.Run(release, func(t *testing.T) {
			h, _ := onVPP(t, release)
			v := testkit.Parse[*interfaces.Interface](t, `name: "host1" type: AF_PACKET phys_address: "02:00:00:00:00:01" afpacket { host_if_name: "lo" }`)
			bond := testkit.Parse[*interfaces.Interface](t, `name: "bond1" type: BOND_INTERFACE phys_address: "02:00:00:00:00:02" bond { mode: XOR bonded_interfaces { name: "host1" } }`)
			for _, one := range []*interfaces.Interface{v, bond} {
				meta, err := h.create(t.Context(), "", one)
				if err != nil {
					t.Fatal(err)
				}
				h.index.(links)[one.GetName()] = meta
			}
			if _, err := h.joinBond(t.Context(), keys.BondMember("bond1", "host1"), bond.GetBond().GetBondedInterfaces()[0]); err != nil {
				t.Fatal(err)
			}
			found := 0
			for f, err := range conformance.Taken(h.retrieve(t.Context(), []scheduler.Desired[*interfaces.Interface]{{Value: v}, {Value: bond}})) {
				if err != nil {
					t.Fatal(err)
				}
				for _, want := range []*interfaces.Interface{v, bond} {
					if want.GetName() != f.Value.GetName() {
						continue
					}
					found++
					if !h.equivalent("", f.Value, want) {
						t.Errorf("VPP has %v, want %v", f.Value, want)
					}
				}
			}
			if found != 2 {
				t.Errorf("found %d of 2 interfaces", found)
			}
		})
	}
}
