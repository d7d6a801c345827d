package dhcp

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/dhcp"
	"go.fd.io/govpp/binapi/ip_types"

	"github.com/keyplane/keyplane/internal/vppsim/core"
	"github.com/keyplane/keyplane/internal/vppsim/ip"
	"github.com/keyplane/keyplane/internal/vppwire"
)

// proxies are the DHCP proxies by the table of the requests that they forward.
type proxies struct {
	tables  *ip.IP
	byTable map[ip.Key]*proxy
}

// A proxy forwards DHCP requests to servers. It has one source address.
type proxy struct {
	source  netip.Addr
	servers []server
}

// A server is identified by its table and address; VPP accepts it twice, and has it once.
type server struct {
	table   uint32
	address netip.Addr
}

// addProxies registers the messages of DHCP proxies. A table with a proxy counts as in
// use.
func addProxies(vpp *core.VPP, tables *ip.IP) {
	p := &proxies{tables, map[ip.Key]*proxy{}}
	tables.UsedBy(p.uses)
	vpp.Register(core.Plugin{
		Messages: []core.Message{core.Call(p.change), core.Dump(p.dump)},
		Pages:    map[string]func() string{"show dhcp proxy": p.show},
	})
}

// change adds or deletes a server of a proxy. The first source address of a proxy stays,
// whatever later requests say. A server is listed once. VPP makes the tables that a proxy
// needs, and they stay as long as the proxy. Deleting an unknown server is no error.
func (p *proxies) change(q *dhcp.DHCPProxyConfig, _ *dhcp.DHCPProxyConfigReply) core.Errno {
	source, address := vppwire.Addr(q.DHCPSrcAddress), vppwire.Addr(q.DHCPServer)
	switch {
	case q.DHCPSrcAddress.Af != q.DHCPServer.Af:
		return api.INVALID_ARGUMENT
	case address.IsUnspecified():
		return api.INVALID_DST_ADDRESS
	case source.IsUnspecified():
		return api.INVALID_SRC_ADDRESS
	}
	key, s := ip.Key{IPv6: source.Is6(), ID: q.RxVrfID}, server{q.ServerVrfID, address}
	if q.IsAdd {
		p.add(key, source, s)
	} else {
		p.delete(key, s)
	}
	p.tables.Collect()
	return core.OK
}

// add makes missing tables, as VPP does: they get no name.
func (p *proxies) add(key ip.Key, source netip.Addr, s server) {
	one := p.byTable[key]
	if one == nil {
		one = &proxy{source: source}
		p.byTable[key] = one
	}
	if !slices.Contains(one.servers, s) {
		one.servers = append(one.servers, s)
	}
	p.tables.NeedTable(key)
	p.tables.NeedTable(ip.Key{IPv6: key.IPv6, ID: s.table})
}

// delete deletes a server. A proxy ends with its last server.
func (p *proxies) delete(key ip.Key, s server) {
	one := p.byTable[key]
	if one == nil {
		return
	}
	one.servers = slices.DeleteFunc(one.servers, func(o server) bool { return o == s })
	if len(one.servers) == 0 {
		delete(p.byTable, key)
	}
}

// uses returns whether a proxy forwards from a table or into it.
func (p *proxies) uses(t ip.Key) bool {
	for key, one := range p.byTable {
		into := func(s server) bool { return s.table == t.ID }
		if key == t || key.IPv6 == t.IPv6 && slices.ContainsFunc(one.servers, into) {
			return true
		}
	}
	return false
}

// dump lists the proxies of one IP version in the order of tables.
func (p *proxies) dump(q *dhcp.DHCPProxyDump, yield func(dhcp.DHCPProxyDetails)) {
	for _, t := range p.tables.Tables() {
		if one := p.byTable[t.Key]; one != nil && t.IPv6 == q.IsIP6 {
			yield(one.details(t.Key))
		}
	}
}

// details have addresses without an IP version; one field has the version of all of them.
func (one *proxy) details(key ip.Key) dhcp.DHCPProxyDetails {
	bare := func(a netip.Addr) ip_types.Address { return ip_types.Address{Un: vppwire.Address(a).Un} }
	d := dhcp.DHCPProxyDetails{
		RxVrfID: key.ID, IsIPv6: key.IPv6, VssType: dhcp.VSS_TYPE_API_INVALID, DHCPSrcAddress: bare(one.source),
	}
	for _, s := range one.servers {
		d.Servers = append(d.Servers, dhcp.DHCPServer{ServerVrfID: s.table, DHCPServer: bare(s.address)})
	}
	return d
}

// show prints the proxy of each table.
func (p *proxies) show() string {
	var b strings.Builder
	for _, t := range p.tables.Tables() {
		one := p.byTable[t.Key]
		if one == nil {
			continue
		}
		fmt.Fprintf(&b, "%s src %s", t.Name, one.source)
		for _, s := range one.servers {
			fmt.Fprintf(&b, " %d/%s", s.table, s.address)
		}
		b.WriteString("\n")
	}
	return b.String()
}
