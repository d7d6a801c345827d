package acl

import (
	"fmt"
	"net/netip"

	"go.fd.io/govpp/binapi/acl_types"
	"go.fd.io/govpp/binapi/ip_types"

	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/proto/ligato/vpp/acl"
)

// nameOf returns the name of a list by its tag. A list without a tag is not ours. Its number
// makes the name unique. Two kinds of lists have numbers of their own, so the name has the kind
// too.
func nameOf(tag string, index uint32, macip bool) string {
	switch {
	case tag != "":
		return tag
	case macip:
		return fmt.Sprintf("UNTAGGED-MACIP-%d", index)
	}
	return fmt.Sprintf("UNTAGGED-%d", index)
}

// ipRuleFrom is the inverse of faults.ipRule: it returns a rule that converts to r. VPP has no
// mark for "not given", so a range of all ports counts as none.
func ipRuleFrom(r acl_types.ACLRule) *acl.ACL_Rule {
	rule := &acl.ACL_Rule_IpRule{Ip: &acl.ACL_Rule_IpRule_Ip{
		SourceNetwork: networkFrom(r.SrcPrefix), DestinationNetwork: networkFrom(r.DstPrefix),
	}}
	source, destination := portRange{r.SrcportOrIcmptypeFirst, r.SrcportOrIcmptypeLast}, portRange{r.DstportOrIcmpcodeFirst, r.DstportOrIcmpcodeLast}
	isWhole := source == portRange{0, maxPort} && destination == source && r.TCPFlagsMask == 0 && r.TCPFlagsValue == 0
	switch {
	case isWhole:
		rule.Ip.Protocol = uint32(r.Proto)
	case r.Proto == protoICMP || r.Proto == protoICMPv6:
		rule.Icmp = &acl.ACL_Rule_IpRule_Icmp{Icmpv6: r.Proto == protoICMPv6, IcmpTypeRange: source.icmp(), IcmpCodeRange: destination.icmp()}
	case r.Proto == protoTCP:
		rule.Tcp = &acl.ACL_Rule_IpRule_Tcp{
			SourcePortRange: source.ports(), DestinationPortRange: destination.ports(),
			TcpFlagsMask: uint32(r.TCPFlagsMask), TcpFlagsValue: uint32(r.TCPFlagsValue),
		}
	case r.Proto == protoUDP:
		rule.Udp = &acl.ACL_Rule_IpRule_Udp{SourcePortRange: source.ports(), DestinationPortRange: destination.ports()}
	default:
		rule.Ip.Protocol = uint32(r.Proto)
	}
	return &acl.ACL_Rule{Action: acl.ACL_Rule_Action(r.IsPermit), IpRule: rule}
}

// icmp returns a range of ICMP types or codes as a value.
func (p portRange) icmp() *acl.ACL_Rule_IpRule_Icmp_Range {
	return &acl.ACL_Rule_IpRule_Icmp_Range{First: uint32(p.first), Last: uint32(p.last)}
}

// ports returns a range of ports as a value. A full range is written out, because a missing one
// means port 0.
func (p portRange) ports() *acl.ACL_Rule_IpRule_PortRange {
	return &acl.ACL_Rule_IpRule_PortRange{LowerPort: uint32(p.first), UpperPort: uint32(p.last)}
}

// networkFrom returns the text of a network. "Any" of IPv4 is the default, and empty.
func networkFrom(p ip_types.Prefix) string {
	network := vppwire.PrefixOf(p)
	if network == netip.PrefixFrom(netip.IPv4Unspecified(), 0) {
		return ""
	}
	return network.String()
}

// macipRuleFrom is the inverse of faults.macipRule. It writes out addresses that the declaration
// may leave empty. Lists are compared in VPP's form, so this makes no difference.
func macipRuleFrom(r acl_types.MacipACLRule) *acl.ACL_Rule {
	source := vppwire.PrefixOf(r.SrcPrefix)
	return &acl.ACL_Rule{Action: acl.ACL_Rule_Action(r.IsPermit), MacipRule: &acl.ACL_Rule_MacIpRule{
		SourceAddress: source.Addr().String(), SourceAddressPrefix: uint32(source.Bits()),
		SourceMacAddress: r.SrcMac.String(), SourceMacAddressMask: r.SrcMacMask.String(),
	}}
}
