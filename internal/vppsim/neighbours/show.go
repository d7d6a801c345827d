package neighbours

import (
	"fmt"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/internal/vppwire"
)

// show prints all neighbours, sorted.
func (p *plugin) show() string {
	var lines []string
	for key, n := range p.neighbours {
		lines = append(lines, fmt.Sprintf("%s %s %s static %t\n", p.vpp.NameOf(key.index), key.address, n.MacAddress, isStatic(n)))
	}
	return sorted(lines)
}

// showProxies prints ranges and interfaces, sorted.
func (p *plugin) showProxies() string {
	var lines []string
	for _, r := range p.proxyRanges {
		lines = append(lines, fmt.Sprintf("table %d %s to %s\n", r.TableID, r.Low, r.Hi))
	}
	for index := range p.proxying {
		lines = append(lines, p.vpp.NameOf(index)+"\n")
	}
	return sorted(lines)
}

// showPeers prints all TEIB entries, sorted.
func (p *plugin) showPeers() string {
	var lines []string
	for key, e := range p.peers {
		lines = append(lines, fmt.Sprintf("%s %s via %s\n", p.vpp.NameOf(key.index), key.address, vppwire.Addr(e.Nh)))
	}
	return sorted(lines)
}

// sorted joins lines in a stable order; the maps behind them have none.
func sorted(lines []string) string {
	slices.Sort(lines)
	return strings.Join(lines, "")
}
