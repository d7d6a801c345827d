package iface

import (
	"context"
	"net/netip"

	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// A kind is what sets one type of interface apart.
type kind struct {
	// link is the name of the field that declares it; empty: there is none.
	link string

	// Meaning; optional.
	validate     func(f *findings, v *interfaces.Interface)
	sameLink     func(old, new *interfaces.Interface) bool // Defaults to always
	recreate     func(old, new *interfaces.Interface) bool // besides a change of the link
	dependencies func(v *interfaces.Interface) []scheduler.Dependency
	// What its VRF is of is decided by the ends of a tunnel. Defaults to the addresses.
	versions func(v *interfaces.Interface) (ipv4, ipv6 bool)

	// Attributes that it does not have of its own.
	noMAC, noMTU bool
	// madeWithMAC: it gets its MAC address as it is made, and keeps it.
	madeWithMAC bool

	// create makes the interface, and nothing else. Interfaces of the kind that
	// are there already are found by their tag before.
	create func(ctx context.Context, h *handler, v *interfaces.Interface) (index uint32, err error)
	// marked tells whether an interface, which has the link of v, was made by v, as it has a mark
	// of its name. Optional: where the link tells.
	marked func(h *handler, f *found, v *interfaces.Interface) bool
	// configured is called after create, when the interface has its name. Optional.
	configured func(ctx context.Context, h *handler, index uint32, v *interfaces.Interface) error
	// update changes what sameLink tells apart and recreate does not. Optional.
	update func(ctx context.Context, h *handler, meta Meta, old, new *interfaces.Interface) error
	// anew: what create returns is always an interface that nothing was asked of yet.
	anew bool
	// hides: VPP does not delete such interfaces, but hides them, and gives them to the next
	// of the kind as they are.
	hides bool
	// delete deletes the interface. It is down then.
	delete func(ctx context.Context, h *handler, v *interfaces.Interface, meta Meta) error
	// retrieve fills in the link and the type of interfaces of the kind, by index.
	retrieve func(ctx context.Context, h *handler, all map[uint32]*found) error
}

// A form is what decides the kind of an interface: its type, and of a VXLAN tunnel whether it
// is one of VXLAN-GPE, which is another sort of interface in VPP.
type form struct {
	of  interfaces.Interface_Type
	gpe bool
}

func formOf(v *interfaces.Interface) form {
	return form{v.GetType(), v.GetType() == interfaces.Interface_VXLAN_TUNNEL && v.GetVxlan().GetGpe() != nil}
}

func (f form) String() string {
	if f.gpe {
		return f.of.String() + " (GPE)"
	}
	return f.of.String()
}

// kinds is the table of them all.
func kinds() map[form]kind {
	return map[form]kind{
		{of: interfaces.Interface_SUB_INTERFACE}:           sub(),
		{of: interfaces.Interface_SOFTWARE_LOOPBACK}:       loopback(),
		{of: interfaces.Interface_DPDK}:                    dpdkKind(),
		{of: interfaces.Interface_MEMIF}:                   memifKind(),
		{of: interfaces.Interface_TAP}:                     tap(),
		{of: interfaces.Interface_AF_PACKET}:               afPacket(),
		{of: interfaces.Interface_VXLAN_TUNNEL}:            vxlanKind(),
		{of: interfaces.Interface_VXLAN_TUNNEL, gpe: true}: gpeKind(),
		{of: interfaces.Interface_BOND_INTERFACE}:          bondKind(),
		{of: interfaces.Interface_GRE_TUNNEL}:              greKind(),
		{of: interfaces.Interface_GTPU_TUNNEL}:             gtpuKind(),
		{of: interfaces.Interface_IPIP_TUNNEL}:             ipipKind(),
		{of: interfaces.Interface_IPSEC_TUNNEL}:            ipsecKind(),
		{of: interfaces.Interface_WIREGUARD_TUNNEL}:        wireguardKind(),
		{of: interfaces.Interface_RDMA}:                    rdmaKind(),
		{of: interfaces.Interface_VMXNET3_INTERFACE}:       vmxnet3Kind(),
	}
}

// kindOf is the kind of v; the zero kind if there is none of its form.
func (h *handler) kindOf(v *interfaces.Interface) kind { return h.kinds[formOf(v)] }

// found is an interface that VPP has.
type found struct {
	value   *interfaces.Interface
	details vppif.SwInterfaceDetails
	meta    Meta
	wanted  *interfaces.Interface // what is declared under its name; nil: nothing
	gone    bool                  // it was deleted while it was looked at
	leased  netip.Prefix          // what DHCP has given to it
	skipped bool                  // only others were asked for
}

// loopback is the kind of SOFTWARE_LOOPBACK.
func loopback() kind {
	return kind{
		anew:   true,
		marked: byMAC,
		create: func(ctx context.Context, h *handler, v *interfaces.Interface) (uint32, error) {
			reply := &vppif.CreateLoopbackReply{}
			err := h.API.Call(ctx, &vppif.CreateLoopback{MacAddress: h.mark(v)}, reply)
			return uint32(reply.SwIfIndex), err
		},
		delete: func(ctx context.Context, h *handler, _ *interfaces.Interface, meta Meta) error {
			return h.API.Call(ctx, &vppif.DeleteLoopback{SwIfIndex: meta.SwIfIndex()}, &vppif.DeleteLoopbackReply{})
		},
		retrieve: func(_ context.Context, _ *handler, all map[uint32]*found) error {
			for _, f := range all {
				if f.details.InterfaceDevType == "Loopback" && f.details.Type != interface_types.IF_API_TYPE_SUB {
					f.value.Type = interfaces.Interface_SOFTWARE_LOOPBACK
				}
			}
			return nil
		},
	}
}

const adminUp = interface_types.IF_STATUS_API_FLAG_ADMIN_UP
