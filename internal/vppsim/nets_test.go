package vppsim

import (
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// An address is refused just if it overlaps with one that is there, and is not another
// one of the same network of the same interface.
func TestNetworksAsOneLooksAtAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{nets: map[tableKey]nets{}, unnumbered: map[uint32]uint32{}}
		interfaces := []*iface{{}, {index: 1}, {index: 2}}
		refused := func(i *iface, p netip.Prefix) bool {
			return slices.ContainsFunc(interfaces, func(other *iface) bool {
				return slices.ContainsFunc(other.addresses, func(a netip.Prefix) bool {
					return a.Overlaps(p) && (other != i || a.Bits() != p.Bits() || a.Addr() == p.Addr())
				})
			})
		}
		for range 40 {
			i := rapid.SampledFrom(interfaces).Draw(t, "interface")
			if len(i.addresses) > 0 && rapid.Bool().Draw(t, "delete") {
				w.deleteAddress(i, rapid.SampledFrom(i.addresses).Draw(t, "address").Addr())
				continue
			}
			last := rapid.Byte().Draw(t, "last")
			p := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, last}), rapid.IntRange(24, 32).Draw(t, "bits"))
			want := refused(i, p)
			if got := w.addAddress(i, p) != ok; got != want {
				t.Fatalf("%s on %d refused: %v, want %v", p, i.index, got, want)
			}
		}
	})
}
