package l3

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/l3xc"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/readback"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l3"
	"github.com/keyplane/keyplane/scheduler"
)

// l3xcDescriptor implements layer 3 cross-connects: all packets of one IP version that an
// interface receives leave by given paths. An update deletes the cross-connect and creates it
// again; see setL3XC.
func (h handler) l3xcDescriptor() scheduler.Descriptor[*l3.L3XConnect, struct{}] {
	return scheduler.Descriptor[*l3.L3XConnect, struct{}]{
		Name:  L3XCName,
		Model: models.For[*l3.L3XConnect](),

		Normalize: normalizeL3XC,
		Validate:  validateL3XC,
		Equivalent: func(_ string, old, new *l3.L3XConnect) bool {
			return slices.EqualFunc(pathsOf(old), pathsOf(new), samePath)
		},
		Dependencies: l3xcDependencies,

		Create: func(ctx context.Context, _ string, v *l3.L3XConnect) (struct{}, error) {
			return struct{}{}, h.setL3XC(ctx, v)
		},
		Update: func(ctx context.Context, _ string, _, v *l3.L3XConnect, _ struct{}) (struct{}, error) {
			return struct{}{}, h.setL3XC(ctx, v)
		},
		Delete: func(ctx context.Context, _ string, v *l3.L3XConnect, _ struct{}) error {
			return h.cleanUp(ctx, v.GetInterface(), h.l3xcCleanup(v.GetProtocol()))
		},
		Retrieve:      h.crossConnects().Retrieve,
		RetrieveAfter: []string{iface.Name},
	}
}

// validateL3XC checks a cross-connect.
func validateL3XC(_ string, v *l3.L3XConnect) error {
	var f faults
	if v.GetInterface() == "" {
		f.Add("interface", "", "the name of an interface")
	}
	if l3.L3XConnect_Protocol_name[int32(v.GetProtocol())] == "" {
		f.Add("protocol", int32(v.GetProtocol()), "IPV4 or IPV6")
	}
	if len(v.GetPaths()) == 0 {
		f.Add("paths", "", "at least one path")
	}
	ipv6 := v.GetProtocol() == l3.L3XConnect_IPV6
	for i, p := range v.GetPaths() {
		field := fmt.Sprintf("paths[%d].", i)
		if p.GetOutgoingInterface() == "" {
			f.Add(field+"outgoing_interface", "", "the name of an interface")
		}
		if next, err := netip.ParseAddr(p.GetNextHopAddr()); p.GetNextHopAddr() != "" && (err != nil || next.Is6() != ipv6 || next.Zone() != "") {
			f.Add(field+"next_hop_addr", p.GetNextHopAddr(), "an address of the IP version %s, or nothing", v.GetProtocol())
		}
	}
	return f.Err()
}

// pathsOf returns the paths with defaults filled in, sorted.
func pathsOf(v *l3.L3XConnect) []*l3.L3XConnect_Path {
	unspecified := "0.0.0.0"
	if v.GetProtocol() == l3.L3XConnect_IPV6 {
		unspecified = "::"
	}
	var out []*l3.L3XConnect_Path
	for _, p := range v.GetPaths() {
		// VPP reports the defaults as numbers; with them filled in, both forms are equal.
		one := proto.CloneOf(p)
		one.Weight = max(p.GetWeight(), 1)
		one.NextHopAddr = cmp.Or(p.GetNextHopAddr(), unspecified)
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b *l3.L3XConnect_Path) int {
		return cmp.Or(cmp.Compare(a.GetOutgoingInterface(), b.GetOutgoingInterface()), cmp.Compare(a.GetNextHopAddr(), b.GetNextHopAddr()))
	})
	return out
}

// samePath compares two paths with defaults filled in.
func samePath(a, b *l3.L3XConnect_Path) bool {
	return a.GetOutgoingInterface() == b.GetOutgoingInterface() && a.GetWeight() == b.GetWeight() &&
		a.GetPreference() == b.GetPreference() && sameAddress(a.GetNextHopAddr(), b.GetNextHopAddr())
}

// l3xcDependencies requires all interfaces.
func l3xcDependencies(_ string, v *l3.L3XConnect) []scheduler.Dependency {
	deps := []scheduler.Dependency{{Label: "interface-exists", Key: keys.Interface(v.GetInterface()).Key()}}
	var names []string
	for _, p := range v.GetPaths() {
		names = append(names, p.GetOutgoingInterface())
	}
	return append(deps, iface.DependOn("outgoing-interface-exists", names)...)
}

// setL3XC sets the cross-connect of an interface (VPP l3xc_update). An existing one is deleted
// first, also one that is left over from another agent: of an update, VPP would list the new
// paths, and forward by the old ones (VPP l3xc.c, l3xc_update, does not call l3xc_stack). Both
// requests are in one batch, since packets take the routes of the interface between them.
func (h handler) setL3XC(ctx context.Context, v *l3.L3XConnect) error {
	meta, err := h.interfaceNamed(v.GetInterface())
	if err != nil {
		return err
	}
	x := l3xc.L3xc{SwIfIndex: meta.SwIfIndex(), IsIP6: v.GetProtocol() == l3.L3XConnect_IPV6}
	for _, p := range pathsOf(v) {
		out, err := h.interfaceNamed(p.GetOutgoingInterface())
		if err != nil {
			return err
		}
		next, err := netip.ParseAddr(p.GetNextHopAddr())
		if err != nil {
			return err
		}
		path := fib_types.FibPath{SwIfIndex: out.Index, Weight: uint8(p.GetWeight()), Preference: uint8(p.GetPreference()), Proto: protocolOf(x.IsIP6)}
		path.Nh.Address = vppwire.Address(next).Un
		x.Paths = append(x.Paths, path)
	}
	remove := conn.Ask(&l3xc.L3xcDel{SwIfIndex: x.SwIfIndex, IsIP6: x.IsIP6}, &l3xc.L3xcDelReply{})
	set := conn.Ask(&l3xc.L3xcUpdate{L3xc: x}, &l3xc.L3xcUpdateReply{})
	_ = h.API.Batch(ctx, remove, set) // each step has its error
	return cmp.Or(unlessNoL3XC(remove.Err), set.Err)
}

// unlessNoL3XC returns the error of a deletion, and nil if there was no cross-connect.
func unlessNoL3XC(err error) error {
	if errors.Is(err, api.INVALID_VALUE) {
		return nil
	}
	return err
}

// l3xcCleanup returns the deletion of the cross-connect of one IP version.
func (h handler) l3xcCleanup(of l3.L3XConnect_Protocol) cleanup {
	return cleanup{"cross-connect " + of.String(), func(ctx context.Context, at interface_types.InterfaceIndex) error {
		return unlessNoL3XC(h.API.Call(ctx, &l3xc.L3xcDel{SwIfIndex: at, IsIP6: of == l3.L3XConnect_IPV6}, &l3xc.L3xcDelReply{}))
	}}
}

// crossConnects reads cross-connects back, and notes those of deleted interfaces if the read learns.
func (h handler) crossConnects() readback.Retriever[*l3.L3XConnect] {
	return readback.Retriever[*l3.L3XConnect]{
		Read: func(ctx context.Context, learns bool) (out []*l3.L3XConnect, err error) {
			all, err := conn.Dump[l3xc.L3xcDetails](ctx, h.API, &l3xc.L3xcDump{SwIfIndex: interface_types.InterfaceIndex(noInterface)})
			names := h.namesByIndex()
			for _, d := range all {
				v := l3xcOf(d.L3xc, names)
				if v.GetInterface() != "" {
					out = append(out, v)
				} else if learns {
					if err := h.noteOrphaned(ctx, d.L3xc.SwIfIndex, h.l3xcCleanup(v.GetProtocol())); err != nil {
						return nil, err
					}
				}
			}
			return out, err
		},
		ID: func(v *l3.L3XConnect) string { return v.GetInterface() + " " + v.GetProtocol().String() },
	}
}

// l3xcOf converts VPP's answer to a value. The interface is empty if it was deleted. The IP
// version is read from the paths: VPP leaves the field of the cross-connect empty (VPP
// l3xc_api.c, l3xc_send_details).
func l3xcOf(x l3xc.L3xc, names map[uint32]string) *l3.L3XConnect {
	v := &l3.L3XConnect{Interface: names[uint32(x.SwIfIndex)]}
	ipv6 := slices.ContainsFunc(x.Paths, func(p fib_types.FibPath) bool { return p.Proto == fib_types.FIB_API_PATH_NH_PROTO_IP6 })
	if ipv6 {
		v.Protocol = l3.L3XConnect_IPV6
	}
	for _, p := range x.Paths {
		v.Paths = append(v.Paths, &l3.L3XConnect_Path{
			OutgoingInterface: names[p.SwIfIndex], NextHopAddr: vppwire.AddrIn(p.Nh.Address, ipv6).String(),
			Weight: uint32(p.Weight), Preference: uint32(p.Preference),
		})
	}
	return v
}
