package srv6

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ethernet_types"
	"go.fd.io/govpp/binapi/sr_types"

	"github.com/keyplane/keyplane/internal/vppsim/core"
	"github.com/keyplane/keyplane/internal/vppwire"
)

// The pages of this file have the real VPP's format: the agent reads them, because no message
// tells the same.

// showSource prints the source address. The agent cuts the line at "=".
func (p *plugin) showSource() string {
	return "SR encaps source addr = " + netip.AddrFrom16(p.source).String() + "\n"
}

// hasAD reports whether the plugin srv6-ad is loaded.
func (p *plugin) hasAD() bool { return !slices.Contains(p.vpp.Options.Without, "sr_ad") }

// showBehaviors prints the page as far as it concerns plugins. The agent looks for End.AD
// between tabs before it uses it.
func (p *plugin) showBehaviors() string {
	var b strings.Builder
	b.WriteString("SR LocalSIDs behaviors:\n-----------------------\n\nDefault behaviors:\n\tEnd\t-> Endpoint.\nPlugin behaviors:\n")
	if p.hasAD() {
		b.WriteString("\tEnd.AD\t-> Endpoint with dynamic proxy to SR-unaware appliance.\n\t\tParameters: 'nh <next-hop> oif <iface-out> iif <iface-in>'\n")
	}
	return b.String()
}

// titles are the behaviours as the page of local SIDs names them.
func titles() map[sr_types.SrBehavior]string {
	return map[sr_types.SrBehavior]string{
		sr_types.SR_BEHAVIOR_API_END: "End",
		sr_types.SR_BEHAVIOR_API_X:   "X (Endpoint with Layer-3 cross-connect)",
		sr_types.SR_BEHAVIOR_API_T:   "T (Endpoint with specific IPv6 table lookup)",
		sr_types.SR_BEHAVIOR_API_DX2: "DX2 (Endpoint with decapulation and Layer-2 cross-connect)",
		sr_types.SR_BEHAVIOR_API_DX4: "DX4 (Endpoint with decapsulation and IPv4 cross-connect)",
		sr_types.SR_BEHAVIOR_API_DX6: "DX6 (Endpoint with decapsulation and IPv6 cross-connect)",
		sr_types.SR_BEHAVIOR_API_DT4: "DT4 (Endpoint with decapsulation and specific IPv4 table lookup)",
		sr_types.SR_BEHAVIOR_API_DT6: "DT6 (Endpoint with decapsulation and specific IPv6 table lookup)",
		behaviorAD:                   "End.AD (Endpoint with dynamic proxy to SR-unaware appliance)",
	}
}

// showSIDs prints the local SIDs (VPP sr_localsid.c, show_sr_localsid_command_fn). VPP 22.02
// prints no prefix length.
func (p *plugin) showSIDs() string {
	lines := []string{"SRv6 - My LocalSID Table:", "========================="}
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for _, s := range p.sids {
		if s == nil {
			continue
		}
		if s.behavior == sr_types.SR_BEHAVIOR_API_DX2 && s.vlan != core.None && p.vpp.Before("26.06") { // 26.06 stores no tag
			add("Unsupported yet. (DX2 with egress VLAN rewrite)")
		} else {
			length := "/128"
			if p.vpp.Before("22.06") {
				length = ""
			}
			add("\tAddress: \t%s%s\n\tBehavior: \t%s", s.sid, length, titles()[s.behavior])
		}
		switch {
		case s.behavior == behaviorAD:
			if s.proxied.IsValid() {
				add("\tNext-hop:\t%s", s.proxied)
			}
			add("\tOutgoing iface:\t%s\n\tIncoming iface:\t%s", p.vpp.NameOf(s.out), p.vpp.NameOf(s.from))
		case lookupBehavior(s.behavior):
			add("\tTable: \t%d", s.via)
		case viaBehavior(s.behavior):
			add("\tIface:  \t%s", p.vpp.NameOf(s.via))
		}
		if nextBehavior(s.behavior) {
			add("\tNext hop: \t%s", vppwire.Addr(s.next))
		}
		if s.psp {
			add("\tPSP: \tTrue")
		}
		add("\tGood traffic: \t[0 packets : 0 bytes]\n\tBad traffic:  \t[0 packets : 0 bytes]\n--------------------")
	}
	return strings.Join(lines, "\n") + "\n"
}

// commandSID runs "sr localsid" for End.AD, and for deletions. As in the real VPP, a behaviour
// that cannot be parsed becomes End.
func (p *plugin) commandSID(words []string) (string, core.Errno) {
	s, deletion := &localSID{}, false
	for i := 0; i < len(words); i++ {
		next := ""
		if i+1 < len(words) {
			next = words[i+1]
		}
		switch words[i] {
		case "del":
			deletion = true
		case "prefix":
			prefix, _ := netip.ParsePrefix(next)
			s.sidKey = sidKey{prefix.Addr(), prefix.Bits()}
			i++
		case "address":
			s.sid, _ = netip.ParseAddr(next)
			i++
		case "fib-table":
			table, _ := strconv.ParseUint(next, 10, 32)
			s.table = uint32(table)
			i++
		case "behavior":
			p.parseBehavior(s, words[i+1:])
			i = len(words)
		}
	}
	if deletion {
		return said(p.removeSID(s.sidKey, s.table), s)
	}
	text, errno := said(p.createSID(s), s)
	if errno == core.OK && s.behavior != behaviorAD {
		return "unknown input `.ad'\n", api.UNSPECIFIED // of "end.ad", VPP has read "end"
	}
	return text, errno
}

// said returns the output of a command about a SID. Each failure has the same return value. VPP
// reports it as UNSPECIFIED, so a client has to read the text.
func said(errno core.Errno, s *localSID) (string, core.Errno) {
	text := map[core.Errno]string{
		sidExists:  "Identical localsid already exists. Requested localsid not created.",
		noSID:      "The requested localsid could not be deleted. SR localsid not found",
		noTable:    fmt.Sprintf("FIB table %d does not exist", s.table),
		routeThere: "There is already one FIB entry for therequested localsid non segment routing related",
		noCreation: "Error on the plugin based localsid creation.",
	}[errno]
	if text == "" {
		return "", errno
	}
	return "sr localsid: " + text + "\n", api.UNSPECIFIED
}

// createSID adds a local SID. The interface by which packets come back must be hardware.
func (p *plugin) createSID(s *localSID) core.Errno {
	if s.behavior == behaviorAD && p.find(s.sidKey) < 0 && p.tables.HasTable(true, s.table) {
		from := p.vpp.Interface(s.from)
		if from == nil || from.SubID != 0 {
			return noCreation
		}
		if !s.proxied.IsValid() && from.MAC == (ethernet_types.MacAddress{}) {
			return core.Crash // VPP changes a flag that only Ethernet interfaces have
		}
	}
	return p.addSID(s)
}

// parseBehavior reads End.AD with its parameters. It leaves End if a parameter is missing or the
// plugin is not loaded.
func (p *plugin) parseBehavior(s *localSID, words []string) {
	s.behavior = sr_types.SR_BEHAVIOR_API_END
	if len(words) == 0 || words[0] != "end.ad" || !p.hasAD() {
		return
	}
	s.from, s.out = core.None, core.None
	for i := 1; i+1 < len(words); i += 2 {
		switch words[i] {
		case "nh":
			s.proxied, _ = netip.ParseAddr(words[i+1])
		case "oif":
			s.out = p.named(words[i+1])
		case "iif":
			s.from = p.named(words[i+1])
		}
	}
	if s.from != core.None && s.out != core.None {
		s.behavior = behaviorAD
	}
}

// named returns the index of the interface with a name, or None.
func (p *plugin) named(name string) uint32 {
	for _, i := range p.vpp.Interfaces() {
		if i.Name == name {
			return i.Index
		}
	}
	return core.None
}
