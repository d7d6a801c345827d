// Package dumps defines the answers of the paths below /dump of the HTTP API.
//
// Their names and notation are those of existing clients: values have the fields of the .proto
// file in snake_case, and enumerations are numbers. Metadata has the names that these clients
// know, and zero for the fields that this agent does not have.
//
// The fields Interface, Route and so on have type any, because a value is written with the
// names of its .proto file, with or without secrets.
package dumps

// An InterfaceDetails is an interface of VPP. /dump/vpp/v2/interfaces answers them in an
// object, by Meta.SwIfIndex.
type InterfaceDetails struct {
	Interface any           `json:"interface"` // ligato.vpp.interfaces.Interface
	Meta      InterfaceMeta `json:"interface_meta"`
}

// An InterfaceMeta is what VPP knows of an interface besides its value.
type InterfaceMeta struct {
	// VPP's index of the interface, and that of the interface on which a subinterface rests.
	SwIfIndex    uint32 `json:"sw_if_index"`
	SupSwIfIndex uint32 `json:"sup_sw_if_index"`
	// VPP's own name, such as "host-veth1", and the kind of device as VPP reports it.
	InternalName string `json:"internal_name,omitempty"`
	DevType      string `json:"dev_type,omitempty"`
	TAPHost      string `json:"tap_host_if_name,omitempty"` // of a TAP: the name of its Linux side
}

// A BridgeDomainDetails is a bridge domain of VPP.
type BridgeDomainDetails struct {
	BridgeDomain any `json:"bridge_domain"` // ligato.vpp.l2.BridgeDomain
	Meta         struct {
		ID uint32 `json:"bridge_domain_id"`
	} `json:"bridge_domain_meta"`
}

// A FIBDetails is an entry of the L2 FIB of VPP. /dump/vpp/v2/fib answers them in an
// object, by MAC address.
type FIBDetails struct {
	FIB  any `json:"fib"` // ligato.vpp.l2.FIBEntry
	Meta struct {
		Bridge    uint32 `json:"bridge_domain_id"`
		Interface uint32 `json:"outgoing_interface_sw_if_idx"`
	} `json:"fib_meta"`
}

// An XConnectDetails is a cross-connect of VPP. /dump/vpp/v2/xc answers them in an
// object, by the index of the receiving interface.
type XConnectDetails struct {
	XConnect any `json:"x_connect"` // ligato.vpp.l2.XConnectPair
	Meta     struct {
		Receive uint32 `json:"receive_interface_sw_if_idx"`
	} `json:"x_connect_meta"`
}

// A RouteDetails is a route of VPP.
type RouteDetails struct {
	Route any // ligato.vpp.l3.Route
	// The metadata of the descriptor as JSON, with the names of its fields.
	Meta any
}

// An ARPDetails is a neighbour of VPP.
type ARPDetails struct {
	Arp  any // ligato.vpp.l3.ARPEntry
	Meta any
}

// A ProxyARPInterfaceDetails is an interface of VPP with proxy ARP.
type ProxyARPInterfaceDetails struct {
	Interface any // ligato.vpp.l3.ProxyARP.Interface
}

// A ProxyARPRangeDetails is a range of addresses of proxy ARP in VPP.
type ProxyARPRangeDetails struct {
	Range any // ligato.vpp.l3.ProxyARP.Range
}

// A VRRPDetails is a virtual router of VPP.
type VRRPDetails struct {
	Vrrp any // ligato.vpp.l3.VRRPEntry
	Meta any
}

// A Details is an item of another kind.
type Details struct {
	Value any // its message
	Meta  any
}

// A LinuxInterfaceDetails is an interface of Linux.
type LinuxInterfaceDetails struct {
	Interface any                `json:"interface"` // ligato.linux.interfaces.Interface
	Meta      LinuxInterfaceMeta `json:"interface_meta"`
}

// A LinuxInterfaceMeta is what the kernel knows of an interface besides its value.
type LinuxInterfaceMeta struct {
	// The kernel's ifindex, which is unique only within one network namespace.
	Index    int    `json:"index"`
	HostName string `json:"name"`
	VRF      string `json:"vrf,omitempty"` // logical name of its current VRF
}

// A LinuxRouteDetails is a route of Linux.
type LinuxRouteDetails struct {
	Route any `json:"linux_route"` // ligato.linux.l3.Route
	Meta  any `json:"linux_route_meta"`
}

// A LinuxARPDetails is a neighbour of Linux.
type LinuxARPDetails struct {
	ARP  any `json:"linux_arp"` // ligato.linux.l3.ARPEntry
	Meta any `json:"linux_arp_meta"`
}
