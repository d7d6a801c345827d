package iface

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/internal/testkit/draw"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
)

// TestRivalsLikeEachWithEach compares rivalsOf with the plain way: each prefix with each before it.
func TestRivalsLikeEachWithEach(t *testing.T) {
	ipv4 := rapid.Custom(func(t *rapid.T) netip.Prefix {
		b := rapid.SampledFrom([]byte{0, 1, 64, 128, 129, 192})
		return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, b.Draw(t, "b"), b.Draw(t, "c"), 1}), rapid.IntRange(6, 32).Draw(t, "bits"))
	})
	ipv6 := rapid.Custom(func(t *rapid.T) netip.Prefix {
		return netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfd, 15: rapid.Byte().Draw(t, "b")}), rapid.IntRange(118, 128).Draw(t, "bits"))
	})
	mapped := rapid.Custom(func(t *rapid.T) netip.Prefix {
		return netip.PrefixFrom(netip.AddrFrom16(netip.AddrFrom4([4]byte{10, 0, 0, rapid.Byte().Draw(t, "b")}).As16()), rapid.IntRange(100, 128).Draw(t, "bits"))
	})
	draw.Check(t, func(t *rapid.T) {
		all := rapid.SliceOf(rapid.OneOf(ipv4, ipv6, mapped, rapid.Just(netip.Prefix{}))).Draw(t, "all")
		got := conflictsOf(all)
		for i, p := range all {
			want, has := 0, false
			for j := 0; j < i && !has && p.IsValid(); j++ {
				q := all[j]
				if has = p == q || q.IsValid() && p.Overlaps(q) && p.Masked() != q.Masked(); has {
					want = j
				}
			}
			if other, is := got[i]; is != has || other != want {
				t.Fatalf("%v[%d]: other %d, %v; want %d, %v", all, i, other, is, want, has)
			}
		}
	})
}

// badAddresses are n texts that are no addresses.
func badAddresses(n int) *interfaces.Interface {
	v := &interfaces.Interface{Name: "a", Type: interfaces.Interface_SOFTWARE_LOOPBACK}
	for i := range n {
		v.IpAddresses = append(v.IpAddresses, fmt.Sprint("bad", i))
	}
	return v
}

func TestManyBadAddresses(t *testing.T) {
	h := newHandler(Options{}, nil)
	text := h.validate("", badAddresses(100_000)).Error()
	if lines := strings.Split(text, "\n"); len(lines) != 9 || lines[8] != "and 99,992 more" {
		t.Errorf("it has %d lines:\n%.2000s", len(lines), text)
	}
}

// What one address costs must not depend on how many there are: ns/op divided by the number.
func BenchmarkValidateAddresses(b *testing.B) {
	h := newHandler(Options{}, nil)
	for _, n := range []int{1_000, 10_000, 100_000} {
		apart := &interfaces.Interface{Name: "a", Type: interfaces.Interface_SOFTWARE_LOOPBACK}
		for i := range n {
			apart.IpAddresses = append(apart.IpAddresses, fmt.Sprintf("10.%d.%d.%d/32", i>>16, i>>8&255, i&255))
		}
		for name, v := range map[string]*interfaces.Interface{"bad": badAddresses(n), "good": apart} {
			b.Run(fmt.Sprint(name, "/", n), func(b *testing.B) {
				for b.Loop() {
					_ = h.validate("", v)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/address")
			})
		}
	}
}
