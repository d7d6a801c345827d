// Package keys builds and parses keys of VPP values without a model: derived values
// of interfaces and bridge domains, notifications and properties. It also builds the
// keys of models that values depend on.
//
//	keys.Interface("tap0").DHCPLease()    // a part of an interface
//	keys.BridgeMembers.Key("bd1", "tap0") // an interface in something
//	keys.VRFTable(7, false)               // a model
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
	"path"
	"strconv"
	"strings"
)

// Where the keys begin.
const (
	part        = "vpp/interface/"
	Unnumbereds = part + "unnumbered/"
	DHCPClients = part + "dhcp-client/"
	DHCPLeases  = part + "dhcp-lease/"
	IP6NDs      = part + "ip6nd/"
	Bonds       = "vpp/bond/"
	XConnects   = "config/vpp/l2/v2/xconnect/"
	ProxyARPs   = "vpp/proxyarp/interface/"
	ACLParts    = "vpp/acl/"
	// SRv6Policies begins the keys of policies of segment routing.
	SRv6Policies = "config/vpp/srv6/v2/policy/"
	// NAT44Global is the key of NAT44 itself.
	NAT44Global = "config/vpp/nat/v2/nat44-global"
	// NATEndpointDependent is the key of a property of NAT44: it is endpoint-dependent.
	NATEndpointDependent = natParts + "endpoint-dependent"
	NATInterfaces        = natParts + "interface/"
	NATAddresses         = natParts + "address/"
	TwiceNATPools        = natParts + "twiceNAT-pool/"
	NATPools             = natParts + "pool/"
	// NATParts is what the keys of NAT44 above have in common.
	NATParts = natParts

	interfaces   = "config/vpp/v2/interfaces/"
	natParts     = "vpp/nat44/"
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
	hasAddress = "/has-IP-address"
	rxModes    = "/rx-modes"
	rxQueue    = "/rx-placement/queue/"
)

// Invalid stands for a component that is missing.
const Invalid = "<invalid>"

// Parts begins the keys of all parts of interfaces that are named first.
const Parts = part

// An Interface is the name of an interface. Its methods return the keys of the interface and of its
// parts.
type Interface string

// Key is the key of the interface itself.
func (i Interface) Key() string { return interfaces + string(i) }

// part returns the key of a part that follows the name.
func (i Interface) part(tail string) string { return part + i.named() + tail }

// named returns the name, or Invalid if it is empty.
func (i Interface) named() string { return or(string(i)) }

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
	Static    Source = "static"    // the value of the interface has it
	FromDHCP  Source = "from_dhcp" // a lease
	undefined Source = "undefined"
	allocRef  Source = "alloc_ref" // a reference to an allocated address
	existing  Source = "existing"
	allocMark        = "alloc:"
)

// An Address is the content of the key of an interface's address.
type Address struct {
	Interface string
	Source    Source
	Addr      string // as the user spelled it: "10.0.0.1/24", "alloc:net1"
}

// Key returns the key of the address. The source of a reference is always alloc_ref.
func (a Address) Key() string {
	if strings.HasPrefix(a.Addr, allocMark) {
		a.Source = allocRef
	}
	if a.Source == "" {
		a.Source = undefined
	}
	return Interface(a.Interface).Addresses() + string(a.Source) + "/" + or(a.Addr)
}

// Prefix is the address with its prefix length, unless it is a reference.
func (a Address) Prefix() (netip.Prefix, bool) {
	p, err := netip.ParsePrefix(a.Addr)
	return p, err == nil
}

// Addresses begins the keys of all addresses of the interface.
func (i Interface) Addresses() string { return i.part("/address/") }

// ParseAddress reads the key of an address of an interface.
func ParseAddress(key string) (Address, bool) {
	iface, tail, ok := around(key, part, "/address/")
	if !ok || strings.Contains(iface, "/vrf/") {
		return Address{}, false
	}
	source, addr, ok := strings.Cut(tail, "/")
	reference := strings.HasPrefix(addr, allocMark)
	switch Source(source) {
	case allocRef:
		ok = ok && reference
	case undefined, Static, FromDHCP, existing:
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
		return Interface(v.Interface).VRFs() + "from-interface/" + v.From
	}
	version := "v4"
	switch {
	case v.IPv4 && v.IPv6:
		version = "both"
	case v.IPv6:
		version = "v6"
	}
	return part + Interface(v.Interface).named() + "/vrf/" + strconv.FormatUint(uint64(v.ID), 10) + "/ip-version/" + version
}

// VRFs begins the keys of the memberships of the interface in VRFs.
func (i Interface) VRFs() string { return i.part("/vrf/") }

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
func (i Interface) Unnumbered() string { return Unnumbereds + i.named() }

// DHCPClient is the key of the DHCP client of the interface.
func (i Interface) DHCPClient() string { return DHCPClients + i.named() }

// DHCPLease is the key of the lease that a DHCP server has granted to the interface.
func (i Interface) DHCPLease() string { return DHCPLeases + i.named() }

// IP6ND is the key of the IPv6 address autoconfiguration of the interface.
func (i Interface) IP6ND() string { return IP6NDs + i.named() }

// ProxyARP is the key of proxy ARP on the interface.
func (i Interface) ProxyARP() string { return ProxyARPs + string(i) }

// HasAddress is the key that says that the interface has an address.
func (i Interface) HasAddress() string { return i.part(hasAddress) }

// ParseHasAddress reads a key of HasAddress.
func ParseHasAddress(key string) (iface string, ok bool) { return behindName(key, hasAddress) }

// LinkState is the key that tells the state of the interface's link.
func (i Interface) LinkState(up bool) string {
	if up {
		return i.LinkStates() + "UP"
	}
	return i.LinkStates() + "DOWN"
}

// LinkStates begins the keys that tell the state of the interface's link: it has one as long
// as VPP has the interface.
func (i Interface) LinkStates() string { return i.part("/link-state/") }

// ParseLinkState reads a key of LinkState.
func ParseLinkState(key string) (iface string, up, ok bool) {
	iface, state, ok := around(key, part, "/link-state/")
	return iface, state == "UP", ok && (state == "UP" || state == "DOWN")
}

// RxModes is the key of the modes in which the interface receives.
func (i Interface) RxModes() string { return i.part(rxModes) }

// ParseRxModes reads a key of RxModes.
func ParseRxModes(key string) (iface string, ok bool) { return behindName(key, rxModes) }

// behindName reads the key of a part that is only its name behind that of the interface.
func behindName(key, name string) (iface string, ok bool) {
	rest, ok := strings.CutPrefix(key, part)
	iface, is := strings.CutSuffix(rest, name)
	return iface, ok && is && iface != ""
}

// RxPlacement is the key of the thread that receives a queue of the interface.
func (i Interface) RxPlacement(queue uint32) string {
	return i.part(rxQueue) + strconv.FormatUint(uint64(queue), 10)
}

// ParseRxPlacement reads a key of RxPlacement.
func ParseRxPlacement(key string) (iface string, queue uint32, ok bool) {
	iface, tail, ok := around(key, part, rxQueue)
	number, err := strconv.ParseUint(tail, 10, 32)
	return iface, uint32(number), ok && err == nil && Interface(iface).RxPlacement(uint32(number)) == key
}

// BondMember is the key of a member of a bond, both by name. It ends with a slash.
func BondMember(bond, iface string) string { return Bonds + or(bond) + members + or(iface) + "/" }

// ParseBondMember reads a key of BondMember.
func ParseBondMember(key string) (bond, iface string, ok bool) {
	bond, tail, ok := around(key, Bonds, members)
	iface, slash := strings.CutSuffix(tail, "/")
	return bond, iface, ok && slash && iface != ""
}

// Members are the keys of interfaces that something with a name has. The text begins the keys.
type Members string

// BridgeMembers are the interfaces of bridge domains.
const BridgeMembers Members = "vpp/bd/"

// Key is the key of an interface of the bridge domain with a name.
func (m Members) Key(of, iface string) string {
	return string(m) + or(of) + members + or(iface)
}

// Parse reads a key of Key.
func (m Members) Parse(key string) (of, iface string, ok bool) {
	return around(key, string(m), members)
}

// NumberedMembers are the keys of interfaces that something with a number has. The text begins the
// keys.
type NumberedMembers string

// The sorts of numbered members.
const (
	ABFMembers NumberedMembers = "vpp/abf/" // interfaces on which policies (ABF) decide
	SPDMembers NumberedMembers = "vpp/spd/" // interfaces of security policy databases (IPsec)
)

// Key is the key of an interface of the policy, or of the database, with a number.
func (m NumberedMembers) Key(of uint32, iface string) string {
	return string(m) + strconv.FormatUint(uint64(of), 10) + members + or(iface)
}

// Parse reads a key of Key. It accepts only the notation of numbers that Key has.
func (m NumberedMembers) Parse(key string) (of uint32, iface string, ok bool) {
	before, iface, ok := around(key, string(m), members)
	number, err := strconv.ParseUint(before, 10, 32)
	return uint32(number), iface, ok && err == nil && m.Key(uint32(number), iface) == key
}

// InterfaceOf returns the interface with which a key of one of its parts comes, or each key with that prefix.
func InterfaceOf(keyOrPrefix string) (iface string, ok bool) {
	for _, prefix := range []string{Unnumbereds, DHCPClients, DHCPLeases, IP6NDs} {
		if iface, ok := strings.CutPrefix(keyOrPrefix, prefix); ok {
			return iface, iface != ""
		}
	}
	rest, ok := strings.CutPrefix(keyOrPrefix, part)
	for _, marker := range []string{"/address/", "/vrf/", "/link-state/", hasAddress, rxModes, rxQueue} {
		if before, _, has := strings.Cut(rest, marker); has && ok {
			return before, before != ""
		}
	}
	return "", false
}

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

// IPsecSA is the key of a security association.
func IPsecSA(number uint32) string { return ipsecSAs + strconv.FormatUint(uint64(number), 10) }

// IPsecSPD is the key of a security policy database.
func IPsecSPD(number uint32) string { return ipsecSPDs + strconv.FormatUint(uint64(number), 10) }

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

// A NATPool is the content of the key of a pool of addresses, which a pool derives.
type NATPool struct {
	Twice       bool // for twice-NAT
	VRF         uint32
	First, Last netip.Addr // Last may be the zero Addr: First alone
}

// Key is the key of the pool.
func (p NATPool) Key() string {
	prefix := NATPools
	if p.Twice {
		prefix = TwiceNATPools
	}
	key := fmt.Sprintf("%svrf/%d/addresses/%s", prefix, p.VRF, p.First)
	if p.Last.IsValid() {
		key += "-" + p.Last.String()
	}
	return key
}

// ParseNATPool reads a key of NATPool.
func ParseNATPool(key string) (NATPool, bool) {
	number, addresses, ok := around(key, NATPools+"vrf/", "/addresses/")
	isTwice := !ok
	if isTwice {
		number, addresses, ok = around(key, TwiceNATPools+"vrf/", "/addresses/")
	}
	if !ok {
		return NATPool{}, false
	}
	id, errID := strconv.ParseUint(number, 10, 32)
	first, last, several := strings.Cut(addresses, "-")
	p := NATPool{Twice: isTwice, VRF: uint32(id)}
	var errFirst, errLast error
	p.First, errFirst = netip.ParseAddr(first)
	if several {
		p.Last, errLast = netip.ParseAddr(last)
	}
	ok = errID == nil && errFirst == nil && errLast == nil && p.Key() == key
	return p, ok
}

// Has reports whether an address is in the pool.
func (p NATPool) Has(a netip.Addr) bool {
	if !p.Last.IsValid() {
		return p.First == a
	}
	return !a.Less(p.First) && !p.Last.Less(a)
}

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

// CleanName is what a name must be that values refer to: its key, which is a clean path, has it as it is written.
const CleanName = `a name without an empty part, "." or ".." before, between or after slashes, which its key would lose`

// IsClean reports whether a name is a CleanName.
func IsClean(name string) bool { return path.Clean("/"+name) == "/"+name }

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
