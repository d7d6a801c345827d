package nat

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/keyplane/keyplane/proto/ligato/vpp/nat"
)

// noProtocol is the protocol of a mapping of all ports.
const noProtocol = 0

// numberOf returns the number of the IANA for one of the model. The model has only these three.
func numberOf(protocol nat.DNat44_Protocol) (number uint8, known bool) {
	switch protocol {
	case nat.DNat44_TCP:
		return 6, true
	case nat.DNat44_UDP:
		return 17, true
	case nat.DNat44_ICMP:
		return 1, true
	}
	return noProtocol, false
}

// protocolOf returns the model's number of a protocol. VPP may have mappings of others, which no
// value can declare.
func protocolOf(number uint8) (nat.DNat44_Protocol, bool) {
	for _, protocol := range []nat.DNat44_Protocol{nat.DNat44_TCP, nat.DNat44_UDP, nat.DNat44_ICMP} {
		if n, _ := numberOf(protocol); n == number {
			return protocol, true
		}
	}
	return nat.DNat44_TCP, number == noProtocol
}

// A place is the external side of a mapping. VPP has one mapping of each.
type place struct {
	addr     netip.Addr // the zero Addr: that of an interface
	link     string     // the interface
	port     uint16     // 0: all
	protocol uint8      // as the IANA numbers them; noProtocol with port 0
}

// A local is a local side. The port is 0 for a mapping of all ports. The probability is
// relative to the sum of all local sides, not a percentage.
type local struct {
	addr        netip.Addr
	port        uint16
	vrf         uint32
	probability uint8 // of a balanced mapping
}

// A mapping is a static or an identity mapping with all defaults filled in. Two equal mappings
// are the same to VPP. Exactly one of local, balanced and identity is its kind. It has only
// comparable fields, since sets of mappings are maps with it as their key.
type mapping struct {
	place
	local    local
	balanced string // several local sides, encoded by encode
	identity bool
	vrf      uint32 // of an identity mapping
	twice    nat.DNat44_StaticMapping_TwiceNatMode
	pool     netip.Addr // of twice-NAT; the zero Addr: any
	affinity uint32     // seconds; of a balanced mapping
}

// localSize is the size of an encoded local side. Its parts are 4 bytes of address, 2 of port,
// 4 of VRF and 1 of probability.
const localSize = 11

// encode makes a comparable value of local sides. Their order does not matter. Addresses must
// be IPv4: locals splits the text at fixed positions.
func encode(all []local) string {
	out := make([]string, 0, len(all))
	for _, l := range all {
		one := l.addr.AsSlice()
		one = binary.BigEndian.AppendUint16(one, l.port)
		one = binary.BigEndian.AppendUint32(one, l.vrf)
		out = append(out, string(append(one, l.probability)))
	}
	slices.Sort(out)
	return strings.Join(out, "")
}

// locals is the inverse of encode. It returns nil for a mapping with a single local side or
// none.
func (m mapping) locals() (out []local) {
	for one := range slices.Chunk([]byte(m.balanced), localSize) {
		out = append(out, local{
			addr: netip.AddrFrom4([4]byte(one[:4])), port: binary.BigEndian.Uint16(one[4:]), vrf: binary.BigEndian.Uint32(one[6:]), probability: one[10],
		})
	}
	return out
}

// mappingsOf returns the mappings of a value, and nil if one of their fields is invalid.
func mappingsOf(v *nat.DNat44) []mapping { return appendMappings(nil, v) }

// few is a number of mappings that most values do not exceed. A list of so many needs no memory
// of the heap in functions that do not keep it.
const few = 2

// appendMappings is mappingsOf in the memory of a list, which is empty.
func appendMappings(out []mapping, v *nat.DNat44) []mapping {
	var f faults
	out = f.mappings(out, v)
	if f.Err() != nil {
		return nil
	}
	return out
}

// Parts of a tag behind the label: VPP does not tell these settings otherwise. The format must
// stay: tags of a running VPP outlive an upgrade of the agent. The names are short, since they
// share the 63 bytes of a tag with the label.
const (
	tagMark     = "?"
	tagAffinity = "affinity="
	tagPool     = "pool="
	tagSelf     = "self"
	tagSplit    = "&"
)

// tag returns the tag of a mapping: the label of its value, and the settings that VPP does not
// tell. These are the affinity, the address of twice-NAT, and that a mapping of an interface's
// address is for packets from the local address itself.
func (m mapping) tag(label string) string {
	var more []string
	if m.affinity != 0 {
		more = append(more, tagAffinity+strconv.FormatUint(uint64(m.affinity), 10))
	}
	if m.pool.IsValid() {
		more = append(more, tagPool+m.pool.String())
	}
	if m.link != "" && m.twice == nat.DNat44_StaticMapping_SELF {
		more = append(more, tagSelf)
	}
	if len(more) == 0 {
		return label
	}
	return label + tagMark + strings.Join(more, tagSplit)
}

// parseTag returns the label in a tag, and the settings behind it. Text that is no setting
// belongs to the label. So a tag of another program is never read as settings.
func parseTag(tag string) (label string, affinity uint32, pool netip.Addr, self bool) {
	at := strings.LastIndex(tag, tagMark)
	if at < 0 {
		return tag, 0, pool, false
	}
	for part := range strings.SplitSeq(tag[at+len(tagMark):], tagSplit) {
		seconds, isAffinity := strings.CutPrefix(part, tagAffinity)
		address, isPool := strings.CutPrefix(part, tagPool)
		var err error
		switch {
		case isAffinity:
			var n uint64
			n, err = strconv.ParseUint(seconds, 10, 32)
			affinity = uint32(n)
		case isPool:
			pool, err = netip.ParseAddr(address)
		default:
			self = part == tagSelf
		}
		if err != nil || !isAffinity && !isPool && !self {
			return tag, 0, netip.Addr{}, false
		}
	}
	return tag[:at], affinity, pool, self
}

// valueOf returns the value that declares mappings.
func valueOf(label string, all []mapping) *nat.DNat44 {
	v := &nat.DNat44{Label: label}
	for _, m := range all {
		protocol, _ := protocolOf(m.protocol)
		if m.identity {
			v.IdMappings = append(v.IdMappings, &nat.DNat44_IdentityMapping{
				VrfId: m.vrf, Interface: m.link, IpAddress: textOf(m.addr), Port: uint32(m.port), Protocol: protocol,
			})
			continue
		}
		one := &nat.DNat44_StaticMapping{
			ExternalInterface: m.link, ExternalIp: textOf(m.addr), ExternalPort: uint32(m.port), Protocol: protocol,
			TwiceNat: m.twice, TwiceNatPoolIp: textOf(m.pool), SessionAffinity: m.affinity,
		}
		locals := m.locals()
		if m.balanced == "" {
			locals = []local{m.local}
		}
		for _, l := range locals {
			one.LocalIps = append(one.LocalIps, &nat.DNat44_StaticMapping_LocalIP{
				VrfId: l.vrf, LocalIp: l.addr.String(), LocalPort: uint32(l.port), Probability: uint32(l.probability),
			})
		}
		v.StMappings = append(v.StMappings, one)
	}
	return v
}

// textOf returns an address, or nothing for the zero Addr.
func textOf(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}
