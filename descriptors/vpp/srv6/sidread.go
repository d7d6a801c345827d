package srv6

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/sr"
	"go.fd.io/govpp/binapi/sr_types"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/proto/ligato/vpp/srv6"
)

// readSIDs returns the SIDs with functions that the model has. Micro SIDs and those of other
// plugins are somebody else's.
func (h *handler) readSIDs(ctx context.Context, _ bool) ([]*srv6.LocalSID, error) {
	all, err := conn.Dump[sr.SrLocalsidsDetails](ctx, h.API, &sr.SrLocalsidsDump{})
	if err != nil {
		return nil, err
	}
	var shown map[netip.Addr]shownSID
	if slices.ContainsFunc(all, isUntold) {
		text, err := h.page(ctx, "show sr localsids")
		if err != nil {
			return nil, err
		}
		shown = parseSIDs(text)
	}
	names := h.Interfaces.Names()
	seen := map[netip.Addr]bool{}
	var out []*srv6.LocalSID
	for _, d := range all {
		address := netip.AddrFrom16(d.Addr)
		f := h.functionIn(d, names, shown[address])
		if f.behavior == 0 || seen[address] {
			continue
		}
		seen[address] = true
		v := &srv6.LocalSID{Sid: address.String(), InstallationVrfId: d.FibTable}
		f.set(v)
		out = append(out, v)
	}
	return out, nil
}

// isUntold reports whether the details of a SID lack its function (VPP 22.02), or the
// parameters of a function of a plugin.
func isUntold(d sr.SrLocalsidsDetails) bool {
	return d.Behavior == 0 || d.Behavior > sr_types.SR_BEHAVIOR_API_UA
}

// functionIn returns the function of a SID that VPP has. Its behavior is 0 if the model does
// not have it.
func (h *handler) functionIn(d sr.SrLocalsidsDetails, names map[uint32]string, shown shownSID) function {
	f := function{behavior: d.Behavior, psp: d.EndPsp}
	switch {
	case d.Behavior == 0:
		f.behavior = shown.behavior()
	case isUntold(d) && shown.function == "End.AD":
		f.behavior = behaviorAD
	}
	switch f.behavior {
	case behaviorEnd:
	case behaviorX, behaviorDX6:
		f.out, f.next = nameOf(names, d.XconnectIfaceOrVrfTable), asIPv6(d.XconnectNhAddr)
	case behaviorDX4:
		f.out, f.next = nameOf(names, d.XconnectIfaceOrVrfTable), vppwire.Addr(d.XconnectNhAddr)
	case behaviorDX2:
		f.out = nameOf(names, d.XconnectIfaceOrVrfTable)
	case behaviorT, behaviorDT4, behaviorDT6:
		f.table = d.XconnectIfaceOrVrfTable
	case behaviorAD:
		f.out, f.in, f.next = h.logical(shown.out), h.logical(shown.in), shown.next
	default:
		return function{}
	}
	return f
}

// nameOf returns the name of an interface. If it was deleted, the name is one that no interface
// has, so that the SID differs from the declared one.
func nameOf(names map[uint32]string, index uint32) string {
	if name := names[index]; name != "" {
		return name
	}
	return fmt.Sprintf("DELETED (%d)", index)
}

// logical returns the name of the interface that VPP itself calls by another name, or that name.
func (h *handler) logical(internal string) string {
	for name, meta := range h.Interfaces.All() {
		if meta.InternalName == internal {
			return name
		}
	}
	return internal
}

// asIPv6 returns an IPv6 address that VPP took for an IPv4 one, because its first 12 bytes are
// zero.
func asIPv6(a ip_types.Address) netip.Addr {
	if a.Af == ip_types.ADDRESS_IP6 {
		return vppwire.Addr(a)
	}
	var out [16]byte
	tail := a.Un.GetIP4()
	copy(out[12:], tail[:])
	return netip.AddrFrom16(out)
}
