// Package vrrp simulates VPP's plugin for VRRP version 3. A virtual router outlives its
// interface (VPP vrrp.c). No advertisement is sent or received, so a started router stays
// in the state that it takes first:
//
//	initial           not started
//	interface down    started while its interface is down, deleted, or without an address of the
//	                  router's IP version; one that comes later does not help (VPP vrrp.c,
//	                  vrrp_ip4_add_del_interface_addr). Borrowed addresses are not simulated
//	master            started with priority 255: the router owns the addresses; or after Elect
//	backup            started with any other priority
//
// A master with accept mode that does not own its addresses has them on its interface. VPP adds
// them when it becomes the master, and deletes them when it is that no longer.
package vrrp

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/vrrp"

	"github.com/keyplane/keyplane/internal/vppsim/core"
	"github.com/keyplane/keyplane/internal/vppsim/ip"
	"github.com/keyplane/keyplane/internal/vppwire"
)

// ownerPriority is the priority of a router that owns the addresses (RFC 5798).
const ownerPriority = 255

// A key identifies a virtual router.
type key struct {
	index uint32
	id    uint8
	ipv6  bool
}

// compare orders routers as VPP lists them.
func (a key) compare(b key) int {
	byVersion := 0
	switch {
	case a.ipv6 && !b.ipv6:
		byVersion = 1
	case b.ipv6 && !a.ipv6:
		byVersion = -1
	}
	return cmp.Or(cmp.Compare(a.index, b.index), cmp.Compare(a.id, b.id), byVersion)
}

// Routers are the virtual routers of one VPP.
type Routers struct {
	vpp       *core.VPP
	addresses *ip.IP
	routers   map[key]*vrrp.VrrpVrDetails
}

type index = interface_types.InterfaceIndex

// New adds the plugin.
func New(vpp *core.VPP, addresses *ip.IP) *Routers {
	p := &Routers{vpp, addresses, map[key]*vrrp.VrrpVrDetails{}}
	vpp.Register(core.Plugin{
		Messages: []core.Message{
			core.On(vpp, func(q *vrrp.VrrpVrAddDel) index { return q.SwIfIndex }, p.change),
			core.Call(p.startStop),
			core.Dump(p.dump),
		},
		Pages: map[string]func() string{"show vrrp vr": p.show},
	})
	return p
}

// Elect makes the backup routers with an ID masters, on the interface with a tag. VPP does that
// when it has heard no other master for a while. It is an error if there is no such router.
func (p *Routers) Elect(tag string, id uint8) error {
	elected := false
	for key, r := range p.routers {
		i := p.vpp.Interface(key.index)
		if i == nil || key.id != id || r.Runtime.State != vrrp.VRRP_API_VR_STATE_BACKUP {
			continue
		}
		if name, _ := core.ParseTag(i.Tag); name == tag {
			p.become(r, vrrp.VRRP_API_VR_STATE_MASTER)
			elected = true
		}
	}
	if !elected {
		return fmt.Errorf("simulated VPP: no virtual router %d on %q is a backup", id, tag)
	}
	return nil
}

// become changes the state of a router, and the addresses on its interface (VPP vrrp.c,
// vrrp_vr_transition_addrs).
func (p *Routers) become(r *vrrp.VrrpVrDetails, state vrrp.VrrpVrState) {
	was := r.Runtime.State
	r.Runtime.State = state
	i, accepts := p.vpp.Interface(uint32(r.Config.SwIfIndex)), r.Config.Flags&vrrp.VRRP_API_VR_ACCEPT != 0
	wasMaster, isMaster := was == vrrp.VRRP_API_VR_STATE_MASTER, state == vrrp.VRRP_API_VR_STATE_MASTER
	if i == nil || !accepts || r.Config.Priority == ownerPriority || wasMaster == isMaster {
		return
	}
	for _, one := range r.Addrs {
		a := vppwire.Addr(one)
		// VPP ignores refusals.
		if isMaster {
			_ = p.addresses.AddAddress(i, netip.PrefixFrom(a, lengthOn(i, a)))
		} else {
			_ = p.addresses.DeleteAddress(i, a)
		}
	}
}

// lengthOn returns the prefix length of the network on the interface that an address is in, or
// VPP's default.
func lengthOn(i *core.Interface, a netip.Addr) int {
	for _, p := range i.Addresses {
		if p.Masked().Contains(a) {
			return p.Bits()
		}
	}
	if a.Is6() {
		return 64
	}
	return 24
}

// change adds or deletes a virtual router; an existing one cannot be changed. VPP checks
// priority, interval and ID in a delete as well. The owner needs all addresses on its
// interface. Two routers of an interface cannot share an address.
func (p *Routers) change(i *core.Interface, q *vrrp.VrrpVrAddDel, _ *vrrp.VrrpVrAddDelReply) core.Errno {
	key := key{i.Index, q.VrID, q.Flags&vrrp.VRRP_API_VR_IPV6 != 0}
	_, has := p.routers[key]
	switch {
	case q.Priority == 0 || q.Interval == 0 || q.VrID == 0:
		return api.INVALID_VALUE
	case q.IsAdd == 0 && !has:
		return api.NO_SUCH_ENTRY
	case q.IsAdd == 0:
		delete(p.routers, key)
		return core.OK
	case has:
		return api.ENTRY_ALREADY_EXISTS
	case len(q.Addrs) == 0:
		return api.INVALID_SRC_ADDRESS
	case q.Priority == ownerPriority && !hasAll(i, q.Addrs):
		return api.ADDRESS_NOT_FOUND_FOR_INTERFACE
	case p.anyHas(i.Index, q.Addrs):
		return api.ADDRESS_IN_USE
	}
	p.routers[key] = &vrrp.VrrpVrDetails{
		Config: vrrp.VrrpVrConf{SwIfIndex: q.SwIfIndex, VrID: q.VrID, Priority: q.Priority, Interval: q.Interval, Flags: q.Flags},
		Addrs:  q.Addrs,
	}
	return core.OK
}

// hasAll returns whether an interface has all addresses.
func hasAll(i *core.Interface, addresses []ip_types.Address) bool {
	for _, a := range addresses {
		is := func(p netip.Prefix) bool { return p.Addr() == vppwire.Addr(a) }
		if !slices.ContainsFunc(i.Addresses, is) {
			return false
		}
	}
	return true
}

// hasVersion returns whether an interface has an address of an IP version.
func hasVersion(i *core.Interface, ipv6 bool) bool {
	return slices.ContainsFunc(i.Addresses, func(p netip.Prefix) bool { return p.Addr().Is6() == ipv6 })
}

// anyHas returns whether a router of an interface has one of the addresses.
func (p *Routers) anyHas(index uint32, addresses []ip_types.Address) bool {
	for key, r := range p.routers {
		if key.index == index && slices.ContainsFunc(addresses, func(a ip_types.Address) bool { return slices.Contains(r.Addrs, a) }) {
			return true
		}
	}
	return false
}

// startStop starts or stops a virtual router. Starting a started one changes nothing. A
// unicast router needs peers, which no message here adds. On a GRE tunnel without a MAC address
// VPP dies of the first advertisement, which a backup sends a little later than here.
func (p *Routers) startStop(q *vrrp.VrrpVrStartStop, _ *vrrp.VrrpVrStartStopReply) core.Errno {
	r := p.routers[key{uint32(q.SwIfIndex), q.VrID, q.IsIPv6 != 0}]
	i := p.vpp.Interface(uint32(q.SwIfIndex))
	switch {
	case r == nil:
		return api.NO_SUCH_ENTRY
	case q.IsStart == 0:
		p.become(r, vrrp.VRRP_API_VR_STATE_INIT)
	case r.Runtime.State != vrrp.VRRP_API_VR_STATE_INIT:
	case r.Config.Flags&vrrp.VRRP_API_VR_UNICAST != 0:
		return api.INIT_FAILED
	case i == nil || !i.IsUp() || !hasVersion(i, q.IsIPv6 != 0):
		r.Runtime.State = vrrp.VRRP_API_VR_STATE_INTF_DOWN
	case i.DevType == "GRE tunnel device" && !p.vpp.HasMAC(i):
		return core.Crash
	case r.Config.Priority == ownerPriority:
		r.Runtime.State = vrrp.VRRP_API_VR_STATE_MASTER
	default:
		r.Runtime.State = vrrp.VRRP_API_VR_STATE_BACKUP
	}
	return core.OK
}

// dump lists the routers of one interface, or of all for index 0 as well as for ~0.
func (p *Routers) dump(q *vrrp.VrrpVrDump, yield func(vrrp.VrrpVrDetails)) {
	for _, key := range slices.SortedFunc(maps.Keys(p.routers), key.compare) {
		if q.SwIfIndex == 0 || uint32(q.SwIfIndex) == core.None || uint32(q.SwIfIndex) == key.index {
			yield(*p.routers[key])
		}
	}
}

func (p *Routers) show() string {
	var b strings.Builder
	for _, key := range slices.SortedFunc(maps.Keys(p.routers), key.compare) {
		r := p.routers[key]
		started := r.Runtime.State != vrrp.VRRP_API_VR_STATE_INIT
		fmt.Fprintf(&b, "%s vr %d priority %d started %t", p.vpp.NameOf(key.index), key.id, r.Config.Priority, started)
		for _, a := range r.Addrs {
			fmt.Fprintf(&b, " %s", vppwire.Addr(a))
		}
		if r.Runtime.State == vrrp.VRRP_API_VR_STATE_BACKUP || r.Runtime.State == vrrp.VRRP_API_VR_STATE_MASTER {
			b.WriteString(" runs")
		}
		b.WriteByte('\n')
	}
	return b.String()
}
