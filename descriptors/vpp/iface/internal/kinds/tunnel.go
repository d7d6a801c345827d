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

// end checks an end of a tunnel.
func (f *Findings) end(field, text string) netip.Addr {
	a, err := netip.ParseAddr(text)
	if err != nil || a.Zone() != "" {
		f.Add(field, text, `an address, such as "10.0.0.1" or "fd00::1"`)
	}
	return a
}

// own checks the end of a tunnel that is here.
func (f *Findings) own(field, text string) netip.Addr {
	a := f.end(field, text)
	if a.IsMulticast() {
		f.Add(field, text, "an address of this host, not of a group")
	}
	return a
}

// ends checks both ends: of one IP version, and different.
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

// tunnelVersions is of which IP version a tunnel between these ends is in its VRF.
func tunnelVersions(src, dst string) (ipv4, ipv6 bool) {
	a, _ := netip.ParseAddr(src)
	b, _ := netip.ParseAddr(dst)
	ipv6 = !a.Is4() && !b.Is4()
	return !ipv6, ipv6
}

// tableDependency is on the table of a tunnel, unless that is the one that is always there.
func tableDependency(label string, id uint32, ipv6 bool) []scheduler.Dependency {
	if id == 0 {
		return nil
	}
	return []scheduler.Dependency{{Label: label, Key: keys.VRFTable(id, ipv6)}}
}

// sameEnd compares addresses, however they are spelled.
func sameEnd(a, b string) bool {
	p, errP := netip.ParseAddr(a)
	q, errQ := netip.ParseAddr(b)
	return a == b || errP == nil && errQ == nil && p == q
}

func wireAddress(text string) ip_types.Address {
	a, err := netip.ParseAddr(text)
	if err != nil {
		return ip_types.Address{}
	}
	return vppwire.Address(a)
}

// addressText is an address of a message as the value spells it.
func addressText(a ip_types.Address, wanted string) string {
	if text := vppwire.Addr(a).String(); !sameEnd(text, wanted) {
		return text
	}
	return wanted
}

// ignoreMissingTunnel is err, unless it says that what is to be deleted is not there.
func ignoreMissingTunnel(err error) error {
	if errors.Is(err, api.NO_SUCH_ENTRY) {
		return nil
	}
	return err
}
