package simulated

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/dhcp"
	"go.fd.io/govpp/binapi/fib_types"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/l2"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/internal/vppwire"
)

// none selects all interfaces in a dump request, and marks a path without an interface (~0).
const none = ^interface_types.InterfaceIndex(0)

// A reader reads VPP's state. After the first error it returns nothing, so that callers
// check err once. It uses the agent's own connection, but none of the descriptors that are
// being tested.
type reader struct {
	*conn.Conn
	err error
}

// all returns the answers to a dump request.
func all[T any, P interface {
	*T
	api.Message
}](r *reader, request api.Message) []T {
	if r.err != nil {
		return nil
	}
	out, err := conn.Dump[T, P](context.Background(), r.Conn, request)
	r.err = err
	return out
}

// show renders a part of VPP's state as text, in the format of the simulated VPP, so that
// tests compare both. An unknown page is empty.
func show(c *conn.Conn, page string) (string, error) {
	// The pages that tests compare; the simulated VPP has the same under these names.
	pages := map[string]func(*reader) []string{
		"show dhcp client":   (*reader).dhcpClients,
		"show interface":     (*reader).interfaces,
		"show ip table":      (*reader).tables,
		"show ip fib":        (*reader).routes,
		"show bridge-domain": (*reader).bridges,
		"show l2fib":         (*reader).entries,

		"show dhcp proxy":         (*reader).dhcpProxies,
		"show interface span":     (*reader).spans,
		"show ip neighbor-config": (*reader).agings,
		"show ip neighbors":       (*reader).neighbours,
		"show vrrp vr":            (*reader).routers,

		"show arp proxy": (*reader).proxies,
		"show l3xc":      (*reader).crossConnects,
		"show teib":      (*reader).endpoints,
	}
	read := pages[page]
	if read == nil {
		return "", nil
	}
	r := &reader{Conn: c}
	lines := read(r)
	if len(lines) == 0 {
		return "", r.err
	}
	return strings.Join(lines, "\n") + "\n", r.err
}

// interfaces lists index, name, tag, state, VRF table and addresses.
func (r *reader) interfaces() []string {
	lines := []string{"index name tag state table addresses"}
	for _, d := range all[vppif.SwInterfaceDetails](r, &vppif.SwInterfaceDump{SwIfIndex: none}) {
		words := []string{fmt.Sprint(d.SwIfIndex), d.InterfaceName}
		if d.Tag != "" {
			words = append(words, d.Tag)
		}
		state := "down"
		if d.Flags&interface_types.IF_STATUS_API_FLAG_ADMIN_UP != 0 {
			state = "up"
		}
		words = append(words, state)
		var table vppif.SwInterfaceGetTableReply
		if r.err == nil {
			r.err = r.Call(context.Background(), &vppif.SwInterfaceGetTable{SwIfIndex: d.SwIfIndex}, &table)
		}
		words = append(words, fmt.Sprint(table.VrfID))
		for _, ipv6 := range []bool{false, true} {
			for _, a := range all[ip.IPAddressDetails](r, &ip.IPAddressDump{SwIfIndex: d.SwIfIndex, IsIPv6: ipv6}) {
				words = append(words, vppwire.PrefixOf(a.Prefix).String())
			}
		}
		if d.VtrOp != 0 {
			words = append(words, fmt.Sprint("rewrites ", d.VtrOp))
		}
		lines = append(lines, strings.Join(words, " "))
	}
	return lines
}

// dhcpClients lists the DHCP clients.
func (r *reader) dhcpClients() (lines []string) {
	names := r.names()
	for _, d := range all[dhcp.DHCPClientDetails](r, &dhcp.DHCPClientDump{}) {
		state := "no address"
		if d.Lease.MaskWidth != 0 {
			state = fmt.Sprintf("addr %s/%d gw %s", vppwire.Addr(d.Lease.HostAddress), d.Lease.MaskWidth, vppwire.Addr(d.Lease.RouterAddress))
		}
		lines = append(lines, named(names, uint32(d.Client.SwIfIndex))+" "+state)
	}
	return lines
}

// tables lists the VRF tables.
func (r *reader) tables() (lines []string) {
	for _, d := range all[ip.IPTableDetails](r, &ip.IPTableDump{}) {
		routes := all[ip.IPRouteDetails](r, &ip.IPRouteDump{Table: d.Table})
		lines = append(lines, fmt.Sprintf("%d %s %d routes", d.Table.TableID, d.Table.Name, len(routes)))
	}
	return lines
}

// names returns VPP's own names of interfaces by sw_if_index.
func (r *reader) names() map[uint32]string {
	out := map[uint32]string{}
	for _, d := range all[vppif.SwInterfaceDetails](r, &vppif.SwInterfaceDump{SwIfIndex: none}) {
		out[uint32(d.SwIfIndex)] = d.InterfaceName
	}
	return out
}

// routes lists the paths of each table, sorted within the table.
func (r *reader) routes() (lines []string) {
	names := r.names()
	for _, d := range all[ip.IPTableDetails](r, &ip.IPTableDump{}) {
		lines = append(lines, d.Table.Name)
		var routes []string
		for _, route := range all[ip.IPRouteDetails](r, &ip.IPRouteDump{Table: d.Table}) {
			for _, p := range route.Route.Paths {
				routes = append(routes, fmt.Sprintf("  %s %s", vppwire.PrefixOf(route.Route.Prefix), path(p, d.Table.IsIP6, names)))
			}
		}
		// The order of VPP's answer is not fixed.
		slices.Sort(routes)
		lines = append(lines, routes...)
	}
	return lines
}

// path renders one path of a route.
func path(p fib_types.FibPath, ipv6 bool, names map[uint32]string) string {
	if p.Type == fib_types.FIB_API_PATH_TYPE_DROP {
		return "drop"
	}
	out := "via " + vppwire.AddrIn(p.Nh.Address, ipv6).String()
	if name := names[p.SwIfIndex]; name != "" {
		out += " " + name
	}
	return fmt.Sprintf("%s weight %d", out, p.Weight)
}

// bridges lists the bridge domains with members and ARP entries, then the cross-connects.
func (r *reader) bridges() (lines []string) {
	names := r.names()
	for _, d := range all[l2.BridgeDomainDetails](r, &l2.BridgeDomainDump{BdID: uint32(none), SwIfIndex: none}) {
		// The bits of VPP's bd_flags, which the messages split into fields.
		flags := 0
		for bit, on := range []bool{d.Learn, d.Forward, d.Flood, d.UuFlood, d.ArpTerm, d.ArpUfwd} {
			if on {
				flags |= 1 << bit
			}
		}
		lines = append(lines, fmt.Sprintf("%d %s flags %d age %d", d.BdID, d.BdTag, flags, d.MacAge))
		for _, m := range d.SwIfDetails {
			port := "normal"
			if m.SwIfIndex == d.BviSwIfIndex {
				port = "bvi"
			}
			lines = append(lines, fmt.Sprintf("  %s %s shg %d", names[uint32(m.SwIfIndex)], port, m.Shg))
		}
		for _, e := range all[l2.BdIPMacDetails](r, &l2.BdIPMacDump{BdID: d.BdID}) {
			lines = append(lines, fmt.Sprintf("  arp %s %s", vppwire.Addr(e.Entry.IP), e.Entry.Mac))
		}
	}
	for _, x := range all[l2.L2XconnectDetails](r, &l2.L2XconnectDump{}) {
		lines = append(lines, fmt.Sprintf("xconnect %s to %s", names[uint32(x.RxSwIfIndex)], names[uint32(x.TxSwIfIndex)]))
	}
	return lines
}

// entries lists the L2 FIB, sorted: VPP's own order depends on a hash.
func (r *reader) entries() (lines []string) {
	names, tags := r.names(), map[uint32]string{}
	for _, d := range all[l2.BridgeDomainDetails](r, &l2.BridgeDomainDump{BdID: uint32(none), SwIfIndex: none}) {
		tags[d.BdID] = fmt.Sprintf("%d %s", d.BdID, d.BdTag)
	}
	for _, e := range all[l2.L2FibTableDetails](r, &l2.L2FibTableDump{BdID: uint32(none)}) {
		where := "drop"
		if !e.FilterMac {
			where = names[uint32(e.SwIfIndex)]
		}
		lines = append(lines, fmt.Sprintf("%s %s %s static %t bvi %t", tags[e.BdID], e.Mac, where, e.StaticMac, e.BviMac))
	}
	slices.Sort(lines)
	return lines
}
