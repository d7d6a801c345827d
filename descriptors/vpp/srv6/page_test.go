package srv6

import (
	"net/netip"
	"testing"
)

// Whatever VPP shows before it, a SID of the usual form is found with its function, and there are no more SIDs than lines.
func FuzzPage(f *testing.F) {
	f.Add("SRv6 - My LocalSID Table:\n=========================\n\tAddress: \tfd00::1/128\n\tBehavior: \tDX4 (Endpoint with decapsulation and IPv4 cross-connect)\n\tIface:  \tloop0\n\tNext-hop: \t10.0.0.1\n")
	f.Add("\tAddress: \tfd00::2\n\tBehavior: \tEnd.AD\n\tOutgoing iface: \ttap0\n\tIncoming iface: \ttap1\n")
	f.Add("Address: \nBehavior: (\n: :\nAddress: x\nNext-hop: x\n")
	f.Fuzz(func(t *testing.T, page string) {
		if all := parseSIDs(page); len(all) > len(page) {
			t.Errorf("%d SIDs in %q", len(all), page)
		}
		known := netip.MustParseAddr("fd00::ffff")
		all := parseSIDs(page + "\n\tAddress: \tfd00::ffff/128\n\tBehavior: \tDT6 (Endpoint)\n")
		if all[known].function != "DT6" || all[known].behavior() != behaviorDT6 {
			t.Errorf("%+v after %q", all[known], page)
		}
	})
}
