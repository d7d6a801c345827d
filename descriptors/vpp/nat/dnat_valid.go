package nat

import (
	"cmp"
	"fmt"
	"net/netip"

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
	all := f.mappings(v)
	label := v.GetLabel()
	longest := len(label)
	for _, m := range all {
		longest = max(longest, len(m.tag(label)))
	}
	switch name, _, _, _ := parseTag(label); {
	case label == "":
		f.Add("label", "", "a name")
	case name != label:
		f.Add("label", label, "a name without %q at its end, which stands for settings in a tag of VPP", label[len(name):])
	case longest > maxTag:
		f.Add("label", label, "at most %d bytes (it has %d): it is in the tag of each mapping in VPP, with settings of %d bytes",
			maxTag-(longest-len(label)), len(label), longest-len(label))
	}
	return f.Err()
}

// mappings converts the mappings of a value. Faults name the field by its path. The result is
// complete only if there are no faults.
func (f *faults) mappings(v *nat.DNat44) (out []mapping) {
	// VPP adds a VRF to an identity mapping of the same place, and refuses any other second
	// mapping.
	type key struct {
		place
		vrf uint32 // an identity mapping may have several
	}
	static, identity, inVRF := map[place]string{}, map[place]string{}, map[key]string{}
	alone := len(v.GetStMappings())+len(v.GetIdMappings()) == 1
	add := func(field string, m mapping) {
		if alone { // as most values; this is called several times for each
			out = append(out, m)
			return
		}
		first, twice := static[m.place]
		if m.identity && !twice {
			first, twice = inVRF[key{m.place, m.vrf}]
		} else if !twice {
			first, twice = identity[m.place]
		}
		if twice && (m.link != "" || m.addr.IsValid()) {
			f.Add(field, nil, "each external address, port and protocol once; %s has them already", first)
		}
		if m.identity {
			identity[m.place], inVRF[key{m.place, m.vrf}] = field, field
		} else {
			static[m.place] = field
		}
		out = append(out, m)
	}
	for i, s := range v.GetStMappings() {
		field := fmt.Sprintf("st_mappings[%d]", i)
		add(field, f.static(field+".", s))
	}
	for i, d := range v.GetIdMappings() {
		field := fmt.Sprintf("id_mappings[%d]", i)
		add(field, mapping{
			place:    f.place(field+".", "interface", d.GetInterface(), "ip_address", d.GetIpAddress(), "port", d.GetPort(), d.GetProtocol()),
			identity: true, vrf: f.vrf(field+".vrf_id", d.GetVrfId()),
		})
	}
	return out
}

// place converts an external side. An interface wins over an address. The protocol stays
// noProtocol if the port is 0: VPP then translates every protocol, and two such mappings that
// differ only in the protocol would be the same place.
func (f *faults) place(field, linkField, link, addrField, addr, portField string, port uint32, protocol nat.DNat44_Protocol) place {
	out := place{link: link, port: f.port(field+portField, port)}
	if link == "" {
		if addr == "" {
			f.Add(field+addrField, "", "an IPv4 address, or %s", linkField)
		} else {
			out.addr = f.ipv4(field+addrField, addr)
		}
	}
	number, known := protocolNumbers[protocol]
	if !known {
		f.Add(field+"protocol", int32(protocol), "TCP, UDP or ICMP")
	}
	if out.port != 0 {
		out.protocol = number
	}
	return out
}

// port checks a port.
func (f *faults) port(field string, n uint32) uint16 {
	f.atMost(field, n, maxPort)
	return uint16(n)
}

// vrf checks the number of a VRF. VPP takes the largest number for any VRF, which a mapping
// cannot have.
func (f *faults) vrf(field string, id uint32) uint32 {
	if id == anyVRF {
		f.Add(field, id, "a number below 4294967295")
	}
	return id
}

// static converts a static mapping. An invalid field leaves its zero value in the result.
func (f *faults) static(field string, s *nat.DNat44_StaticMapping) mapping {
	m := mapping{
		place: f.place(field, "external_interface", s.GetExternalInterface(), "external_ip", s.GetExternalIp(), "external_port", s.GetExternalPort(), s.GetProtocol()),
		twice: s.GetTwiceNat(),
	}
	locals := f.locals(field, s)
	switch len(locals) {
	case 0:
		f.Add(field+"local_ips", nil, "at least one")
	case 1:
		m.local = locals[0]
	default:
		m.balanced, m.affinity = encode(locals), s.GetSessionAffinity()
		if s.GetExternalInterface() != "" {
			f.Add(field+"external_interface", s.GetExternalInterface(), "no interface but external_ip: VPP balances by address only")
		}
		if s.GetExternalPort() == 0 {
			f.Add(field+"external_port", 0, "1 to %d: VPP balances ports only", maxPort)
		}
	}
	f.twice(field, s, len(locals), &m)
	return m
}

// twice checks twice-NAT. It sets the pool address only in a combination that this package can
// send.
func (f *faults) twice(field string, s *nat.DNat44_StaticMapping, locals int, m *mapping) {
	switch {
	case nat.DNat44_StaticMapping_TwiceNatMode_name[int32(s.GetTwiceNat())] == "":
		f.Add(field+"twice_nat", int32(s.GetTwiceNat()), "DISABLED, ENABLED or SELF")
	case s.GetTwiceNat() != nat.DNat44_StaticMapping_DISABLED && s.GetExternalPort() == 0:
		f.Add(field+"twice_nat", s.GetTwiceNat().String(), "DISABLED: external_port is 0, and VPP has no twice-NAT of all ports")
	}
	switch {
	case s.GetTwiceNatPoolIp() == "":
	case s.GetTwiceNat() != nat.DNat44_StaticMapping_ENABLED || locals > 1:
		f.Add(field+"twice_nat_pool_ip", s.GetTwiceNatPoolIp(), "no address: it needs twice_nat ENABLED and one of local_ips")
	default:
		m.pool = f.ipv4(field+"twice_nat_pool_ip", s.GetTwiceNatPoolIp())
	}
}

// locals converts the local sides. If all probabilities are 0, they are equal: VPP dies of a sum
// of 0 at the first packet.
func (f *faults) locals(field string, s *nat.DNat44_StaticMapping) (out []local) {
	all := s.GetLocalIps()
	var sum uint32
	for _, l := range all {
		// Without the bound, the sum of huge numbers could overflow and look valid.
		sum += min(l.GetProbability(), maxProbability+1)
	}
	equal := uint32(0)
	if sum == 0 && len(all) > 1 {
		equal, sum = 1, uint32(len(all))
	}
	if sum > maxProbability && len(all) > 1 {
		f.Add(field+"local_ips", fmt.Sprint("probabilities of ", sum), "a sum of at most %d", maxProbability)
	}
	type key struct {
		addr netip.Addr
		port uint16
		vrf  uint32
	}
	seen := map[key]int{}
	for i, l := range all {
		field := fmt.Sprintf("%slocal_ips[%d]", field, i)
		one := local{addr: f.ipv4(field+".local_ip", l.GetLocalIp()), vrf: f.vrf(field+".vrf_id", l.GetVrfId())}
		port := f.port(field+".local_port", l.GetLocalPort())
		if s.GetExternalPort() != 0 {
			if one.port = port; l.GetLocalPort() == 0 {
				f.Add(field+".local_port", 0, "1 to %d, as external_port is not 0", maxPort)
			}
		}
		if len(all) > 1 {
			one.probability = uint8(cmp.Or(l.GetProbability(), equal))
		}
		if len(all) > 1 {
			k := key{one.addr, one.port, one.vrf}
			if first, twice := seen[k]; twice && one.addr.IsValid() {
				f.Add(field, nil, "each local address, port and VRF once; local_ips[%d] has them already", first)
			}
			seen[k] = i
		}
		if one.addr.IsValid() {
			out = append(out, one)
		}
	}
	return out
}
