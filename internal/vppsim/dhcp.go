package vppsim

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/dhcp"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/internal/vppwire"
)

// A dhcpClient is one that runs on an interface. VPP keeps it when the interface is deleted,
// and has whatever gets the index then be a client (VPP dhcp/client.c).
type dhcpClient struct {
	wire  dhcp.DHCPClient
	lease dhcp.DHCPLease
	asker *client // who is told of leases
}

func (d *dhcpClient) address() netip.Prefix {
	return netip.PrefixFrom(vppwire.Addr(d.lease.HostAddress), int(d.lease.MaskWidth))
}

func dhcpMessages() []entry {
	return []entry{
		on(func(q *dhcp.DHCPClientConfig) interface_types.InterfaceIndex { return q.Client.SwIfIndex }, changeDHCPClient).with(&dhcp.DHCPComplEvent{}),
		dump(func(w *world, _ *dhcp.DHCPClientDump, yield func(dhcp.DHCPClientDetails)) {
			for _, index := range slices.Sorted(maps.Keys(w.dhcpClients)) {
				yield(dhcp.DHCPClientDetails{Client: w.dhcpClients[index].wire, Lease: w.dhcpClients[index].lease})
			}
		}),
	}
}

func changeDHCPClient(w *world, i *iface, q *dhcp.DHCPClientConfig, _ *dhcp.DHCPClientConfigReply) errno {
	d, runs := w.dhcpClients[i.index]
	switch {
	case runs == q.IsAdd:
		return api.INVALID_VALUE
	case !q.IsAdd:
		w.endLease(i, d)
		delete(w.dhcpClients, i.index)
		return ok
	}
	d = &dhcpClient{wire: q.Client, asker: w.asking}
	d.lease = dhcp.DHCPLease{SwIfIndex: q.Client.SwIfIndex, Hostname: q.Client.Hostname, HostMac: i.mac}
	w.dhcpClients[i.index] = d
	return ok
}

func (w *world) endLease(i *iface, d *dhcpClient) {
	if d.lease.MaskWidth != 0 {
		_ = w.deleteAddress(i, d.address().Addr()) // somebody may have deleted it
	}
	d.lease.MaskWidth, d.lease.HostAddress, d.lease.RouterAddress = 0, vppwire.Address(netip.IPv4Unspecified()), vppwire.Address(netip.IPv4Unspecified())
	d.lease.State = dhcp.DHCP_CLIENT_STATE_API_DISCOVER
}

// Lease has a DHCP server give an address to the interface with that tag, and tells the
// client of the API that has asked for it. The zero Prefix takes the lease away, and nobody
// is told. It fails where no DHCP client runs.
func (s *Sim) Lease(tag string, address netip.Prefix, router netip.Addr) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.world
	for _, i := range w.interfaces.byIndex {
		d := w.dhcpClients[i.index]
		if name, _ := nameIn(i.tag); name != tag || d == nil {
			continue
		}
		w.endLease(i, d)
		if address.IsValid() {
			w.beginLease(i, d, address, router)
		}
		return nil
	}
	return fmt.Errorf("simulated VPP: no DHCP client runs on %q", tag)
}

func (w *world) beginLease(i *iface, d *dhcpClient, address netip.Prefix, router netip.Addr) {
	_ = w.addAddress(i, address) // VPP does not look whether that worked
	d.lease.State, d.lease.MaskWidth = dhcp.DHCP_CLIENT_STATE_API_BOUND, uint8(address.Bits())
	d.lease.HostAddress, d.lease.RouterAddress = vppwire.Address(address.Addr()), vppwire.Address(router)
	if c := d.asker; d.wire.WantDHCPEvent && w.sim.clients[c] {
		c.events = append(c.events, &dhcp.DHCPComplEvent{PID: d.wire.PID, Lease: d.lease})
		c.sendEvents()
		c.flush()
	}
}

func (w *world) showDHCPClients() string {
	var b strings.Builder
	for _, index := range slices.Sorted(maps.Keys(w.dhcpClients)) {
		d, state := w.dhcpClients[index], "no address"
		if d.lease.MaskWidth != 0 {
			state = fmt.Sprintf("addr %s gw %s", d.address(), vppwire.Addr(d.lease.RouterAddress))
		}
		fmt.Fprintf(&b, "%s %s\n", w.nameOf(index), state)
	}
	return b.String()
}

// nameOf is the name of an interface; of one that is gone it is its number.
func (w *world) nameOf(index uint32) string {
	if i := w.interfaces.byIndex[index]; i != nil {
		return cmp.Or(i.name, i.tag)
	}
	return fmt.Sprintf("DELETED (%d)", index)
}
