package vppsim

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/dhcp"
	"go.fd.io/govpp/binapi/ip_types"

	"github.com/keyplane/keyplane/internal/vppwire"
)

// A dhcpProxy is where the DHCP messages of a table are passed on to.
type dhcpProxy struct {
	source  netip.Addr // the first one stays
	servers []proxyServer
}

type proxyServer struct {
	table   uint32
	address netip.Addr
}

func dhcpProxyMessages() []entry {
	return []entry{
		call(changeDHCPProxy),
		dump(func(w *world, q *dhcp.DHCPProxyDump, yield func(dhcp.DHCPProxyDetails)) {
			for _, t := range w.tables.order {
				if p := w.dhcpProxies[t.tableKey]; p != nil && t.ipv6 == q.IsIP6 {
					yield(p.details(t.tableKey))
				}
			}
		}),
	}
}

// details have addresses without their IP version, which one field tells of all.
func (p *dhcpProxy) details(key tableKey) dhcp.DHCPProxyDetails {
	bare := func(a netip.Addr) ip_types.Address { return ip_types.Address{Un: vppwire.Address(a).Un} }
	d := dhcp.DHCPProxyDetails{RxVrfID: key.id, IsIPv6: key.ipv6, VssType: dhcp.VSS_TYPE_API_INVALID, DHCPSrcAddress: bare(p.source)}
	for _, s := range p.servers {
		d.Servers = append(d.Servers, dhcp.DHCPServer{ServerVrfID: s.table, DHCPServer: bare(s.address)})
	}
	return d
}

// changeDHCPProxy makes tables that are not there, for as long as it needs them. To delete
// what is not there is fine.
func changeDHCPProxy(w *world, q *dhcp.DHCPProxyConfig, _ *dhcp.DHCPProxyConfigReply) errno {
	source, server := vppwire.Addr(q.DHCPSrcAddress), vppwire.Addr(q.DHCPServer)
	switch {
	case q.DHCPSrcAddress.Af != q.DHCPServer.Af:
		return api.INVALID_ARGUMENT
	case server.IsUnspecified():
		return api.INVALID_DST_ADDRESS
	case source.IsUnspecified():
		return api.INVALID_SRC_ADDRESS
	}
	rx, s := tableKey{source.Is6(), q.RxVrfID}, proxyServer{q.ServerVrfID, server}
	p := w.dhcpProxies[rx]
	switch {
	case q.IsAdd && p == nil:
		w.dhcpProxies[rx] = &dhcpProxy{source: source, servers: []proxyServer{s}}
	case q.IsAdd && !slices.Contains(p.servers, s):
		p.servers = append(p.servers, s)
	case !q.IsAdd && p != nil:
		if p.servers = slices.DeleteFunc(p.servers, func(o proxyServer) bool { return o == s }); len(p.servers) == 0 {
			delete(w.dhcpProxies, rx)
		}
	}
	if q.IsAdd {
		w.tables.need(rx)
		w.tables.need(tableKey{rx.ipv6, s.table})
	}
	w.tables.unboundIfDeleted(w)
	return ok
}

// need makes a table that stays only as long as something uses it.
func (all *tables) need(key tableKey) {
	if all.byKey[key] == nil {
		all.add(key, "")
		all.byKey[key].deleted = true
	}
}

// passesOn tells whether a proxy uses the table.
func (w *world) passesOn(t *fib) bool {
	for rx, p := range w.dhcpProxies {
		if rx == t.tableKey || rx.ipv6 == t.ipv6 && slices.ContainsFunc(p.servers, func(s proxyServer) bool { return s.table == t.id }) {
			return true
		}
	}
	return false
}

func (w *world) showDHCPProxies() string {
	var b strings.Builder
	for _, t := range w.tables.order {
		if p := w.dhcpProxies[t.tableKey]; p != nil {
			fmt.Fprintf(&b, "%s src %s", t.name, p.source)
			for _, s := range p.servers {
				fmt.Fprintf(&b, " %d/%s", s.table, s.address)
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}
