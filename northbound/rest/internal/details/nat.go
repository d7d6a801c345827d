//nolint:staticcheck // The lists in the value of NAT44 are deprecated, and still work.
package details

import (
	"iter"
	"net/http"

	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
	"github.com/keyplane/keyplane/proto/ligato/vpp/nat"
)

// natInterfaces answers all interfaces of NAT44: VPP does not tell whether a value of its own
// or the value of NAT44 names one. The latter has an entry for each side.
func natInterfaces(w http.ResponseWriter, items iter.Seq[Item]) error {
	out, byName := []any{}, map[string]*nat.Nat44Interface{}
	for i := range items {
		global, ok := i.Value.(*nat.Nat44Global)
		if !ok {
			out = append(out, i.Value)
			continue
		}
		for _, listed := range global.GetNatInterfaces() {
			v := byName[listed.GetName()]
			if v == nil {
				v = &nat.Nat44Interface{Name: listed.GetName()}
				byName[v.Name] = v
				out = append(out, v)
			}
			v.NatInside = v.NatInside || listed.GetIsInside()
			v.NatOutside = v.NatOutside || !listed.GetIsInside()
			v.OutputFeature = v.OutputFeature || listed.GetOutputFeature()
		}
	}
	return reply.JSON(w, out)
}

// natPools answers all addresses of NAT44. Each one in the value of NAT44 is a pool.
func natPools(w http.ResponseWriter, items iter.Seq[Item]) error {
	return reply.Array(w, func(yield func(any) bool) {
		for i := range items {
			global, ok := i.Value.(*nat.Nat44Global)
			if !ok && !yield(i.Value) {
				return
			}
			for _, a := range global.GetAddressPool() {
				if !yield(&nat.Nat44AddressPool{VrfId: a.GetVrfId(), FirstIp: a.GetAddress(), TwiceNat: a.GetTwiceNat()}) {
					return
				}
			}
		}
	})
}
