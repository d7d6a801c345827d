package kinds

import (
	"errors"
	"net/netip"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ip_types"

	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/scheduler"
)

// end checks one end of a tunnel. A zone, as in fe80::1%eth0, has no place in VPP's
// messages.
func (f *Findings) end(field, text string) netip.Addr {
	a, err := netip.ParseAddr(text)
	if err != nil || a.Zone() != "" {
		f.Add(field, text, `an address, such as "10.0.0.1" or "fd00::1"`)
	}
	return a
}

// own checks the local end of a tunnel.
func (f *Findings) own(field, text string) netip.Addr {
	a := f.end(field, text)
	if a.IsMulticast() {
		f.Add(field, text, "an address of this host, not of a group")
	}
	return a
}

// ends checks both ends: they are different, and of one IP version.
func (f *Findings) ends(link, srcField, src, dstField, dst string) {
	a, b := f.own(link+"."+srcField, src), f.end(link+"."+dstField, dst)
	switch {
	case !a.IsValid() || !b.IsValid():
	case a == b:
		f.Add(link+"."+dstField, dst, "another address than %s", srcField)
	case a.Is4() != b.Is4():
		f.Add(link+"."+dstField, dst, "an address of the same IP version as %s", srcField)
	}
}

// tunnelVersions returns the IP version of a tunnel between these ends. If there is no remote end, as of a multipoint tunnel, the local one decides.
func tunnelVersions(src, dst string) (ipv4, ipv6 bool) {
	a, _ := netip.ParseAddr(src)
	b, _ := netip.ParseAddr(dst)
	ipv6 = !a.Is4() && !b.Is4()
	return !ipv6, ipv6
}

// tableDependency requires the VRF table of a tunnel. Table 0 always exists.
func tableDependency(label string, id uint32, ipv6 bool) []scheduler.Dependency {
	if id == 0 {
		return nil
	}
	return []scheduler.Dependency{{Label: label, Key: keys.VRFTable(id, ipv6)}}
}

// sameEnd compares addresses in any notation.
func sameEnd(a, b string) bool {
	p, errP := netip.ParseAddr(a)
	q, errQ := netip.ParseAddr(b)
	return a == b || errP == nil && errQ == nil && p == q
}

// wireAddress converts an address; the zero address stands for none.
func wireAddress(text string) ip_types.Address {
	a, err := netip.ParseAddr(text)
	if err != nil {
		return ip_types.Address{}
	}
	return vppwire.Address(a)
}

// addressText returns an address in the notation of the desired value, if it is the same.
func addressText(a ip_types.Address, wanted string) string {
	if text := vppwire.Addr(a).String(); !sameEnd(text, wanted) {
		return text
	}
	return wanted
}

// ignoreMissingTunnel returns err unless it means that the tunnel does not exist.
func ignoreMissingTunnel(err error) error {
	if errors.Is(err, api.NO_SUCH_ENTRY) {
		return nil
	}
	return err
}
