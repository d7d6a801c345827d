// Package spelling reads addresses in a looser spelling than a model requires.
//
//	addr, changed := spelling.WithLength("10.0.0.1")      // 10.0.0.1/32
//	addr, changed := spelling.WithoutLength("10.0.0.1/24") // 10.0.0.1
//
// Text that is no address, such as a reference, is returned unchanged. The package has no
// state.
package spelling

import (
	"net/netip"
	"strings"

	"github.com/keyplane/keyplane/models"
)

// WithLength adds the prefix length of a single host to an address that has none.
func WithLength(text string) (out string, changed bool) {
	if strings.Contains(text, "/") {
		return text, false
	}
	a, err := netip.ParseAddr(text)
	if err != nil || a.Zone() != "" {
		return text, false
	}
	if a.Is4() {
		return text + "/32", true
	}
	return text + "/128", true
}

// WithoutLength removes the prefix length of an address.
func WithoutLength(text string) (out string, changed bool) {
	addr, _, cut := strings.Cut(text, "/")
	if !cut {
		return text, false
	}
	if _, err := netip.ParsePrefix(text); err != nil {
		return text, false
	}
	return addr, true
}

// Interface returns the addresses of an interface, each with a prefix length and in the spelling of RFC 5952. If
// all of them have both, it returns the slice itself.
func Interface(addrs []string) (out []string, changed bool) {
	for i, addr := range addrs {
		full, _ := WithLength(addr)
		if p, err := netip.ParsePrefix(full); err == nil {
			full = p.String()
		}
		if full != addr && !changed {
			out, changed = append(out, addrs[:i]...), true
		}
		if changed {
			out = append(out, full)
		}
	}
	if !changed {
		return addrs, false
	}
	return out, true
}

// Host removes the prefix length from the address of one host, such as a gateway, in
// place. It returns a warning if there was one.
func Host(field string, addr *string) (warnings []string) {
	host, cut := WithoutLength(*addr)
	if !cut {
		return nil
	}
	length := (*addr)[len(host):]
	*addr = host
	return []string{models.Ignored(field, length, "%s is the address of one host, without prefix length", host)}
}

// HasLength reports whether Host would change the address.
func HasLength(addr string) bool { _, cut := WithoutLength(addr); return cut }

// Canonical returns an address in the spelling of RFC 5952, and other text unchanged.
func Canonical(text string) string {
	if a, err := netip.ParseAddr(text); err == nil {
		return a.String()
	}
	return text
}
