package l3

import (
	"context"
	"errors"
	"net/netip"
	"sync"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_neighbor"
	"go.fd.io/govpp/binapi/ip_types"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/readback"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l3"
	"github.com/keyplane/keyplane/scheduler"
)

// arpDescriptor implements neighbours of both IP versions. VPP has one table for ARP
// (IPv4) and neighbour discovery (IPv6).
func (h handler) arpDescriptor() scheduler.Descriptor[*l3.ARPEntry, struct{}] {
	return scheduler.Descriptor[*l3.ARPEntry, struct{}]{
		Name:  ARPName,
		Model: models.For[*l3.ARPEntry](),

		Normalize: normalizeARP,
		Validate:  validateARP,
		Equivalent: func(_ string, old, new *l3.ARPEntry) bool {
			return old.GetStatic() == new.GetStatic() && vppwire.SameMAC(old.GetPhysAddress(), new.GetPhysAddress())
		},
		Identity: arpIdentity,
		// VPP cannot change a static neighbour into a dynamic one.
		Recreate: func(_ string, old, new *l3.ARPEntry, _ struct{}) bool { return old.GetStatic() && !new.GetStatic() },
		Dependencies: func(_ string, v *l3.ARPEntry) []scheduler.Dependency {
			return []scheduler.Dependency{{Label: "interface-exists", Key: keys.Interface(v.GetInterface()).Key()}}
		},

		Create: func(ctx context.Context, _ string, v *l3.ARPEntry) (struct{}, error) {
			return struct{}{}, h.addNeighbour(ctx, v)
		},
		Update: func(ctx context.Context, _ string, _, v *l3.ARPEntry, _ struct{}) (struct{}, error) {
			return struct{}{}, h.addNeighbour(ctx, v)
		},
		Delete: func(ctx context.Context, _ string, v *l3.ARPEntry, _ struct{}) error {
			address, err := netip.ParseAddr(v.GetIpAddress())
			if err != nil {
				return err
			}
			// The interface may be deleted already, and its neighbours not.
			return h.cleanUp(ctx, v.GetInterface(), h.neighbourCleanup(address))
		},
		Retrieve:      h.neighbours().Retrieve,
		RetrieveAfter: []string{iface.Name},
	}
}

// arpIdentity returns the identity of a neighbour: its key in the notation of RFC 5952.
func arpIdentity(_ string, v *l3.ARPEntry) scheduler.Claim {
	return scheduler.Claim{
		Resource: models.For[*l3.ARPEntry]().KeyOf(v.GetInterface() + "/" + canonical(v.GetIpAddress())),
		Field:    "ip_address", Value: v.GetIpAddress(), Want: "an address of this interface that no other entry has",
	}
}

// dynamicNeighbours are the interfaces with neighbours that are not static. VPP deletes
// those when an interface goes down, even if it is up again immediately, and sends no event
// (VPP ip_neighbor.c, ip_neighbor_interface_admin_change). Therefore they are read back when
// the link changes.
type dynamicNeighbours struct {
	mu sync.Mutex // guards on
	on map[string]bool
}

// add records an interface with a dynamic neighbour.
func (d *dynamicNeighbours) add(iface string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.on[iface] = true
}

// has reports whether the interface has had a dynamic neighbour.
func (d *dynamicNeighbours) has(iface string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.on[iface]
}

// validateARP checks a neighbour. A zone has no place in VPP's message.
func validateARP(_ string, v *l3.ARPEntry) error {
	var f faults
	if v.GetInterface() == "" {
		f.Add("interface", "", "the name of an interface")
	}
	if a, err := netip.ParseAddr(v.GetIpAddress()); err != nil || a.Zone() != "" {
		f.Add("ip_address", v.GetIpAddress(), `an address, such as "10.0.0.1" or "fd00::1"`)
	}
	if _, err := vppwire.MAC(v.GetPhysAddress()); err != nil {
		f.Add("phys_address", v.GetPhysAddress(), `a MAC address, such as "02:00:00:00:00:01"`)
	}
	return f.Err()
}

// addNeighbour adds or replaces a neighbour (VPP ip_neighbor_add_del).
func (h handler) addNeighbour(ctx context.Context, v *l3.ARPEntry) error {
	meta, err := h.interfaceNamed(v.GetInterface())
	if err != nil {
		return err
	}
	address, err := netip.ParseAddr(v.GetIpAddress())
	if err != nil {
		return err
	}
	mac, err := vppwire.MAC(v.GetPhysAddress())
	if err != nil {
		return err
	}
	n := ip_neighbor.IPNeighbor{SwIfIndex: meta.SwIfIndex(), MacAddress: mac, IPAddress: vppwire.Address(address)}
	// VPP ages and drops only neighbours that are not static.
	if v.GetStatic() {
		n.Flags = ip_neighbor.IP_API_NEIGHBOR_FLAG_STATIC
	} else {
		h.dynamic.add(v.GetInterface())
	}
	return h.API.Call(ctx, &ip_neighbor.IPNeighborAddDel{IsAdd: true, Neighbor: n}, &ip_neighbor.IPNeighborAddDelReply{})
}

// neighbourCleanup returns the deletion of a neighbour.
func (h handler) neighbourCleanup(address netip.Addr) cleanup {
	return cleanup{"neighbour " + address.String(), func(ctx context.Context, at interface_types.InterfaceIndex) error {
		err := h.API.Call(ctx, &ip_neighbor.IPNeighborAddDel{
			Neighbor: ip_neighbor.IPNeighbor{SwIfIndex: at, IPAddress: vppwire.Address(address)},
		}, &ip_neighbor.IPNeighborAddDelReply{})
		if errors.Is(err, api.NO_SUCH_ENTRY) {
			return nil
		}
		return err
	}}
}

// neighbours reads neighbours back. Undeclared ones are included: other clients or VPP
// itself have added them.
func (h handler) neighbours() readback.Retriever[*l3.ARPEntry] {
	return readback.Retriever[*l3.ARPEntry]{
		Read: h.readNeighbours,
		ID:   func(v *l3.ARPEntry) string { return arpIdentity("", v).Resource },
		Declared: func(declared *l3.ARPEntry) {
			if !declared.GetStatic() {
				h.dynamic.add(declared.GetInterface())
			}
		},
		Details: func(v *l3.ARPEntry) any {
			meta, _ := h.Interfaces.Get(v.GetInterface())
			return indexed{meta.Index}
		},
	}
}

// indexed has the index of the interface that a value names.
type indexed struct{ SwIfIndex uint32 }

// readNeighbours returns the neighbours of existing interfaces, and removes those of deleted
// ones if the read learns.
func (h handler) readNeighbours(ctx context.Context, learns bool) ([]*l3.ARPEntry, error) {
	var out []*l3.ARPEntry
	names, unnamed := h.namesByIndex(), false
	all, err := h.dumpNeighbours(ctx)
	if err != nil {
		return nil, err
	}
	for _, n := range all {
		name := names[uint32(n.SwIfIndex)]
		// Of a deleted interface: the next one with that index would have the neighbour.
		if name == "" {
			unnamed = true
			continue
		}
		out = append(out, &l3.ARPEntry{
			Interface: name, IpAddress: vppwire.Addr(n.IPAddress).String(), PhysAddress: n.MacAddress.String(),
			Static: n.Flags&ip_neighbor.IP_API_NEIGHBOR_FLAG_STATIC != 0,
		})
	}
	if unnamed && learns {
		err = h.reclaimOrphans(ctx)
	}
	return out, err
}

// dumpNeighbours returns the neighbours of both IP versions.
func (h handler) dumpNeighbours(ctx context.Context) (out []ip_neighbor.IPNeighbor, err error) {
	for _, af := range []ip_types.AddressFamily{ip_types.ADDRESS_IP4, ip_types.ADDRESS_IP6} {
		all, err := conn.Dump[ip_neighbor.IPNeighborDetails](ctx, h.API, &ip_neighbor.IPNeighborDump{SwIfIndex: interface_types.InterfaceIndex(noInterface), Af: af})
		if err != nil {
			return nil, err
		}
		for _, d := range all {
			out = append(out, d.Neighbor)
		}
	}
	return out, nil
}
