// Package dhcp simulates the DHCP clients of interfaces and the DHCP proxies of IP tables.
// No DHCP server answers; a test gives leases by Clients.Lease.
//
// A lease changes the addresses of an interface without a request of the agent. So the
// simulation has the cases that a descriptor of addresses must survive: an address
// appears, changes, and disappears by itself.
package dhcp

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/dhcp"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/internal/vppsim/core"
	"github.com/keyplane/keyplane/internal/vppsim/ip"
	"github.com/keyplane/keyplane/internal/vppwire"
)

// Clients are the DHCP clients by interface index. VPP keeps a client when its interface
// is deleted, and the next interface of that index has the client (VPP dhcp/client.c).
type Clients struct {
	vpp       *core.VPP
	addresses *ip.IP
	byIndex   map[uint32]*client
}

// A client is the DHCP client of one interface.
type client struct {
	config dhcp.DHCPClient
	lease  dhcp.DHCPLease
	asker  *core.Client // gets the events about leases
}

// address returns the leased address.
func (c *client) address() netip.Prefix {
	return netip.PrefixFrom(vppwire.Addr(c.lease.HostAddress), int(c.lease.MaskWidth))
}

// New adds the plugin.
func New(vpp *core.VPP, tables *ip.IP) *Clients {
	p := &Clients{vpp, tables, map[uint32]*client{}}
	index := func(q *dhcp.DHCPClientConfig) interface_types.InterfaceIndex { return q.Client.SwIfIndex }
	vpp.Register(core.Plugin{
		Messages: []core.Message{core.On(vpp, index, p.change).With(&dhcp.DHCPComplEvent{}), core.Dump(p.dump)},
		Pages:    map[string]func() string{"show dhcp client": p.show},
	})
	addProxies(vpp, tables)
	return p
}

// change adds or deletes a client. VPP refuses to add a second one, and to delete a
// missing one, with INVALID_VALUE. It dies of the first packet of a client on an interface without
// a MAC address, which it sends as soon as the interface is up with a link (VPP dhcp/client.c,
// send_dhcp_pkt). Here it dies at once.
func (p *Clients) change(i *core.Interface, q *dhcp.DHCPClientConfig, _ *dhcp.DHCPClientConfigReply) core.Errno {
	c, runs := p.byIndex[i.Index]
	switch {
	case runs == q.IsAdd:
		return api.INVALID_VALUE
	case !q.IsAdd:
		p.endLease(i, c)
		delete(p.byIndex, i.Index)
		return core.OK
	}
	if !p.vpp.HasMAC(i) {
		return core.Crash
	}
	p.byIndex[i.Index] = &client{
		config: q.Client, asker: p.vpp.Asking(),
		lease: dhcp.DHCPLease{SwIfIndex: q.Client.SwIfIndex, Hostname: q.Client.Hostname, HostMac: i.MAC},
	}
	return core.OK
}

// dump lists the clients by ascending index of their interfaces.
func (p *Clients) dump(_ *dhcp.DHCPClientDump, yield func(dhcp.DHCPClientDetails)) {
	for _, index := range slices.Sorted(maps.Keys(p.byIndex)) {
		yield(dhcp.DHCPClientDetails{Client: p.byIndex[index].config, Lease: p.byIndex[index].lease})
	}
}

// Lease gives a lease to the client on the interface with a tag, and sends the event to
// the API client that configured it. The zero Prefix withdraws the lease without an event.
// A tag without client is an error.
func (p *Clients) Lease(tag string, address netip.Prefix, router netip.Addr) error {
	for _, i := range p.vpp.Interfaces() {
		c := p.byIndex[i.Index]
		if name, _ := core.ParseTag(i.Tag); name != tag || c == nil {
			continue
		}
		p.endLease(i, c)
		if address.IsValid() {
			p.beginLease(i, c, address, router)
		}
		return nil
	}
	return fmt.Errorf("simulated VPP: no DHCP client runs on %q", tag)
}

// beginLease adds the address to the interface, and tells the client that asked for
// events.
func (p *Clients) beginLease(i *core.Interface, c *client, address netip.Prefix, router netip.Addr) {
	_ = p.addresses.AddAddress(i, address) // VPP ignores a refusal
	c.lease.State, c.lease.MaskWidth = dhcp.DHCP_CLIENT_STATE_API_BOUND, uint8(address.Bits())
	c.lease.HostAddress, c.lease.RouterAddress = vppwire.Address(address.Addr()), vppwire.Address(router)
	if c.config.WantDHCPEvent {
		p.vpp.Tell(c.asker, &dhcp.DHCPComplEvent{PID: c.config.PID, Lease: c.lease})
	}
}

// endLease removes the address, and makes the client discover again.
func (p *Clients) endLease(i *core.Interface, c *client) {
	if c.lease.MaskWidth != 0 {
		_ = p.addresses.DeleteAddress(i, c.address().Addr()) // somebody may have deleted it before
	}
	unspecified := vppwire.Address(netip.IPv4Unspecified())
	c.lease.MaskWidth, c.lease.HostAddress, c.lease.RouterAddress = 0, unspecified, unspecified
	c.lease.State = dhcp.DHCP_CLIENT_STATE_API_DISCOVER
}

// show prints each client with its lease.
func (p *Clients) show() string {
	var b strings.Builder
	for _, index := range slices.Sorted(maps.Keys(p.byIndex)) {
		c, state := p.byIndex[index], "no address"
		if c.lease.MaskWidth != 0 {
			state = fmt.Sprintf("addr %s gw %s", c.address(), vppwire.Addr(c.lease.RouterAddress))
		}
		fmt.Fprintf(&b, "%s %s\n", p.vpp.NameOf(index), state)
	}
	return b.String()
}
