package l2

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"go.fd.io/govpp/binapi/ethernet_types"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l2"
	"github.com/keyplane/keyplane/scheduler"
)

const (
	// longestName is what VPP keeps of a tag (VPP l2.api, string bd_tag[64]).
	maxNameLength = 63
	// mostByte is the largest MAC age and split horizon group (VPP l2.api, u8).
	maxByte = 255
)

func validateBridge(_ string, v *l2.BridgeDomain) error {
	var f faults
	switch name := v.GetName(); {
	case name == "":
		f.Add("name", name, "a name")
	case len(name) > maxNameLength:
		f.Add("name", name, "at most %d bytes (it has %d): it is the bridge domain's tag in VPP", maxNameLength, len(name))
	case strings.ContainsRune(name, 0):
		f.Add("name", name, "a name without zero bytes: it is the bridge domain's tag in VPP")
	case keys.MembersIn(name) != "":
		f.Add("name", name, "a name without %q, which the keys of its members are read by", keys.MembersIn(name))
	}
	if v.GetMacAge() > maxByte {
		f.Add("mac_age", v.GetMacAge(), "minutes, at most 255, or 0 for ever")
	}
	f.members(v.GetInterfaces())
	for i, e := range v.GetArpTerminationTable() {
		field := fmt.Sprintf("arp_termination_table[%d].", i)
		if a, err := netip.ParseAddr(e.GetIpAddress()); err != nil || a.Zone() != "" {
			f.Add(field+"ip_address", e.GetIpAddress(), `an address, such as "10.0.0.1" or "fd00::1"`)
		}
		f.mac(field+"phys_address", e.GetPhysAddress())
	}
	return f.Err()
}

func (f *faults) members(all []*l2.BridgeDomain_Interface) {
	seen, bvi := map[string]int{}, -1
	for i, m := range all {
		field := fmt.Sprintf("interfaces[%d].", i)
		first, twice := seen[m.GetName()]
		if twice && proto.Equal(m, all[first]) {
			continue // said twice is said
		}
		switch {
		case m.GetName() == "":
			f.Add(field+"name", "", "the name of an interface")
		case twice:
			f.Add(field+"name", m.GetName(), "each interface once, it is interfaces[%d] too, in another way", first)
		}
		seen[m.GetName()] = i
		if m.GetSplitHorizonGroup() > maxByte {
			f.Add(field+"split_horizon_group", m.GetSplitHorizonGroup(), "at most 255")
		}
		if !m.GetBridgedVirtualInterface() {
			continue
		}
		if bvi >= 0 {
			f.Add(field+"bridged_virtual_interface", true, "false: a bridge domain has one BVI, and that is interfaces[%d]", bvi)
		}
		bvi = i
	}
}

func (f *faults) mac(field, text string) {
	if _, err := vppwire.MAC(text); err != nil {
		f.Add(field, text, `a MAC address, such as "02:00:00:00:00:01"`)
	}
}

// flags is what a bridge domain is made with and cannot change.
type flags struct {
	flood, unknownFlood, forward, learn, arpTermination bool
	macAge                                              uint32
}

func flagsOf(v *l2.BridgeDomain) flags {
	return flags{v.GetFlood(), v.GetUnknownUnicastFlood(), v.GetForward(), v.GetLearn(), v.GetArpTermination(), v.GetMacAge()}
}

// equivalentBridge leaves out the members: they are derived values, and may wait.
func equivalentBridge(_ string, old, new *l2.BridgeDomain) bool {
	return flagsOf(old) == flagsOf(new) && slices.Equal(arpEntries(old), arpEntries(new))
}

func recreateBridge(_ string, old, new *l2.BridgeDomain, _ BridgeMeta) bool {
	return flagsOf(old) != flagsOf(new)
}

// An arpEntry is an answer that a bridge domain gives to ARP by itself.
type arpEntry struct {
	ip  netip.Addr
	mac ethernet_types.MacAddress
}

// arpEntries is the ARP termination table, sorted by address; of one address the last counts.
func arpEntries(v *l2.BridgeDomain) []arpEntry {
	byIP := map[netip.Addr]arpEntry{}
	for _, e := range v.GetArpTerminationTable() {
		ip, errIP := netip.ParseAddr(e.GetIpAddress())
		mac, errMAC := vppwire.MAC(e.GetPhysAddress())
		if errIP == nil && errMAC == nil {
			byIP[ip] = arpEntry{ip, mac}
		}
	}
	out := make([]arpEntry, 0, len(byIP))
	for _, e := range byIP {
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b arpEntry) int { return a.ip.Compare(b.ip) })
	return out
}

func membersOf(_ string, v *l2.BridgeDomain) []scheduler.KeyValue {
	var out []scheduler.KeyValue
	for _, m := range v.GetInterfaces() {
		out = append(out, scheduler.KeyValue{Key: keys.BridgeInterface(v.GetName(), m.GetName()), Value: m})
	}
	return out
}

func memberDependencies(key string, _ *l2.BridgeDomain_Interface) []scheduler.Dependency {
	_, name, _ := keys.ParseBridgeInterface(key)
	return []scheduler.Dependency{{Label: "interface-exists", Key: keys.InterfaceKey(name)}}
}

// recreateMember: its split horizon group can be changed in place, what it is there for
// cannot.
func recreateMember(_ string, old, new *l2.BridgeDomain_Interface, _ struct{}) bool {
	return old.GetBridgedVirtualInterface() != new.GetBridgedVirtualInterface()
}

func validateFIB(_ string, v *l2.FIBEntry) error {
	var f faults
	f.mac("phys_address", v.GetPhysAddress())
	if v.GetBridgeDomain() == "" {
		f.Add("bridge_domain", "", "the name of a bridge domain")
	}
	switch v.GetAction() {
	case l2.FIBEntry_FORWARD:
		if v.GetOutgoingInterface() == "" {
			f.Add("outgoing_interface", "", "the name of an interface, or action DROP")
		}
	case l2.FIBEntry_DROP:
	default:
		f.Add("action", int32(v.GetAction()), "FORWARD or DROP")
	}
	return f.Err()
}

// equivalentFIB: what is dropped is always static, and so is the entry of a BVI.
func equivalentFIB(_ string, old, new *l2.FIBEntry) bool {
	static := func(v *l2.FIBEntry) bool { return v.GetStaticConfig() || v.GetAction() == l2.FIBEntry_DROP }
	return vppwire.SameMAC(old.GetPhysAddress(), new.GetPhysAddress()) && old.GetAction() == new.GetAction() &&
		old.GetOutgoingInterface() == new.GetOutgoingInterface() && static(old) == static(new) &&
		old.GetBridgedVirtualInterface() == new.GetBridgedVirtualInterface()
}

func fibDependencies(_ string, v *l2.FIBEntry) []scheduler.Dependency {
	if v.GetAction() == l2.FIBEntry_DROP {
		return []scheduler.Dependency{{Label: "bridge-domain", Key: keys.BridgeDomain(v.GetBridgeDomain())}}
	}
	return []scheduler.Dependency{{Label: "bridged-interface", Key: keys.BridgeInterface(v.GetBridgeDomain(), v.GetOutgoingInterface())}}
}

func validateXConnect(_ string, v *l2.XConnectPair) error {
	var f faults
	if v.GetReceiveInterface() == "" {
		f.Add("receive_interface", "", "the name of an interface")
	}
	if v.GetTransmitInterface() == "" {
		f.Add("transmit_interface", "", "the name of an interface")
	}
	return f.Err()
}

func xconnectDependencies(_ string, v *l2.XConnectPair) []scheduler.Dependency {
	return []scheduler.Dependency{
		{Label: "rx-interface", Key: keys.InterfaceKey(v.GetReceiveInterface())},
		{Label: "tx-interface", Key: keys.InterfaceKey(v.GetTransmitInterface())},
	}
}
