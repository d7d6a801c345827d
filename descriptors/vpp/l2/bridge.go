package l2

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"go.fd.io/govpp/binapi/ethernet_types"
	vppl2 "go.fd.io/govpp/binapi/l2"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/ownership"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l2"
	"github.com/keyplane/keyplane/scheduler"
)

// validateBridge checks a bridge domain. Values that VPP's message cannot hold would
// otherwise be truncated.
func validateBridge(_ string, v *l2.BridgeDomain) error {
	var f faults
	switch name := v.GetName(); {
	case name == "":
		f.Add("name", name, "a name")
	case strings.ContainsRune(name, 0):
		f.Add("name", name, "a name without zero bytes: it is the bridge domain's tag in VPP")
	case ownership.WrongName(name) != "":
		f.Add("name", name, "%s", ownership.WrongName(name))
	case !keys.IsClean(name):
		f.Add("name", name, keys.CleanName)
	case keys.MembersIn(name) != "":
		f.Add("name", name, "a name without %q, which separates the parts of its members' keys", keys.MembersIn(name))
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

// members checks the interfaces of a bridge domain. The same interface may be listed twice
// if both entries are equal.
func (f *faults) members(all []*l2.BridgeDomain_Interface) {
	seen, bvi := map[string]int{}, -1
	for i, m := range all {
		field := fmt.Sprintf("interfaces[%d].", i)
		first, twice := seen[m.GetName()]
		if twice && proto.Equal(m, all[first]) {
			continue // a repeated entry has no effect
		}
		switch {
		case m.GetName() == "":
			f.Add(field+"name", "", "the name of an interface")
		case twice:
			f.Add(field+"name", m.GetName(), "each interface once; interfaces[%d] has it with other settings", first)
		}
		seen[m.GetName()] = i
		if !m.GetBridgedVirtualInterface() {
			continue
		}
		if bvi >= 0 {
			f.Add(field+"bridged_virtual_interface", true, "false: a bridge domain can have one BVI, which is interfaces[%d]", bvi)
		}
		bvi = i
	}
}

// mac checks a MAC address.
func (f *faults) mac(field, text string) {
	if _, err := vppwire.MAC(text); err != nil {
		f.Add(field, text, `a MAC address, such as "02:00:00:00:00:01"`)
	}
}

// settings are those of a bridge domain itself, apart from its members and tables.
type settings struct {
	flags  vppl2.BdFlags
	macAge uint32
}

// settingsOf returns the settings of v.
func settingsOf(v *l2.BridgeDomain) settings {
	s := settings{macAge: v.GetMacAge()}
	for flag, on := range map[vppl2.BdFlags]bool{
		vppl2.BRIDGE_API_FLAG_FLOOD: v.GetFlood(), vppl2.BRIDGE_API_FLAG_UU_FLOOD: v.GetUnknownUnicastFlood(), vppl2.BRIDGE_API_FLAG_FWD: v.GetForward(),
		vppl2.BRIDGE_API_FLAG_LEARN: v.GetLearn(), vppl2.BRIDGE_API_FLAG_ARP_TERM: v.GetArpTermination(),
	} {
		if on {
			s.flags |= flag
		}
	}
	return s
}

// equivalentBridge ignores the members: they are derived values with their own comparison.
func equivalentBridge(_ string, old, new *l2.BridgeDomain) bool {
	return settingsOf(old) == settingsOf(new) && slices.Equal(arpEntries(old), arpEntries(new))
}

// An arpEntry is an entry of the ARP termination table: VPP answers ARP requests for ip with
// mac.
type arpEntry struct {
	ip  netip.Addr
	mac ethernet_types.MacAddress
}

// arpEntries returns the ARP termination table sorted by address. If an address is listed
// several times, the last entry is used, as in VPP.
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

// membersOf derives the memberships of the interfaces.
func membersOf(_ string, v *l2.BridgeDomain) []scheduler.KeyValue {
	var out []scheduler.KeyValue
	for _, m := range v.GetInterfaces() {
		out = append(out, scheduler.KeyValue{Key: keys.BridgeMembers.Key(v.GetName(), m.GetName()), Value: m})
	}
	return out
}

// memberDependencies requires the interface. The bridge domain is the base value and exists
// already.
func memberDependencies(key string, _ *l2.BridgeDomain_Interface) []scheduler.Dependency {
	_, name, _ := keys.BridgeMembers.Parse(key)
	return []scheduler.Dependency{{Label: "interface-exists", Key: keys.Interface(name).Key()}}
}

// recreateMember: VPP changes the split horizon group in place, but not the port type
// (normal or BVI).
func recreateMember(_ string, old, new *l2.BridgeDomain_Interface, _ struct{}) bool {
	return old.GetBridgedVirtualInterface() != new.GetBridgedVirtualInterface()
}

// validateFIB checks an L2 FIB entry.
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

// equivalentFIB treats entries that drop as static, and ignores the case of MAC addresses:
// VPP reports them so.
func equivalentFIB(_ string, old, new *l2.FIBEntry) bool {
	static := func(v *l2.FIBEntry) bool { return v.GetStaticConfig() || v.GetAction() == l2.FIBEntry_DROP }
	return vppwire.SameMAC(old.GetPhysAddress(), new.GetPhysAddress()) && old.GetAction() == new.GetAction() &&
		old.GetOutgoingInterface() == new.GetOutgoingInterface() && static(old) == static(new) &&
		old.GetBridgedVirtualInterface() == new.GetBridgedVirtualInterface()
}

// fibDependencies requires the outgoing interface in the bridge domain. VPP keeps an entry
// when its interface leaves the bridge domain, so the entry must be deleted before. An entry that
// was found may have no interface, because somebody deleted it. It still leaves before its bridge
// domain: VPP gives the entries of a deleted one to the next.
func fibDependencies(_ string, v *l2.FIBEntry) []scheduler.Dependency {
	if v.GetOutgoingInterface() == "" || v.GetAction() == l2.FIBEntry_DROP {
		return []scheduler.Dependency{{Label: "bridge-domain", Key: keys.BridgeDomain(v.GetBridgeDomain())}}
	}
	return []scheduler.Dependency{{Label: "bridged-interface", Key: keys.BridgeMembers.Key(v.GetBridgeDomain(), v.GetOutgoingInterface())}}
}

// validateXConnect checks that both interfaces are given.
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

// xconnectDependencies requires both interfaces.
func xconnectDependencies(_ string, v *l2.XConnectPair) []scheduler.Dependency {
	return []scheduler.Dependency{
		{Label: "rx-interface", Key: keys.Interface(v.GetReceiveInterface()).Key()},
		{Label: "tx-interface", Key: keys.Interface(v.GetTransmitInterface()).Key()},
	}
}
