package abf

import (
	"context"
	"fmt"

	vppabf "go.fd.io/govpp/binapi/abf"
	"go.fd.io/govpp/binapi/fib_types"
	vppif "go.fd.io/govpp/binapi/interface"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/proto/ligato/vpp/abf"
)

// readAll is read, and replaces the knowledge of VPP if the read learns. Attachments to deleted interfaces belong to it: VPP
// dies when a policy is deleted that has one.
func (h *handler) readAll(ctx context.Context, learns bool) ([]*abf.ABF, error) {
	all, err := h.read(ctx, learns)
	if err != nil || !learns {
		return all, err
	}
	attached, err := conn.Dump[vppabf.AbfItfAttachDetails](ctx, h.API, &vppabf.AbfItfAttachDump{})
	if err != nil {
		return nil, err
	}
	h.known.reset()
	for _, d := range attached {
		h.known.attach(d.Attach)
	}
	return all, nil
}

// read returns all policies with their attachments. Nobody can declare a list without a name, or the path
// of an interface without one, so a policy that has them differs from each declared one.
func (h *handler) read(ctx context.Context, learns bool) ([]*abf.ABF, error) {
	policies, err := conn.Dump[vppabf.AbfPolicyDetails](ctx, h.API, &vppabf.AbfPolicyDump{})
	if err != nil {
		return nil, err
	}
	attached, err := h.readAttached(ctx, learns)
	if err != nil {
		return nil, err
	}
	lists := h.Lists.Names()
	var names map[uint32]string
	if len(policies) > 0 {
		if names, err = h.existing(ctx, learns); err != nil {
			return nil, err
		}
	}
	out := make([]*abf.ABF, 0, len(policies))
	for _, d := range policies {
		v := &abf.ABF{Index: d.Policy.PolicyID, AclName: lists[d.Policy.ACLIndex], AttachedInterfaces: attached[d.Policy.PolicyID]}
		_, ipv6 := versions(v)
		for _, p := range d.Policy.Paths {
			v.ForwardingPaths = append(v.ForwardingPaths, valueOf(p, names, ipv6))
		}
		if learns {
			h.noteLost(d.Policy, names)
		}
		out = append(out, v)
	}
	return out, nil
}

// existing returns the names of the interfaces that VPP has now, by index; "": it has none. The agent
// may not know yet that one was deleted, and VPP dies of a change of a policy that has a path by it.
func (h *handler) existing(ctx context.Context, learns bool) (map[uint32]string, error) {
	links, err := h.Interfaces.Leftovers().Interfaces(ctx, h.API, learns)
	return named(links, iface.NamesByIndex(h.Interfaces.All())), err
}

// named returns the names of these interfaces by index, as far as they are known.
func named(links []vppif.SwInterfaceDetails, known map[uint32]string) map[uint32]string {
	names := make(map[uint32]string, len(links))
	for _, d := range links {
		names[uint32(d.SwIfIndex)] = known[uint32(d.SwIfIndex)]
	}
	return names
}

// valueOf converts a path of VPP. An unspecified next hop is left out if the declared path of a policy
// with these attachments has the same.
func valueOf(p fib_types.FibPath, names map[uint32]string, ipv6 bool) *abf.ABF_ForwardingPath {
	out := &abf.ABF_ForwardingPath{
		InterfaceName: names[p.SwIfIndex], Dvr: p.Type == fib_types.FIB_API_PATH_TYPE_DVR,
		Weight: uint32(p.Weight), Preference: uint32(p.Preference),
	}
	if next := vppwire.AddrIn(p.Nh.Address, p.Proto == fib_types.FIB_API_PATH_NH_PROTO_IP6); next != unspecified(ipv6) {
		out.NextHopIp = next.String()
	}
	return out
}

// readAttached returns the attachments of each policy. One whose interface was deleted is noted if the read learns:
// the next interface with its index would inherit it.
func (h *handler) readAttached(ctx context.Context, learns bool) (map[uint32][]*abf.ABF_AttachedInterface, error) {
	all, err := conn.Dump[vppabf.AbfItfAttachDetails](ctx, h.API, &vppabf.AbfItfAttachDump{})
	if err != nil {
		return nil, err
	}
	names, out := h.Interfaces.Names(), map[uint32][]*abf.ABF_AttachedInterface{}
	for _, d := range all {
		a := d.Attach
		if name := names[uint32(a.SwIfIndex)]; name != "" {
			out[a.PolicyID] = append(out[a.PolicyID], &abf.ABF_AttachedInterface{InputInterface: name, Priority: a.Priority, IsIpv6: a.IsIPv6})
			continue
		}
		if !learns {
			continue
		}
		what := fmt.Sprint("policy ", a.PolicyID)
		if err := h.Interfaces.Leftovers().NoteOrphaned(ctx, h.API, uint32(a.SwIfIndex), what, h.end(a.PolicyID, a.IsIPv6)); err != nil {
			return nil, err
		}
	}
	return out, nil
}
