package vpp_test

import (
	"fmt"
	"testing"

	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/proto/ligato/vpp/nat"
	"github.com/keyplane/keyplane/scheduler"
)

// BenchmarkDNATCold10k declares 10,000 static mappings to an agent on a VPP without any: as
// values of one mapping each, of a hundred each, and as one value.
func BenchmarkDNATCold10k(b *testing.B) {
	for _, values := range []int{10_000, 100, 1} {
		b.Run(fmt.Sprint(values, "-values"), func(b *testing.B) {
			race{values: mappings(values, 10_000/values)}.run(b)
		})
	}
}

// mappings returns NAT44 itself, and values of so many static mappings each.
func mappings(values, each int) []scheduler.Change {
	out := []scheduler.Change{scheduler.Want(keys.NAT44Global, &nat.Nat44Global{})}
	for v := range values {
		one := &nat.DNat44{Label: fmt.Sprint("dnat", v)}
		for m := range each {
			n := v*each + m
			one.StMappings = append(one.StMappings, &nat.DNat44_StaticMapping{
				ExternalIp: fmt.Sprintf("11.0.%d.%d", n>>8, n&255), ExternalPort: 80,
				LocalIps: []*nat.DNat44_StaticMapping_LocalIP{{LocalIp: fmt.Sprintf("10.0.%d.%d", n>>8, n&255), LocalPort: 8080}},
			})
		}
		out = append(out, scheduler.Want("config/vpp/nat/v2/dnat44/"+one.GetLabel(), one))
	}
	return out
}
