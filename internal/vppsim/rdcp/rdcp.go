// Package rdcp simulates IPv6 address autoconfiguration: an interface takes addresses, and
// on request default routes, from router advertisements. A test says which network a router on a
// link advertises: the router does so at once, and whenever it is solicited. Of routes, only the
// setting exists. VPP keeps it when the interface is deleted, and the next interface of that index
// inherits it (VPP rd_cp.c). No message reads it back.
package rdcp

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip6_nd"
	"go.fd.io/govpp/binapi/rd_cp"

	"github.com/keyplane/keyplane/internal/vppsim/core"
	"github.com/keyplane/keyplane/internal/vppsim/ip"
)

// Links are the interfaces of one VPP that configure themselves, and the routers on their links.
type Links struct {
	vpp       *core.VPP
	addresses *ip.IP
	routes    map[uint32]bool         // by index of an interface that takes addresses: it takes default routes too
	routers   map[uint32]netip.Prefix // by index of an interface: the network that a router on its link advertises
	taken     map[lease]netip.Addr
}

// A lease identifies an address that was taken. VPP forgets none with its interface, so the next
// interface with the index takes no address of that network.
type lease struct {
	index   uint32
	network netip.Prefix
}

type index = interface_types.InterfaceIndex

// New adds the plugin.
func New(vpp *core.VPP, addresses *ip.IP) *Links {
	p := &Links{vpp, addresses, map[uint32]bool{}, map[uint32]netip.Prefix{}, map[lease]netip.Addr{}}
	vpp.Register(core.Plugin{
		Messages: []core.Message{
			core.On(vpp, func(q *rd_cp.IP6NdAddressAutoconfig) index { return q.SwIfIndex }, p.set),
			core.On(vpp, func(q *ip6_nd.IP6ndSendRouterSolicitation) index { return q.SwIfIndex }, p.solicit),
		},
		Pages:    map[string]func() string{"show ip6 nd": p.show},
		Removing: func(i *core.Interface) { delete(p.routers, i.Index) },
	})
	return p
}

// Advertise has a router advertise a network on the link of the interface with a tag. It is an error
// if there is no such interface.
func (p *Links) Advertise(tag string, network netip.Prefix) error {
	for _, i := range p.vpp.Interfaces() {
		if name, _ := core.ParseTag(i.Tag); name == tag {
			p.routers[i.Index] = network
			p.take(i)
			return nil
		}
	}
	return fmt.Errorf("simulated VPP: no interface %q", tag)
}

// set sets what an interface takes. If it stops to take addresses, VPP removes those of all
// interfaces (VPP rd_cp.c, rd_cp_set_address_autoconfig). If it begins, routers are solicited.
func (p *Links) set(i *core.Interface, q *rd_cp.IP6NdAddressAutoconfig, _ *rd_cp.IP6NdAddressAutoconfigReply) core.Errno {
	hadRoutes, took := p.routes[i.Index]
	if !q.Enable {
		delete(p.routes, i.Index)
		if took {
			p.removeAll()
		}
		return core.OK
	}
	p.routes[i.Index] = q.InstallDefaultRoutes
	if !took || q.InstallDefaultRoutes && !hadRoutes {
		p.take(i)
	}
	return core.OK
}

// removeAll removes the addresses that interfaces have taken.
func (p *Links) removeAll() {
	for of, address := range p.taken {
		if i := p.vpp.Interface(of.index); i != nil {
			_ = p.addresses.DeleteAddress(i, address) // somebody may have deleted it
		}
	}
	clear(p.taken)
}

// solicit asks the routers on a link, which answer at once.
func (p *Links) solicit(i *core.Interface, q *ip6_nd.IP6ndSendRouterSolicitation, _ *ip6_nd.IP6ndSendRouterSolicitationReply) core.Errno {
	if !q.Stop {
		p.take(i)
	}
	return core.OK
}

// take gives an interface the address of the network that is advertised to it: the network with the
// MAC address of the interface (RFC 4291, appendix A).
func (p *Links) take(i *core.Interface) {
	network, advertised := p.routers[i.Index]
	_, takes := p.routes[i.Index]
	of := lease{i.Index, network}
	if _, has := p.taken[of]; !advertised || !takes || has {
		return
	}
	a, mac := network.Masked().Addr().As16(), i.MAC
	copy(a[8:], []byte{mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]})
	p.taken[of] = netip.AddrFrom16(a)
	_ = p.addresses.AddAddress(i, netip.PrefixFrom(p.taken[of], network.Bits())) // VPP only logs a refusal
}

func (p *Links) show() string {
	var b strings.Builder
	for _, index := range slices.Sorted(maps.Keys(p.routes)) {
		fmt.Fprintf(&b, "%s autoconfig routes %t\n", p.vpp.NameOf(index), p.routes[index])
	}
	return b.String()
}
