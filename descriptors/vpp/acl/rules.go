package acl

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"go.fd.io/govpp/binapi/acl_types"
	"go.fd.io/govpp/binapi/ip_types"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/ownership"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/acl"
)

// Numbers of protocols (IANA, Assigned Internet Protocol Numbers).
const (
	protoICMP   = 1
	protoTCP    = 6
	protoUDP    = 17
	protoICMPv6 = 58
)

// Largest numbers of ports, of ICMP types and codes, and of bytes.
const (
	maxPort = 65535
	maxByte = 255
)

// isMACIP reports whether v is a MACIP list. A valid list has rules of one kind only.
func isMACIP(v *acl.ACL) bool {
	return len(v.GetRules()) > 0 && v.GetRules()[0].GetMacipRule() != nil
}

// validate checks a list. It converts all rules: a rule is valid if it can be written
// into VPP's message without losing anything.
func validate(_ string, v *acl.ACL) error {
	var f faults
	switch name := v.GetName(); {
	case name == "":
		f.Add("name", name, "a name")
	case strings.ContainsRune(name, 0):
		f.Add("name", name, "a name without zero bytes: it is the list's tag in VPP")
	case ownership.WrongName(name) != "":
		f.Add("name", name, "%s", ownership.WrongName(name))
	case !keys.IsClean(name):
		f.Add("name", name, keys.CleanName)
	case keys.MembersIn(name) != "":
		f.Add("name", name, "a name without %q, which separates the parts of its interfaces' keys", keys.MembersIn(name))
	}
	if len(v.GetRules()) == 0 {
		f.Add("rules", nil, "at least one rule: VPP drops all packets on the interfaces of an empty list")
	}
	macip := isMACIP(v)
	for i, r := range v.GetRules() {
		at := path{rule: i}
		if acl.ACL_Rule_Action_name[int32(r.GetAction())] == "" {
			f.Add(at.field("action"), int32(r.GetAction()), "DENY, PERMIT or REFLECT")
		}
		switch {
		case (r.GetIpRule() == nil) == (r.GetMacipRule() == nil):
			f.Add(at.field("ip_rule"), nil, "either ip_rule or macip_rule")
		case macip != (r.GetMacipRule() != nil):
			f.Add(at.field("ip_rule"), nil, "rules of one kind: a list has either IP rules or MACIP rules, like rules[0]")
		case macip:
			f.macipRule(at, r)
		default:
			f.ipRule(at, r)
		}
	}
	if egress := v.GetInterfaces().GetEgress(); macip && len(egress) > 0 {
		f.Add("interfaces.egress", strings.Join(egress, ", "), "no interface: VPP applies MACIP rules to incoming packets only")
	}
	return f.Err()
}

// ipRules returns the rules of an IP list as VPP stores them. Two lists with equal results are
// the same list to VPP.
func ipRules(v *acl.ACL) []acl_types.ACLRule {
	var f faults
	if isMACIP(v) {
		return nil
	}
	out := make([]acl_types.ACLRule, 0, len(v.GetRules()))
	for i, r := range v.GetRules() {
		out = append(out, f.ipRule(path{rule: i}, r))
	}
	return out
}

// macipRules returns the rules of a MACIP list as VPP stores them.
func macipRules(v *acl.ACL) []acl_types.MacipACLRule {
	var f faults
	if !isMACIP(v) {
		return nil
	}
	out := make([]acl_types.MacipACLRule, 0, len(v.GetRules()))
	for i, r := range v.GetRules() {
		out = append(out, f.macipRule(path{rule: i}, r))
	}
	return out
}

// faults collects the invalid fields of a value.
type faults struct{ models.Faults }

// A path is the place of a part of a rule, such as "rules[3].ip_rule.tcp". Its text is made only
// for errors: lists are converted several times, and each field of 10,000 rules would need a text
// each time.
type path struct {
	rule  int
	parts [3]string // as far as they are not empty
}

// in returns the path of a part.
func (p path) in(part string) path {
	p.parts[slices.Index(p.parts[:], "")] = part
	return p
}

// String returns the path as text.
func (p path) String() string {
	parts := append([]string{"rules[" + strconv.Itoa(p.rule) + "]"}, p.parts[:]...)
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ".")
}

// field returns the path of a field.
func (p path) field(name string) string { return p.String() + "." + name }

// ipRule converts an IP rule (VPP acl_types.api, acl_rule).
func (f *faults) ipRule(at path, r *acl.ACL_Rule) acl_types.ACLRule {
	at = at.in("ip_rule")
	rule := r.GetIpRule()
	out := acl_types.ACLRule{IsPermit: acl_types.ACLAction(r.GetAction())}
	out.SrcPrefix, out.DstPrefix = f.networks(at.in("ip"), rule)
	f.protocol(at, rule, &out)
	return out
}

// networks returns the networks of a rule. A missing one is "any" of the IP version of the
// other one. Without both, the version is that of the ICMP, and otherwise 4.
func (f *faults) networks(at path, rule *acl.ACL_Rule_IpRule) (src, dst ip_types.Prefix) {
	source, hasSource := f.network(at, "source_network", rule.GetIp().GetSourceNetwork())
	destination, hasDestination := f.network(at, "destination_network", rule.GetIp().GetDestinationNetwork())
	anyAddress := netip.IPv4Unspecified()
	if hasSource && source.Addr().Is6() || hasDestination && destination.Addr().Is6() || !hasSource && !hasDestination && rule.GetIcmp().GetIcmpv6() {
		anyAddress = netip.IPv6Unspecified()
	}
	if hasSource && hasDestination && source.Addr().Is6() != destination.Addr().Is6() {
		f.Add(at.field("destination_network"), rule.GetIp().GetDestinationNetwork(), "a network of the IP version of source_network, %s", source)
	}
	if !hasSource {
		source = netip.PrefixFrom(anyAddress, 0)
	}
	if !hasDestination {
		destination = netip.PrefixFrom(anyAddress, 0)
	}
	return vppwire.Prefix(source), vppwire.Prefix(destination)
}

// network reads a network; empty text is none.
func (f *faults) network(at path, field, text string) (p netip.Prefix, given bool) {
	if text == "" {
		return p, false
	}
	p, err := netip.ParsePrefix(text)
	switch {
	case err != nil:
		f.Add(at.field(field), text, `a network, such as "10.0.0.0/8" or "fd00::/8"`)
		return p, false
	case p != p.Masked():
		f.Add(at.field(field), text, "a network without bits of a host: %s", p.Masked())
	}
	return p.Masked(), true
}

// protocol sets the protocol of a rule, and what it matches of the protocol's header. VPP has
// the ICMP type in the fields of the source port, and the code in those of the destination.
func (f *faults) protocol(at path, rule *acl.ACL_Rule_IpRule, out *acl_types.ACLRule) {
	number := rule.GetIp().GetProtocol()
	f.atMost(at.in("ip"), "protocol", number, maxByte)
	implied := uint32(0)
	count := 0
	whole := portRange{0, maxPort}
	source, destination := whole, whole
	if icmp := rule.GetIcmp(); icmp != nil {
		count++
		implied = protoICMP
		if icmp.GetIcmpv6() {
			implied = protoICMPv6
		}
		source = f.icmpRange(at.in("icmp").in("icmp_type_range"), icmp.GetIcmpTypeRange())
		destination = f.icmpRange(at.in("icmp").in("icmp_code_range"), icmp.GetIcmpCodeRange())
	}
	if tcp := rule.GetTcp(); tcp != nil {
		count++
		implied = protoTCP
		source = f.ports(at.in("tcp").in("source_port_range"), tcp.GetSourcePortRange())
		destination = f.ports(at.in("tcp").in("destination_port_range"), tcp.GetDestinationPortRange())
		f.atMost(at.in("tcp"), "tcp_flags_mask", tcp.GetTcpFlagsMask(), maxByte)
		f.atMost(at.in("tcp"), "tcp_flags_value", tcp.GetTcpFlagsValue(), maxByte)
		out.TCPFlagsMask, out.TCPFlagsValue = uint8(tcp.GetTcpFlagsMask()), uint8(tcp.GetTcpFlagsValue())
	}
	if udp := rule.GetUdp(); udp != nil {
		count++
		implied = protoUDP
		source = f.ports(at.in("udp").in("source_port_range"), udp.GetSourcePortRange())
		destination = f.ports(at.in("udp").in("destination_port_range"), udp.GetDestinationPortRange())
	}
	switch {
	case count > 1:
		f.Add(at.String(), nil, "at most one of icmp, tcp and udp")
	case count == 1 && number != 0 && number != implied:
		f.Add(at.in("ip").field("protocol"), number, "0 or %d, the protocol of the rest of the rule", implied)
	case count == 0:
		implied = number
	}
	out.Proto = ip_types.IPProto(implied)
	out.SrcportOrIcmptypeFirst, out.SrcportOrIcmptypeLast = source.first, source.last
	out.DstportOrIcmpcodeFirst, out.DstportOrIcmpcodeLast = destination.first, destination.last
}

// A portRange is a range of ports, ICMP types or ICMP codes, both ends included.
type portRange struct{ first, last uint16 }

// icmpRange reads a range of ICMP types or codes. No range is all of them.
func (f *faults) icmpRange(at path, r *acl.ACL_Rule_IpRule_Icmp_Range) portRange {
	if r == nil {
		return portRange{0, maxByte}
	}
	f.atMost(at, "first", r.GetFirst(), maxByte)
	f.atMost(at, "last", r.GetLast(), maxByte)
	if r.GetFirst() > r.GetLast() {
		f.Add(at.field("last"), r.GetLast(), "at least first, %d", r.GetFirst())
	}
	return portRange{uint16(r.GetFirst()), uint16(r.GetLast())}
}

// ports reads a range of ports. No range is port 0, as in vpp-agent 3.5: more would let packets
// pass that an existing list drops.
func (f *faults) ports(at path, r *acl.ACL_Rule_IpRule_PortRange) portRange {
	f.atMost(at, "lower_port", r.GetLowerPort(), maxPort)
	f.atMost(at, "upper_port", r.GetUpperPort(), maxPort)
	if r.GetLowerPort() > r.GetUpperPort() {
		f.Add(at.field("upper_port"), r.GetUpperPort(), "at least lower_port, %d", r.GetLowerPort())
	}
	return portRange{uint16(r.GetLowerPort()), uint16(r.GetUpperPort())}
}

// macipRule converts a MACIP rule (VPP acl_types.api, macip_acl_rule). Empty addresses match
// all packets.
func (f *faults) macipRule(at path, r *acl.ACL_Rule) acl_types.MacipACLRule {
	if r.GetAction() == acl.ACL_Rule_REFLECT {
		f.Add(at.field("action"), r.GetAction().String(), "DENY or PERMIT: MACIP rules keep no state")
	}
	at = at.in("macip_rule")
	rule := r.GetMacipRule()
	out := acl_types.MacipACLRule{IsPermit: acl_types.ACLAction(r.GetAction())}
	source := netip.IPv4Unspecified()
	if text := rule.GetSourceAddress(); text != "" {
		parsed, err := netip.ParseAddr(text)
		if err != nil || parsed.Zone() != "" {
			f.Add(at.field("source_address"), text, `an address, such as "10.0.0.1" or "fd00::1"`)
		} else {
			source = parsed
		}
	}
	network, err := source.Prefix(int(min(rule.GetSourceAddressPrefix(), maxByte)))
	if err != nil {
		f.Add(at.field("source_address_prefix"), rule.GetSourceAddressPrefix(), "at most %d", source.BitLen())
	} else {
		out.SrcPrefix = vppwire.Prefix(network)
	}
	mac := func(name, text string) (out [6]byte) {
		if text == "" {
			return out
		}
		parsed, err := vppwire.MAC(text)
		if err != nil {
			f.Add(at.field(name), text, `a MAC address, such as "02:00:00:00:00:01"`)
		}
		return parsed
	}
	out.SrcMac, out.SrcMacMask = mac("source_mac_address", rule.GetSourceMacAddress()), mac("source_mac_address_mask", rule.GetSourceMacAddressMask())
	return out
}

// atMost checks the upper bound of a number.
func (f *faults) atMost(at path, field string, n, most uint32) {
	if n > most {
		f.Add(at.field(field), n, "at most %d", most)
	}
}
