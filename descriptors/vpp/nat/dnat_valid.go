package nat

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/ownership"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/nat"
)

// Bounds of mappings. VPP adds up probabilities in 8 bits, and tags have 63 bytes (VPP
// nat44_ed.api, string tag[64]).
const (
	maxPort        = 1<<16 - 1
	maxProbability = 1<<8 - 1
	maxTag         = 63
)

// validateDNAT checks a value: it is valid if all its mappings can be made.
func validateDNAT(_ string, v *nat.DNat44) error {
	var f faults
	all := f.mappings(make([]mapping, 0, few), v)
	f.unique(v, all)
	label := v.GetLabel()
	longest := len(label)
	for _, m := range all {
		longest = max(longest, len(m.tag(label)))
	}
	switch name, _, _, _ := parseTag(label); {
	case label == "":
		f.Add("label", "", "a name")
	case strings.ContainsRune(label, 0):
		f.Add("label", label, "a name without zero bytes: it is in the tag of each mapping in VPP")
	case ownership.WrongName(label) != "":
		f.Add("label", label, "%s", ownership.WrongName(label))
	case name != label:
		f.Add("label", label, "a name without %q at its end, which stands for settings in a tag of VPP", label[len(name):])
	case longest > maxTag:
		f.Add("label", label, "at most %d bytes (it has %d): it is in the tag of each mapping in VPP, with settings of %d bytes",
			maxTag-(longest-len(label)), len(label), longest-len(label))
	}
	return f.Err()
}

// A path is the place of a mapping in its value, or that of a local side in its mapping. Its
// text is made only for errors: values are converted several times, and each of their fields
// would need a text each time.
type path struct {
	identity bool
	mapping  int
	local    int // -1: the mapping
}

// String returns "st_mappings[0]" or "st_mappings[0].local_ips[1]".
func (p path) String() string {
	out := "st_mappings["
	if p.identity {
		out = "id_mappings["
	}
	out += strconv.Itoa(p.mapping) + "]"
	if p.local >= 0 {
		out += ".local_ips[" + strconv.Itoa(p.local) + "]"
	}
	return out
}

// field returns the path of a field.
func (p path) field(name string) string { return p.String() + "." + name }

// pathIn returns the path of mapping i of a value, in the order of faults.mappings.
func pathIn(v *nat.DNat44, i int) path {
	if n := i - len(v.GetStMappings()); n >= 0 {
		return path{identity: true, mapping: n, local: -1}
	}
	return path{mapping: i, local: -1}
}

// mappings converts the mappings of a value, static ones first. The result has one mapping for
// each in the value; it is complete only if there are no faults. It uses the memory of out, which
// is empty.
func (f *faults) mappings(out []mapping, v *nat.DNat44) []mapping {
	out = slices.Grow(out, len(v.GetStMappings())+len(v.GetIdMappings()))
	for i, s := range v.GetStMappings() {
		out = append(out, f.static(path{mapping: i, local: -1}, s))
	}
	for i, d := range v.GetIdMappings() {
		p := path{identity: true, mapping: i, local: -1}
		at := f.external(p, "interface", d.GetInterface(), "ip_address", d.GetIpAddress())
		at.port = uint16(d.GetPort())
		out = append(out, mapping{place: f.ofProtocol(p, at, d.GetProtocol()), identity: true, vrf: f.vrf(p, d.GetVrfId())})
	}
	return out
}

// normalizeDNAT removes the interface of balanced mappings that also have an address: VPP balances by address
// only.
func normalizeDNAT(_ string, v *nat.DNat44) (*nat.DNat44, []string) {
	var warnings []string
	for i, s := range v.GetStMappings() {
		if len(s.GetLocalIps()) < 2 || s.GetExternalInterface() == "" || s.GetExternalIp() == "" {
			continue
		}
		if warnings == nil {
			v = proto.CloneOf(v)
		}
		warnings = append(warnings, models.Ignored(pathIn(v, i).field("external_interface"), s.GetExternalInterface(), "VPP balances by address only, here external_ip"))
		v.StMappings[i].ExternalInterface = ""
	}
	return v, warnings
}

// unique checks that each place has one mapping. VPP adds a VRF to an identity mapping of the
// same place, and refuses any other second mapping.
func (f *faults) unique(v *nat.DNat44, all []mapping) {
	if len(all) < 2 { // as most values
		return
	}
	type key struct {
		place
		vrf uint32 // an identity mapping may have several
	}
	static, identity, inVRF := make(map[place]int, len(all)), map[place]int{}, map[key]int{}
	for i, m := range all {
		first, twice := static[m.place]
		if m.identity && !twice {
			first, twice = inVRF[key{m.place, m.vrf}]
		} else if !twice {
			first, twice = identity[m.place]
		}
		if twice && (m.link != "" || m.addr.IsValid()) {
			f.Add(pathIn(v, i).String(), nil, "each external address, port and protocol once; %s has them already", pathIn(v, first))
		}
		if m.identity {
			identity[m.place], inVRF[key{m.place, m.vrf}] = i, i
		} else {
			static[m.place] = i
		}
	}
}

// external converts the address of an external side. An interface wins over an address.
func (f *faults) external(p path, linkField, link, addrField, addr string) place {
	switch {
	case link != "":
		return place{link: link}
	case addr == "":
		f.Add(p.field(addrField), "", "an IPv4 address, or %s", linkField)
		return place{}
	}
	return place{addr: f.address(p, addrField, addr)}
}

// ofProtocol adds the protocol to an external side. It stays noProtocol if the port is 0: VPP
// then translates every protocol, and two such mappings that differ only in the protocol would
// be the same place.
func (f *faults) ofProtocol(p path, at place, protocol nat.DNat44_Protocol) place {
	number, known := numberOf(protocol)
	if !known {
		f.Add(p.field("protocol"), int32(protocol), "TCP, UDP or ICMP")
	}
	if at.port != 0 {
		at.protocol = number
	}
	return at
}

// address reads an IPv4 address. An invalid one is a fault, and gives the zero Addr.
func (f *faults) address(p path, field, text string) netip.Addr {
	a, err := netip.ParseAddr(text)
	if err != nil || !a.Is4() {
		return f.ipv4(p.field(field), text)
	}
	return a
}

// vrf checks the number of a VRF. VPP takes the largest number for any VRF, which a mapping
// cannot have.
func (f *faults) vrf(p path, id uint32) uint32 {
	if id == anyVRF {
		f.Add(p.field("vrf_id"), id, "a number below 4294967295")
	}
	return id
}

// static converts a static mapping. An invalid field leaves its zero value in the result.
func (f *faults) static(p path, s *nat.DNat44_StaticMapping) mapping {
	at := f.external(p, "external_interface", s.GetExternalInterface(), "external_ip", s.GetExternalIp())
	at.port = uint16(s.GetExternalPort())
	m := mapping{place: f.ofProtocol(p, at, s.GetProtocol()), twice: s.GetTwiceNat()}
	switch n := len(s.GetLocalIps()); n {
	case 0:
		f.Add(p.field("local_ips"), nil, "at least one")
	case 1: // as most mappings
		m.local = f.local(path{mapping: p.mapping}, s, s.GetLocalIps()[0])
	default:
		m.balanced, m.affinity = encode(f.locals(p, s)), s.GetSessionAffinity()
		if s.GetExternalInterface() != "" {
			f.Add(p.field("external_interface"), s.GetExternalInterface(), "no interface but external_ip: VPP balances by address only")
		}
		if s.GetExternalPort() == 0 {
			f.Add(p.field("external_port"), 0, "1 to %d: VPP balances ports only", maxPort)
		}
	}
	f.twice(p, s, &m)
	return m
}

// twice checks twice-NAT. It sets the pool address only in a combination that this package can
// send.
func (f *faults) twice(p path, s *nat.DNat44_StaticMapping, m *mapping) {
	mode := s.GetTwiceNat()
	switch {
	case mode == nat.DNat44_StaticMapping_DISABLED:
	case nat.DNat44_StaticMapping_TwiceNatMode_name[int32(mode)] == "":
		f.Add(p.field("twice_nat"), int32(mode), "DISABLED, ENABLED or SELF")
	case s.GetExternalPort() == 0:
		f.Add(p.field("twice_nat"), mode.String(), "DISABLED: external_port is 0, and VPP has no twice-NAT of all ports")
	}
	switch {
	case s.GetTwiceNatPoolIp() == "":
	case mode != nat.DNat44_StaticMapping_ENABLED || len(s.GetLocalIps()) > 1:
		f.Add(p.field("twice_nat_pool_ip"), s.GetTwiceNatPoolIp(), "no address: it needs twice_nat ENABLED and one of local_ips")
	default:
		m.pool = f.address(p, "twice_nat_pool_ip", s.GetTwiceNatPoolIp())
	}
}

// local converts one local side, without its probability.
func (f *faults) local(p path, s *nat.DNat44_StaticMapping, l *nat.DNat44_StaticMapping_LocalIP) local {
	one := local{addr: f.address(p, "local_ip", l.GetLocalIp()), vrf: f.vrf(p, l.GetVrfId())}
	port := uint16(l.GetLocalPort())
	if s.GetExternalPort() != 0 {
		if one.port = port; l.GetLocalPort() == 0 {
			f.Add(p.field("local_port"), 0, "1 to %d, as external_port is not 0", maxPort)
		}
	}
	return one
}

// locals converts several local sides. If all probabilities are 0, they are equal: VPP dies of a
// sum of 0 at the first packet. An invalid side is left out.
func (f *faults) locals(p path, s *nat.DNat44_StaticMapping) (out []local) {
	all := s.GetLocalIps()
	var sum uint32
	for _, l := range all {
		// Without the bound, the sum of huge numbers could overflow and look valid.
		sum += min(l.GetProbability(), maxProbability+1)
	}
	equal := uint32(0)
	if sum == 0 {
		equal, sum = 1, uint32(len(all))
	}
	if sum > maxProbability {
		f.Add(p.field("local_ips"), fmt.Sprint("probabilities of ", sum), "a sum of at most %d", maxProbability)
	}
	type key struct {
		addr netip.Addr
		port uint16
		vrf  uint32
	}
	seen := map[key]int{}
	for i, l := range all {
		p := path{mapping: p.mapping, local: i}
		one := f.local(p, s, l)
		one.probability = uint8(cmp.Or(l.GetProbability(), equal))
		if !one.addr.IsValid() {
			continue
		}
		k := key{one.addr, one.port, one.vrf}
		if first, twice := seen[k]; twice {
			f.Add(p.String(), nil, "each local address, port and VRF once; local_ips[%d] has them already", first)
		}
		seen[k] = i
		out = append(out, one)
	}
	return out
}
