package l2

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/internal/vppsim/core"
	"github.com/keyplane/keyplane/internal/vppwire"
)

// show lists bridge domains with their members and ARP entries, and then the cross-connects.
func (p *L2) show() string {
	var b strings.Builder
	for _, one := range p.domains() {
		name, owner := core.ParseTag(one.tag)
		fmt.Fprintf(&b, "%d %s flags %d age %d", one.id, name, one.flags, one.macAge)
		if owner != "" {
			b.WriteString(" of " + owner)
		}
		b.WriteByte('\n')
		for _, m := range one.members {
			fmt.Fprintf(&b, "  %s %s shg %d\n", p.vpp.NameOf(m.index), [...]string{"normal", "bvi", "uu-fwd"}[m.port], m.shg)
		}
		for _, e := range one.arps {
			fmt.Fprintf(&b, "  arp %s %s\n", vppwire.Addr(e.IP), e.Mac)
		}
	}
	for _, rx := range slices.Sorted(maps.Keys(p.crossConnect)) {
		fmt.Fprintf(&b, "xconnect %s to %s\n", p.vpp.NameOf(rx), p.vpp.NameOf(p.crossConnect[rx]))
	}
	return b.String()
}

// showFIB lists the entries of all L2 FIBs, including those of deleted bridge domains.
func (p *L2) showFIB() string {
	var lines []string
	for _, f := range p.fibs {
		for mac, e := range f.entries {
			bd := "deleted"
			if f.owner != nil {
				name, _ := core.ParseTag(f.owner.tag)
				bd = fmt.Sprintf("%d %s", f.owner.id, name)
			}
			where := "drop"
			if !e.FilterMac {
				where = p.vpp.NameOf(uint32(e.SwIfIndex))
			}
			lines = append(lines, fmt.Sprintf("%s %s %s static %t bvi %t\n", bd, mac, where, e.StaticMac, e.BviMac))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}
