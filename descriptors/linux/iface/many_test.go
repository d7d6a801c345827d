package iface

import (
	"fmt"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
)

// addressed is an interface with n addresses, which format makes.
func addressed(n int, format string) *interfaces.Interface {
	v := &interfaces.Interface{Name: "a", Type: interfaces.Interface_DUMMY}
	for i := range n {
		v.IpAddresses = append(v.IpAddresses, fmt.Sprintf(format, i>>16, i>>8&255, i&255))
	}
	return v
}

func TestManyBadAddresses(t *testing.T) {
	text := (&handler{}).validate("", addressed(100_000, "bad %d %d %d")).Error()
	if lines := strings.Split(text, "\n"); len(lines) != 9 || lines[8] != "and 99,992 more" {
		t.Errorf("it has %d lines:\n%.2000s", len(lines), text)
	}
}

// What one address costs must not depend on how many there are.
func BenchmarkValidateAddresses(b *testing.B) {
	for name, format := range map[string]string{"bad": "bad %d %d %d", "good": "10.%d.%d.%d/32"} {
		for _, n := range []int{1_000, 10_000, 100_000} {
			v := addressed(n, format)
			b.Run(fmt.Sprint(name, "/", n), func(b *testing.B) {
				for b.Loop() {
					_ = (&handler{}).validate("", v)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/address")
			})
		}
	}
}
