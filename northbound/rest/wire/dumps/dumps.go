// Package dumps defines the answers of the paths below /dump of the HTTP API.
//
// Their names and notation are those of vpp-agent 3.5: values have the fields of the .proto
// file in snake_case, and enumerations are numbers. Metadata has the names that its clients
// know, and zero for what the system does not tell. Fields that 3.5 lacks stand at the end.
//
// The fields Interface, Route and so on have type any, because a value is written with the
// names of its .proto file, with or without secrets. Kinds that are not here are answered as
// their messages alone.
package dumps

// An InterfaceDetails is an interface of VPP. /dump/vpp/v2/interfaces answers them in an
// object, by Meta.SwIfIndex.
type InterfaceDetails struct {
	Interface any           `json:"interface"` // ligato.vpp.interfaces.Interface
	Meta      InterfaceMeta `json:"interface_meta"`
}

// An InterfaceMeta is what VPP knows of an interface besides its value.
type InterfaceMeta struct {
	SwIfIndex uint32 `json:"sw_if_index"`
	// The index of the interface on which a sub-interface rests; of others their own.
	SubSwIfIndex uint32 `json:"sub_sw_if_index"`
	L2Address    []byte `json:"l2_address"` // the MAC address in base64
	// VPP's own name, such as "host-veth1", and the kind of device as VPP reports it.
	InternalName string `json:"internal_name"`
	DevType      string `json:"dev_type"`
	AdminUp      bool   `json:"is_admin_state_up"`
	LinkUp       bool   `json:"is_link_state_up"`
	LinkDuplex   uint32 `json:"link_duplex"` // 0 unknown, 1 half, 2 full
	LinkMTU      uint16 `json:"link_mtu"`
	// The maximum sizes of packets of layer 3, IPv4, IPv6 and MPLS; 0: that of layer 3.
	MTU       []uint32 `json:"mtu"`
	LinkSpeed uint32   `json:"link_speed"` // in kbit/s
	SubID     uint32   `json:"sub_id"`     // of a sub-interface: its number on the parent
	Tag       string   `json:"tag"`        // as VPP has it, with the mark of the owner
	DHCP      *DHCP    `json:"dhcp"`       // null: VPP runs no DHCP client there
	VRFIPv4   uint32   `json:"vrf_ipv4"`
	VRFIPv6   uint32   `json:"vrf_ipv6"`
	PCI       uint32   `json:"pci"` // of a VMXNET3: its PCI address as a number
	// The same as SubSwIfIndex, under VPP's name.
	SupSwIfIndex uint32 `json:"sup_sw_if_index"`
	TAPHost      string `json:"tap_host_if_name,omitempty"` // of a TAP: the name of its Linux side
}

// A DHCP is a DHCP client of VPP, and the lease that it has.
type DHCP struct {
	Client DHCPClient
	Lease  DHCPLease
}

// A DHCPClient is what VPP was told about a DHCP client.
type DHCPClient struct {
	SwIfIndex        uint32
	Hostname         string
	ID               string
	WantDHCPEvent    bool `json:"WantDhcpEvent"`
	SetBroadcastFlag bool
	PID              uint32
}

// A DHCPLease is what a DHCP server has told. Without one, the addresses are 0.0.0.0.
type DHCPLease struct {
	SwIfIndex     uint32
	State         uint32 // 0 discover, 1 request, 2 bound
	Hostname      string
	IsIPv6        bool
	MaskWidth     uint32
	HostAddress   string
	RouterAddress string
	HostMAC       string `json:"HostMac"`
}

// An ACLDetails is an access list of VPP.
type ACLDetails struct {
	ACL  any `json:"acl"` // ligato.vpp.acl.ACL
	Meta struct {
		Index uint32 `json:"acl_index"`
		Tag   string `json:"acl_tag"`
	} `json:"acl_meta"`
}

// An ABFDetails is a policy of forwarding by access lists of VPP.
type ABFDetails struct {
	ABF  any `json:"abf"` // ligato.vpp.abf.ABF
	Meta struct {
		PolicyID uint32 `json:"policy_id"`
	} `json:"abf_meta"`
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
		Receive  uint32 `json:"receive_interface_sw_if_idx"`
		Transmit uint32 `json:"transmit_interface_sw_if_idx"`
	} `json:"x_connect_meta"`
}

// A RouteDetails is one path of a route of VPP.
type RouteDetails struct {
	Route any // ligato.vpp.l3.Route
	Meta  RouteMeta
}

// A RouteMeta is what VPP knows of a path besides the route's value. Most of it is about paths
// that a value cannot express.
type RouteMeta struct {
	TableName         string // of the VRF table
	OutgoingIfIdx     uint32 // 4294967295: none
	IsIPv6            bool
	AFI               uint8 `json:"Afi"` // the protocol of the next hop: 0 IPv4, 1 IPv6, 2 MPLS
	IsLocal           bool
	IsUDPEncap        bool
	IsUnreach         bool
	IsProhibit        bool
	IsResolveHost     bool
	IsResolveAttached bool
	IsDVR             bool `json:"IsDvr"`
	IsSourceLookup    bool
	NextHopID         uint32
	RPFID             uint32 `json:"RpfID"`
	LabelStack        []FIBLabel
}

// A FIBLabel is an MPLS label of a path.
type FIBLabel struct {
	IsUniform bool
	Label     uint32
	TTL       uint8
	Exp       uint8
}

// An ARPDetails is a neighbour of VPP.
type ARPDetails struct {
	Arp  any // ligato.vpp.l3.ARPEntry
	Meta IndexMeta
}

// An IndexMeta has VPP's index of the interface that a value names.
type IndexMeta struct {
	SwIfIndex uint32
}

// A ProxyARPInterfaceDetails is an interface of VPP with proxy ARP.
type ProxyARPInterfaceDetails struct {
	Interface any // ligato.vpp.l3.ProxyARP.Interface
	Meta      IndexMeta
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

// A SADetails is an IPsec association of VPP.
type SADetails struct {
	SA   any `json:"Sa"` // ligato.vpp.ipsec.SecurityAssociation
	Meta SAMeta
}

// A SAMeta is what VPP knows of an IPsec association besides its value.
type SAMeta struct {
	SAID uint32 `json:"SaID"`
	// The interface that the association belongs to, and its index. Releases since 22.02 have
	// none: the interface is in the protection of the tunnel. The index is then 4294967295.
	Interface      string
	IfIdx          uint32
	CryptoKeyLen   uint8
	IntegKeyLen    uint8
	Salt           uint32
	SeqOutbound    uint64
	LastSeqInbound uint64
	ReplayWindow   uint64
	TotalDataSize  uint64 // always 0: VPP does not tell it
}

// A PuntDetails is a socket of a program that gets packets from VPP.
type PuntDetails struct {
	PuntData   any // ligato.vpp.punt.ToHost
	SocketPath string
}

// A LinuxInterfaceDetails is an interface of Linux. Its value has the MTU also where that is the
// default.
type LinuxInterfaceDetails struct {
	Interface any                `json:"interface"` // ligato.linux.interfaces.Interface
	Meta      LinuxInterfaceMeta `json:"interface_meta"`
}

// A LinuxInterfaceMeta is what the kernel knows of an interface besides its value.
type LinuxInterfaceMeta struct {
	// The kernel's ifindex, which is unique only within one network namespace.
	Index int `json:"linux_if_index"`
	// The index of the link on which this one rests, such as the other end of a VETH; 0: none.
	Parent int `json:"parent_index"`
	Master int `json:"master_index"` // such as a VRF device; 0: none
	// The operational state of RFC 2863: 0 unknown, 2 down, 6 up.
	OperState     uint8  `json:"oper_state"`
	Flags         uint32 `json:"flags"`         // IFF_* of netdevice(7)
	Encapsulation string `json:"encapsulation"` // "ether" or "loopback"
	RxQueues      int    `json:"num_rx_queue"`
	TxQueues      int    `json:"num_tx_queue"`
	TxQueueLen    int    `json:"tx_queue_len"`
	HostName      string `json:"name"`
	VRF           string `json:"vrf,omitempty"` // logical name of its current VRF
}

// A LinuxRouteDetails is a route of Linux.
type LinuxRouteDetails struct {
	Route any // ligato.linux.l3.Route
	Meta  LinuxRouteMeta
}

// A LinuxRouteMeta is what the kernel knows of a route besides its value.
type LinuxRouteMeta struct {
	Interface int    `json:"interface_index"`
	Scope     uint8  `json:"link_scope"` // RT_SCOPE_* of rtnetlink(7)
	Protocol  uint8  `json:"protocol"`   // the creator; the agent's is 151
	MTU       uint32 `json:"mtu"`        // 0: that of the interface
	Table     uint32 `json:"table"`
}

// A LinuxARPDetails is a neighbour of Linux.
type LinuxARPDetails struct {
	ARP  any          `json:"linux_arp"` // ligato.linux.l3.ARPEntry
	Meta LinuxARPMeta `json:"linux_arp_meta"`
}

// A LinuxARPMeta is what the kernel knows of a neighbour besides its value.
type LinuxARPMeta struct {
	Interface int `json:"interface_index"`
	Family    int `json:"ip_family"` // 2 IPv4, 10 IPv6
	VNI       int `json:"vni"`       // of a neighbour behind a VXLAN; the agent makes none
}
