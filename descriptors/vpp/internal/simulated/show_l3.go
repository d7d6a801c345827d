package simulated

import (
	"cmp"
	"fmt"
	"slices"

	"go.fd.io/govpp/binapi/arp"
	"go.fd.io/govpp/binapi/l3xc"
	"go.fd.io/govpp/binapi/teib"

	"github.com/keyplane/keyplane/internal/vppwire"
)

// nameOf is the name of an interface; of one that is gone it is its number.
func nameOf(names map[uint32]string, index uint32) string {
	return cmp.Or(names[index], fmt.Sprintf("DELETED(%d)", index))
}

// proxies lists the ranges of proxy ARP, and the interfaces that answer.
func (r *reader) proxies() (lines []string) {
	for _, d := range all[arp.ProxyArpDetails](r, &arp.ProxyArpDump{}) {
		lines = append(lines, fmt.Sprintf("table %d %s to %s", d.Proxy.TableID, d.Proxy.Low, d.Proxy.Hi))
	}
	names := r.names()
	for _, d := range all[arp.ProxyArpIntfcDetails](r, &arp.ProxyArpIntfcDump{}) {
		lines = append(lines, nameOf(names, d.SwIfIndex))
	}
	slices.Sort(lines)
	return lines
}

// crossConnects lists the layer 3 cross-connects with their paths.
func (r *reader) crossConnects() (lines []string) {
	names := r.names()
	for _, d := range all[l3xc.L3xcDetails](r, &l3xc.L3xcDump{SwIfIndex: none}) {
		lines = append(lines, fmt.Sprintf("%s by %d paths", nameOf(names, uint32(d.L3xc.SwIfIndex)), len(d.L3xc.Paths)))
	}
	slices.Sort(lines)
	return lines
}

// endpoints lists the TEIB entries.
func (r *reader) endpoints() (lines []string) {
	names := r.names()
	for _, d := range all[teib.TeibDetails](r, &teib.TeibDump{}) {
		lines = append(lines, fmt.Sprintf("%s %s via %s", nameOf(names, uint32(d.Entry.SwIfIndex)), vppwire.Addr(d.Entry.Peer), vppwire.Addr(d.Entry.Nh)))
	}
	slices.Sort(lines)
	return lines
}
