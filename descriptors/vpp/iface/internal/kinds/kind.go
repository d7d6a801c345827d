// Package kinds has the kinds of VPP interfaces: TAP, memif, bond, tunnels, ...
//
// A Kind has the differences between one type of interface and the others: validation,
// comparison, and the VPP messages that create, change, delete and list it. Each kind has a file.
// All is the table of kinds:
//
//	k := kinds.All()[kinds.FormOf(v)]
//	index, err := k.Create(ctx, env, v)
//
// A kind does not tag interfaces, and does not set attributes that all kinds share. Package
// iface does, and calls the kinds. An Env is shared by all kinds of an agent.
//
// Tests: package iface runs each kind on a simulated VPP of each release.
package kinds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"go.fd.io/govpp/binapi/dhcp"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// ErrNotThere means that an interface does not exist, which an operation needs.
var ErrNotThere = errors.New("interface is not there")

// NotThere returns ErrNotThere with the name of the interface.
func NotThere(name string) error { return fmt.Errorf("%s: %w", name, ErrNotThere) }

// A Kind is one type of interface.
type Kind struct {
	// Link is the name of the field that declares the kind's settings; empty: it has none.
	Link string

	// Validate checks the link. Optional.
	Validate func(f *Findings, v *interfaces.Interface)
	// SameLink compares the links of an interface in VPP and of a declared one. Defaults to
	// true.
	SameLink func(old, new *interfaces.Interface) bool
	// Recreate tells whether a change requires a new interface. With Update it decides that
	// alone; without it, a change of the link does too. Optional.
	Recreate func(old, new *interfaces.Interface) bool
	// Dependencies are those of the link. Optional.
	Dependencies func(v *interfaces.Interface) []scheduler.Dependency
	// Versions returns the IP versions of the VRF of a tunnel: those of its ends. Defaults to
	// the versions of the interface's addresses.
	Versions func(v *interfaces.Interface) (ipv4, ipv6 bool)

	// NoMAC and NoMTU: VPP has no such attribute of these interfaces.
	NoMAC, NoMTU bool
	// CreatedWithMAC: the MAC address is part of the creation, and does not change later.
	CreatedWithMAC bool

	// Create creates the interface. The caller has looked for one with the same tag before.
	Create func(ctx context.Context, e *Env, v *interfaces.Interface) (index uint32, err error)
	// Marked tells whether an untagged interface with the link of v carries the mark of v's
	// name, so that v created it. Defaults to true: the link identifies it.
	Marked func(e *Env, f *Found, v *interfaces.Interface) bool
	// Configure is called after Create and after updates, when VPP has the tag. Optional.
	Configure func(ctx context.Context, e *Env, index uint32, v *interfaces.Interface) error
	// Update changes an interface whose link differs, unless Recreate is true. Optional.
	Update func(ctx context.Context, e *Env, meta ifindex.Meta, old, new *interfaces.Interface) error
	// MayExist: Create may return an interface that existed before, in any VRF.
	MayExist bool
	// Hides: VPP does not delete these interfaces. It hides them, and reuses them with their
	// state for the next interface of the kind.
	Hides bool
	// Delete deletes the interface, which is down.
	Delete func(ctx context.Context, e *Env, v *interfaces.Interface, meta ifindex.Meta) error
	// Retrieve fills in the type and the link of interfaces of the kind. The map is by index. It
	// changes nothing, as somebody may only look.
	Retrieve func(ctx context.Context, e *Env, all map[uint32]*Found) error
	// Learn remembers what Retrieve has found, unless somebody only looks. Optional.
	Learn func(e *Env, all map[uint32]*Found)
}

// A Form selects the kind of an interface. It is the type; VPP has two kinds of VXLAN
// tunnels, with and without GPE.
type Form struct {
	Type interfaces.Interface_Type
	GPE  bool
}

// FormOf returns the form of an interface.
func FormOf(v *interfaces.Interface) Form {
	return Form{v.GetType(), v.GetType() == interfaces.Interface_VXLAN_TUNNEL && v.GetVxlan().GetGpe() != nil}
}

// String names the form in errors.
func (f Form) String() string {
	if f.GPE {
		return f.Type.String() + " (GPE)"
	}
	return f.Type.String()
}

// All returns the table of kinds. A form without an entry is refused by validation. The
// functions keep no state: an Env has it, so that two agents in one process are
// independent.
func All() map[Form]Kind {
	return map[Form]Kind{
		{Type: interfaces.Interface_SUB_INTERFACE}:           subKind(),
		{Type: interfaces.Interface_SOFTWARE_LOOPBACK}:       loopbackKind(),
		{Type: interfaces.Interface_DPDK}:                    dpdkKind(),
		{Type: interfaces.Interface_MEMIF}:                   memifKind(),
		{Type: interfaces.Interface_TAP}:                     tapKind(),
		{Type: interfaces.Interface_AF_PACKET}:               afPacketKind(),
		{Type: interfaces.Interface_VXLAN_TUNNEL}:            vxlanKind(),
		{Type: interfaces.Interface_VXLAN_TUNNEL, GPE: true}: vxlanGPEKind(),
		{Type: interfaces.Interface_BOND_INTERFACE}:          bondKind(),
		{Type: interfaces.Interface_GRE_TUNNEL}:              greKind(),
		{Type: interfaces.Interface_GTPU_TUNNEL}:             gtpuKind(),
		{Type: interfaces.Interface_IPIP_TUNNEL}:             ipipKind(),
		{Type: interfaces.Interface_IPSEC_TUNNEL}:            ipsecKind(),
		{Type: interfaces.Interface_WIREGUARD_TUNNEL}:        wireguardKind(),
		{Type: interfaces.Interface_RDMA}:                    rdmaKind(),
		{Type: interfaces.Interface_VMXNET3_INTERFACE}:       vmxnet3Kind(),
	}
}

// Found is an interface that a dump listed. It is built in several steps: the dump of all
// interfaces first, then each kind's own dump, then attributes such as addresses.
type Found struct {
	Value     *interfaces.Interface    // filled in step by step
	Details   vppif.SwInterfaceDetails // of the dump
	Meta      ifindex.Meta
	Desired   *interfaces.Interface   // the value that is declared under its name; nil: none
	Gone      bool                    // it was deleted during the read
	Addresses []netip.Prefix          // all that VPP lists, also those that are not part of Value
	Leased    netip.Prefix            // the address that DHCP gave to it
	Client    *dhcp.DHCPClientDetails // nil: VPP runs no DHCP client there
	Tables    [2]uint32               // the VRFs for IPv4 and IPv6; 0 for those without a tag
	PCI       uint32                  // of a VMXNET3: its PCI address as VPP writes it
	Virtual   map[netip.Addr]bool     // the addresses that virtual routers give to it
	Bonded    bool                    // it is a member of a bond
	Skipped   bool                    // the caller asked for other interfaces only
}

// AdminUp is VPP's flag of an enabled interface.
const AdminUp = interface_types.IF_STATUS_API_FLAG_ADMIN_UP

// LinkName returns the name of the oneof field that is set; empty: none.
func LinkName(v *interfaces.Interface) string {
	m := v.ProtoReflect()
	field := m.WhichOneof(m.Descriptor().Oneofs().ByName("link"))
	if field == nil {
		return ""
	}
	return string(field.Name())
}

// Sorted returns interfaces by ascending index.
func Sorted(all map[uint32]*Found) []*Found {
	out := make([]*Found, 0, len(all))
	for _, f := range all {
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b *Found) int { return cmp.Compare(a.Meta.Index, b.Meta.Index) })
	return out
}

// anyOf tells whether there is an interface of a VPP device class. A VPP without the plugin
// does not have the message that lists them.
func anyOf(all map[uint32]*Found, devType string) bool {
	for _, f := range all {
		if f.Details.InterfaceDevType == devType {
			return true
		}
	}
	return false
}
