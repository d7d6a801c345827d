// Package keys builds and parses keys of VPP values without a model: derived values
// of interfaces and bridge domains, notifications and properties. It also builds the
// keys of models that values depend on.
//
// Users see these keys in dumps and in the transaction log, and other descriptors
// depend on them, so they must not change. A builder uses Invalid for an empty
// component; the parser returns it, and the validation of the value refuses it.
//
// The parsers are fuzzed: if a parser accepts a key, its builder returns the same
// key.
package keys

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Where the keys begin.
const (
	Interfaces  = "config/vpp/v2/interfaces/"
	part        = "vpp/interface/"
	Unnumbereds = part + "unnumbered/"
	DHCPClients = part + "dhcp-client/"
	DHCPLeases  = part + "dhcp-lease/"
	IP6NDs      = part + "ip6nd/"
	Bonds       = "vpp/bond/"
	BridgeParts = "vpp/bd/"
	XConnects   = "config/vpp/l2/v2/xconnect/"
	ProxyARPs   = "vpp/proxyarp/interface/"
	ACLParts    = "vpp/acl/"
	ABFParts    = "vpp/abf/"
	SPDParts    = "vpp/spd/"
	// SRv6Policies begins the keys of policies of segment routing.
	SRv6Policies = "config/vpp/srv6/v2/policy/"
	// NAT44Global is the key of NAT44 itself.
	NAT44Global = "config/vpp/nat/v2/nat44-global"
	// NATEndpointDependent is the key of a property of NAT44: it is endpoint-dependent.
	NATEndpointDependent = natParts + "endpoint-dependent"
	NATInterfaces        = natParts + "interface/"
	NATAddresses         = natParts + "address/"
	TwiceNATPools        = natParts + "twiceNAT-pool/"

	natParts     = "vpp/nat44/"
	natVRFs      = "config/vpp/nat/v2/nat44-vrf/vrfid/"
	vrfTables    = "config/vpp/v2/vrf-table/id/"
	bridgeDomain = "config/vpp/l2/v2/bridge-domain/"
	acls         = "config/vpp/acls/v2/acl/"
	ipsecSAs     = "config/vpp/ipsec/v2/sa/"
	ipsecSPDs    = "config/vpp/ipsec/v2/spd/"

	// FlowprobeParams is the key of the parameters of recording flows.
	FlowprobeParams = "config/vpp/ipfix/v2/flowprobe-params"
)

// Parts of an interface, behind its name.
const (
	rxModes = "/rx-modes"
	rxQueue = "/rx-placement/queue/"
)

// Invalid stands for a component that is missing.
const Invalid = "<invalid>"

// Parts begins the keys of all parts of interfaces that are named first.
const Parts = part

// InterfaceKey is the key of an interface.
func InterfaceKey(name string) string { return Interfaces + name }

// VRFTable is the key of a VRF table of one IP version.
func VRFTable(id uint32, ipv6 bool) string {
	protocol := "IPV4"
	if ipv6 {
		protocol = "IPV6"
	}
	return VRFTables(id) + protocol
}

// VRFTables begins the keys of the VRF tables of both IP versions.
func VRFTables(id uint32) string {
	return vrfTables + strconv.FormatUint(uint64(id), 10) + "/protocol/"
}

// BridgeDomain is the key of a bridge domain.
func BridgeDomain(name string) string { return bridgeDomain + name }

// A Source tells where an address of an interface comes from.
type Source string

// The sources of addresses.
const (
	Undefined Source = "undefined"
	Static    Source = "static"    // the value of the interface has it
	FromDHCP  Source = "from_dhcp" // a lease
	AllocRef  Source = "alloc_ref" // a reference to an allocated address
	Existing  Source = "existing"
	allocMark        = "alloc:"
)

// An Address is the content of the key of an interface's address.
type Address struct {
	Interface string
	Source    Source
	Addr      string // as the user spelled it: "10.0.0.1/24", "alloc:net1"
}

// Key returns the key of the address. The source of a reference is always AllocRef.
func (a Address) Key() string {
	if strings.HasPrefix(a.Addr, allocMark) {
		a.Source = AllocRef
	}
	if a.Source == "" {
		a.Source = Undefined
	}
	return Addresses(a.Interface) + string(a.Source) + "/" + or(a.Addr)
}

// Prefix is the address with its prefix length, unless it is a reference.
func (a Address) Prefix() (netip.Prefix, bool) {
	p, err := netip.ParsePrefix(a.Addr)
	return p, err == nil
}

// Addresses begins the keys of all addresses of one interface.
func Addresses(iface string) string { return part + or(iface) + "/address/" }

// ParseAddress reads the key of an address of an interface.
func ParseAddress(key string) (Address, bool) {
	iface, tail, ok := around(key, part, "/address/")
	if !ok || strings.Contains(iface, "/vrf/") {
		return Address{}, false
	}
	source, addr, ok := strings.Cut(tail, "/")
	reference := strings.HasPrefix(addr, allocMark)
	switch Source(source) {
	case AllocRef:
		ok = ok && reference
	case Undefined, Static, FromDHCP, Existing:
		ok = ok && !reference
	default:
		ok = false
	}
	if !ok || addr == "" {
		return Address{}, false
	}
	return Address{iface, Source(source), addr}, true
}

// A VRF is the content of the key of an interface's VRF membership.
type VRF struct {
	Interface string
	ID        uint32
	IPv4      bool
	IPv6      bool
	From      string // interface that the VRF is inherited from; ID and versions are then unused
}

// Key is the key of the membership.
func (v VRF) Key() string {
	if v.From != "" {
		return VRFs(v.Interface) + "from-interface/" + v.From
	}
	version := "v4"
	switch {
	case v.IPv4 && v.IPv6:
		version = "both"
	case v.IPv6:
		version = "v6"
	}
	return fmt.Sprintf("%s%d/ip-version/%s", VRFs(v.Interface), v.ID, version)
}

// VRFs begins the keys of the memberships of one interface.
func VRFs(iface string) string { return part + or(iface) + "/vrf/" }

// ParseVRF reads the key of a membership in a VRF.
func ParseVRF(key string) (VRF, bool) {
	iface, tail, ok := around(key, part, "/vrf/")
	if !ok || strings.Contains(iface, "/address/") {
		return VRF{}, false
	}
	if from, inherited := strings.CutPrefix(tail, "from-interface/"); inherited {
		return VRF{Interface: iface, From: from}, from != ""
	}
	number, version, ok := strings.Cut(tail, "/ip-version/")
	id, err := strconv.ParseUint(number, 10, 32)
	v := VRF{Interface: iface, ID: uint32(id), IPv4: version == "v4" || version == "both", IPv6: version == "v6" || version == "both"}
	return v, ok && err == nil && v.Key() == key
}

// Unnumbered is the key of the borrowing of an address.
func Unnumbered(iface string) string { return Unnumbereds + or(iface) }

// DHCPClient is the key of the DHCP client of an interface.
func DHCPClient(iface string) string { return DHCPClients + or(iface) }

// DHCPLease is the key of the lease that a DHCP server has granted to an interface.
func DHCPLease(iface string) string { return DHCPLeases + or(iface) }

// IP6ND is the key of the IPv6 address autoconfiguration of an interface.
func IP6ND(iface string) string { return IP6NDs + or(iface) }

// HasAddress is the key that says that an interface has an address.
func HasAddress(iface string) string { return part + or(iface) + "/has-IP-address" }

// ParseHasAddress reads a key of HasAddress.
func ParseHasAddress(key string) (iface string, ok bool) {
	rest, ok := strings.CutPrefix(key, part)
	iface, is := strings.CutSuffix(rest, "/has-IP-address")
	return iface, ok && is && iface != ""
}

// LinkState is the key that tells the state of an interface's link.
func LinkState(iface string, up bool) string {
	if up {
		return LinkStates(iface) + "UP"
	}
	return LinkStates(iface) + "DOWN"
}

// LinkStates begins the keys that tell the state of an interface's link: it has one as long
// as VPP has the interface.
func LinkStates(iface string) string { return part + or(iface) + "/link-state/" }

// ParseLinkState reads a key of LinkState.
func ParseLinkState(key string) (iface string, up, ok bool) {
	iface, state, ok := around(key, part, "/link-state/")
	return iface, state == "UP", ok && (state == "UP" || state == "DOWN")
}

// RxModes is the key of the modes in which an interface receives.
func RxModes(iface string) string { return part + or(iface) + rxModes }

// ParseRxModes reads a key of RxModes.
func ParseRxModes(key string) (iface string, ok bool) {
	rest, ok := strings.CutPrefix(key, part)
	iface, is := strings.CutSuffix(rest, rxModes)
	return iface, ok && is && iface != ""
}

// RxPlacement is the key of the thread that a queue of an interface is received by.
func RxPlacement(iface string, queue uint32) string {
	return part + or(iface) + rxQueue + strconv.FormatUint(uint64(queue), 10)
}

// ParseRxPlacement reads a key of RxPlacement.
func ParseRxPlacement(key string) (iface string, queue uint32, ok bool) {
	iface, tail, ok := around(key, part, rxQueue)
	number, err := strconv.ParseUint(tail, 10, 32)
	return iface, uint32(number), ok && err == nil && RxPlacement(iface, uint32(number)) == key
}

// BondMember is the key of a member of a bond, both by name. It ends with a slash.
func BondMember(bond, iface string) string { return Bonds + or(bond) + members + or(iface) + "/" }

// ParseBondMember reads a key of BondMember.
func ParseBondMember(key string) (bond, iface string, ok bool) {
	bond, tail, ok := around(key, Bonds, members)
	iface, slash := strings.CutSuffix(tail, "/")
	return bond, iface, ok && slash && iface != ""
}

// BridgeInterface is the key of an interface in a bridge domain.
func BridgeInterface(bd, iface string) string {
	return BridgeParts + or(bd) + members + or(iface)
}

// ParseBridgeInterface reads a key of BridgeInterface.
func ParseBridgeInterface(key string) (bd, iface string, ok bool) {
	return around(key, BridgeParts, members)
}

// ProxyARP is the key of proxy ARP on an interface.
func ProxyARP(iface string) string { return ProxyARPs + iface }

// ACL is the key of an access list.
func ACL(name string) string { return acls + name }

// An ACLInterface is the content of the key of an access list that an interface has.
type ACLInterface struct {
	ACL       string
	Egress    bool // on outgoing packets; otherwise on incoming ones
	Interface string
}

// Key is the key of the application of the list.
func (a ACLInterface) Key() string {
	flow := "ingress/"
	if a.Egress {
		flow = "egress/"
	}
	return ACLParts + or(a.ACL) + members + flow + or(a.Interface)
}

// ParseACLInterface reads a key of ACLInterface.
func ParseACLInterface(key string) (ACLInterface, bool) {
	list, tail, ok := around(key, ACLParts, members)
	flow, iface, slash := strings.Cut(tail, "/")
	return ACLInterface{list, flow == "egress", iface}, ok && slash && iface != "" && (flow == "ingress" || flow == "egress")
}

// ABFInterface is the key of a policy on an interface.
func ABFInterface(policy uint32, iface string) string {
	return ABFParts + strconv.FormatUint(uint64(policy), 10) + members + or(iface)
}

// ParseABFInterface reads a key of ABFInterface.
func ParseABFInterface(key string) (policy uint32, iface string, ok bool) {
	before, iface, ok := around(key, ABFParts, members)
	number, err := strconv.ParseUint(before, 10, 32)
	return uint32(number), iface, ok && err == nil && ABFInterface(uint32(number), iface) == key
}

// IPsecSA is the key of a security association.
func IPsecSA(number uint32) string { return ipsecSAs + strconv.FormatUint(uint64(number), 10) }

// IPsecSPD is the key of a security policy database.
func IPsecSPD(number uint32) string { return ipsecSPDs + strconv.FormatUint(uint64(number), 10) }

// SPDInterface is the key of an interface of a security policy database.
func SPDInterface(number uint32, iface string) string {
	return SPDParts + strconv.FormatUint(uint64(number), 10) + members + or(iface)
}

// ParseSPDInterface reads a key of SPDInterface.
func ParseSPDInterface(key string) (database uint32, iface string, ok bool) {
	before, iface, ok := around(key, SPDParts, members)
	number, err := strconv.ParseUint(before, 10, 32)
	return uint32(number), iface, ok && err == nil && SPDInterface(uint32(number), iface) == key
}

// feature stands between an interface and its side in NAT44.
const feature = "/feature/"

// NATInterface is the key of a side of an interface that the value of NAT44 lists.
func NATInterface(iface string, inside bool) string {
	if inside {
		return NATInterfaces + or(iface) + feature + "in"
	}
	return NATInterfaces + or(iface) + feature + "out"
}

// ParseNATInterface reads a key of NATInterface.
func ParseNATInterface(key string) (iface string, inside, ok bool) {
	rest, ok := strings.CutPrefix(key, NATInterfaces)
	at := strings.LastIndex(rest, feature)
	if !ok || at <= 0 {
		return "", false, false
	}
	side := rest[at+len(feature):]
	return rest[:at], side == "in", side == "in" || side == "out"
}

// twice stands between an address and its kind in NAT44.
const twice = "/twice-nat/"

// NATAddress is the key of an address that the value of NAT44 lists, as the user spelled it.
func NATAddress(addr string, isTwice bool) string {
	if isTwice {
		return NATAddresses + or(addr) + twice + "on"
	}
	return NATAddresses + or(addr) + twice + "off"
}

// ParseNATAddress reads a key of NATAddress.
func ParseNATAddress(key string) (addr string, isTwice, ok bool) {
	addr, kind, ok := around(key, NATAddresses, twice)
	return addr, kind == "on", ok && (kind == "on" || kind == "off")
}

// A TwiceNATPool is the content of the key of a pool of addresses for twice-NAT.
type TwiceNATPool struct {
	VRF         uint32
	First, Last netip.Addr // Last may be the zero Addr: First alone
}

// Key is the key of the pool.
func (p TwiceNATPool) Key() string {
	key := fmt.Sprintf("%svrf/%d/addresses/%s", TwiceNATPools, p.VRF, p.First)
	if p.Last.IsValid() {
		key += "-" + p.Last.String()
	}
	return key
}

// ParseTwiceNATPool reads a key of TwiceNATPool.
func ParseTwiceNATPool(key string) (TwiceNATPool, bool) {
	number, addresses, ok := around(key, TwiceNATPools+"vrf/", "/addresses/")
	if !ok {
		return TwiceNATPool{}, false
	}
	id, errID := strconv.ParseUint(number, 10, 32)
	first, last, several := strings.Cut(addresses, "-")
	p := TwiceNATPool{VRF: uint32(id)}
	var errFirst, errLast error
	p.First, errFirst = netip.ParseAddr(first)
	if several {
		p.Last, errLast = netip.ParseAddr(last)
	}
	ok = errID == nil && errFirst == nil && errLast == nil && p.Key() == key
	return p, ok
}

// Has reports whether an address is in the pool.
func (p TwiceNATPool) Has(a netip.Addr) bool {
	if !p.Last.IsValid() {
		return p.First == a
	}
	return !a.Less(p.First) && !p.Last.Less(a)
}

// NATVRF is the key of a table of VRFs that translations from one VRF may lead to.
func NATVRF(id uint32) string { return natVRFs + strconv.FormatUint(uint64(id), 10) }

// WireguardPeers begins the keys of the states of WireGuard peers.
const WireguardPeers = "vpp/wg/peer/"

// States of a WireGuard peer.
const (
	WireguardHandshake   = "HANDSHAKE"   // no session yet, or it has ended
	WireguardEstablished = "ESTABLISHED" // packets can pass
	WireguardDead        = "DEAD"        // VPP has given it up
)

// wireguardState stands between the name of a peer and its state.
const wireguardState = "/state/"

// WireguardPeerState is the key that tells the state of a peer. Its name is that of the value:
// "wg1/endpoint/10.0.0.1/51820".
func WireguardPeerState(peer, state string) string {
	return WireguardPeers + or(peer) + wireguardState + state
}

// ParseWireguardPeerState reads a key of WireguardPeerState.
func ParseWireguardPeerState(key string) (peer, state string, ok bool) {
	rest, ok := strings.CutPrefix(key, WireguardPeers)
	at := strings.LastIndex(rest, wireguardState)
	if !ok || at <= 0 {
		return "", "", false
	}
	peer, state = rest[:at], rest[at+len(wireguardState):]
	return peer, state, state == WireguardHandshake || state == WireguardEstablished || state == WireguardDead
}

// PartIn returns the part of an interface's name that makes the keys of its derived
// values ambiguous, or "".
func PartIn(name string) string {
	for _, prefix := range []string{Unnumbereds, DHCPClients, DHCPLeases, IP6NDs} {
		if start := strings.TrimPrefix(prefix, part); strings.HasPrefix(name, start) {
			return start
		}
	}
	for _, marker := range []string{"/address/", "/vrf/", "/link-state/", rxQueue} {
		if strings.Contains(name+"/", marker) {
			return marker
		}
	}
	return ""
}

// members stands between a bridge domain, a bond or an access list, and an interface of it.
const members = "/interface/"

// MembersIn returns the part of the name of a bridge domain or bond that makes the
// keys of its members ambiguous, or "".
func MembersIn(name string) string {
	if strings.Contains(name+"/", members) {
		return members
	}
	return ""
}

// around cuts the prefix and splits at the first marker. Neither side may be empty.
func around(key, prefix, marker string) (before, after string, ok bool) {
	rest, ok := strings.CutPrefix(key, prefix)
	if !ok {
		return "", "", false
	}
	before, after, ok = strings.Cut(rest, marker)
	return before, after, ok && before != "" && after != ""
}

// or replaces an empty component, which would make a key that cannot be parsed.
func or(component string) string {
	if component == "" {
		return Invalid
	}
	return component
}
