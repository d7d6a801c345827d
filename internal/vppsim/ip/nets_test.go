package ip

import (
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/internal/testkit/draw"
	"github.com/keyplane/keyplane/internal/vppsim/core"
)

// The binary search must refuse the same addresses as a comparison with every address.
func TestAddressOverlapMatchesFullComparison(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		p := &IP{networks: map[Key]networks{}}
		interfaces := []*core.Interface{{}, {Index: 1}, {Index: 2}}
		refused := func(i *core.Interface, prefix netip.Prefix) bool {
			return slices.ContainsFunc(interfaces, func(other *core.Interface) bool {
				return slices.ContainsFunc(other.Addresses, func(a netip.Prefix) bool {
					return a.Overlaps(prefix) && (other != i || a.Bits() != prefix.Bits() || a.Addr() == prefix.Addr())
				})
			})
		}
		for range 40 {
			i := rapid.SampledFrom(interfaces).Draw(t, "interface")
			if len(i.Addresses) > 0 && rapid.Bool().Draw(t, "delete") {
				p.DeleteAddress(i, rapid.SampledFrom(i.Addresses).Draw(t, "address").Addr())
				continue
			}
			last := rapid.Byte().Draw(t, "last")
			prefix := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, last}), rapid.IntRange(24, 32).Draw(t, "bits"))
			want := refused(i, prefix)
			if got := p.AddAddress(i, prefix) != core.OK; got != want {
				t.Fatalf("%s on %d refused: %v, want %v", prefix, i.Index, got, want)
			}
		}
	})
}
