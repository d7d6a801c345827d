package ifindex

import (
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
)

// Meta is the metadata of an interface that VPP has. Its names in JSON are those of vpp-agent 3.5.
type Meta struct {
	Index        uint32 `json:"SwIfIndex"`
	Parent       uint32 // of a sub-interface: the index of its parent; of others their own index
	InternalName string // VPP's own name: "loop0"
	DevType      string // VPP's device class: "Loopback"
	TAPHost      string `json:"TAPHostIfName"` // of a TAP: the name of its Linux side
}

// SwIfIndex returns the index in the type that messages use.
func (m Meta) SwIfIndex() interface_types.InterfaceIndex {
	return interface_types.InterfaceIndex(m.Index)
}

// MetaOf returns the metadata in a dump; TAPHost is not part of it.
func MetaOf(d vppif.SwInterfaceDetails) Meta {
	return Meta{Index: uint32(d.SwIfIndex), Parent: d.SupSwIfIndex, InternalName: d.InterfaceName, DevType: d.InterfaceDevType}
}

// All is the sw_if_index that dumps take for all interfaces, and other messages for none.
const All = interface_types.InterfaceIndex(^uint32(0))

// UntaggedPrefix begins the names of interfaces without a tag; VPP's own name follows.
const UntaggedPrefix = "UNTAGGED-"

// Hardware is VPP's device class of DPDK interfaces.
const Hardware = "dpdk"

// IsHardware tells whether an interface is a DPDK interface, and not a sub-interface of one.
func IsHardware(d vppif.SwInterfaceDetails) bool {
	return d.InterfaceDevType == Hardware && d.Type == interface_types.IF_API_TYPE_HARDWARE
}

// Tags are the tags of all interfaces in VPP.
type Tags map[string]bool

// TagsOf returns the tags in a dump.
func TagsOf(all []vppif.SwInterfaceDetails) Tags {
	out := make(Tags, len(all))
	for _, d := range all {
		out[d.Tag] = true
	}
	return out
}

// NameOf returns the name of an interface. That is its tag. Hardware without a tag has
// VPP's own name, unless that is the tag of another interface.
func (t Tags) NameOf(d vppif.SwInterfaceDetails) string {
	switch {
	case d.Tag != "":
		return d.Tag
	case IsHardware(d) && !t[d.InterfaceName]:
		return d.InterfaceName
	}
	return UntaggedPrefix + d.InterfaceName
}
