package vppsim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/vrrp"

	"github.com/keyplane/keyplane/internal/vppwire"
)

// A routerKey is a virtual router.
type routerKey struct {
	index uint32
	id    uint8
	ipv6  bool
}

func (a routerKey) compare(b routerKey) int {
	return cmp.Or(cmp.Compare(a.index, b.index), cmp.Compare(a.id, b.id), cmp.Compare(family(a.ipv6), family(b.ipv6)))
}

// vrrpMessages: a router outlives its interface (VPP vrrp.c).
func vrrpMessages() []entry {
	type index = interface_types.InterfaceIndex
	return []entry{
		on(func(q *vrrp.VrrpVrAddDel) index { return q.SwIfIndex }, changeRouter),
		call(startRouter),
		dump(func(w *world, q *vrrp.VrrpVrDump, yield func(vrrp.VrrpVrDetails)) {
			for _, key := range slices.SortedFunc(maps.Keys(w.routers), routerKey.compare) {
				if q.SwIfIndex == 0 || uint32(q.SwIfIndex) == none || uint32(q.SwIfIndex) == key.index {
					yield(*w.routers[key])
				}
			}
		}),
	}
}

func changeRouter(w *world, i *iface, q *vrrp.VrrpVrAddDel, _ *vrrp.VrrpVrAddDelReply) errno {
	key := routerKey{i.index, q.VrID, q.Flags&vrrp.VRRP_API_VR_IPV6 != 0}
	_, has := w.routers[key]
	switch {
	case q.Priority == 0 || q.Interval == 0 || q.VrID == 0:
		return api.INVALID_VALUE
	case q.IsAdd == 0 && !has:
		return api.NO_SUCH_ENTRY
	case q.IsAdd == 0:
		delete(w.routers, key)
		return ok
	case has:
		return api.ENTRY_ALREADY_EXISTS
	case len(q.Addrs) == 0:
		return api.INVALID_SRC_ADDRESS
	case q.Priority == 255 && !i.hasAll(q.Addrs):
		return api.ADDRESS_NOT_FOUND_FOR_INTERFACE
	case w.anyRouterHas(i.index, q.Addrs):
		return api.ADDRESS_IN_USE
	}
	w.routers[key] = &vrrp.VrrpVrDetails{
		Config: vrrp.VrrpVrConf{SwIfIndex: q.SwIfIndex, VrID: q.VrID, Priority: q.Priority, Interval: q.Interval, Flags: q.Flags},
		Addrs:  q.Addrs,
	}
	return ok
}

func (i *iface) hasAll(addresses []ip_types.Address) bool {
	for _, a := range addresses {
		has := false
		for _, p := range i.addresses {
			has = has || p.Addr() == vppwire.Addr(a)
		}
		if !has {
			return false
		}
	}
	return true
}

func (w *world) anyRouterHas(index uint32, addresses []ip_types.Address) bool {
	for key, r := range w.routers {
		if key.index == index && slices.ContainsFunc(addresses, func(a ip_types.Address) bool { return slices.Contains(r.Addrs, a) }) {
			return true
		}
	}
	return false
}

func startRouter(w *world, q *vrrp.VrrpVrStartStop, _ *vrrp.VrrpVrStartStopReply) errno {
	r := w.routers[routerKey{uint32(q.SwIfIndex), q.VrID, q.IsIPv6 != 0}]
	i := w.interfaces.byIndex[uint32(q.SwIfIndex)]
	switch {
	case r == nil:
		return api.NO_SUCH_ENTRY
	case q.IsStart == 0:
		r.Runtime.State = vrrp.VRRP_API_VR_STATE_INIT
	case r.Runtime.State != vrrp.VRRP_API_VR_STATE_INIT:
	case r.Config.Flags&vrrp.VRRP_API_VR_UNICAST != 0:
		return api.INIT_FAILED // it has no peers
	case i == nil || i.flags&adminUp == 0:
		r.Runtime.State = vrrp.VRRP_API_VR_STATE_INTF_DOWN
	case r.Config.Priority == 255:
		r.Runtime.State = vrrp.VRRP_API_VR_STATE_MASTER
	default:
		r.Runtime.State = vrrp.VRRP_API_VR_STATE_BACKUP
	}
	return ok
}

func (w *world) showRouters() string {
	var b strings.Builder
	for _, key := range slices.SortedFunc(maps.Keys(w.routers), routerKey.compare) {
		r := w.routers[key]
		started := r.Runtime.State != vrrp.VRRP_API_VR_STATE_INIT
		fmt.Fprintf(&b, "%s vr %d priority %d started %t", w.nameOf(key.index), key.id, r.Config.Priority, started)
		for _, a := range r.Addrs {
			fmt.Fprintf(&b, " %s", vppwire.Addr(a))
		}
		b.WriteString("\n")
	}
	return b.String()
}
