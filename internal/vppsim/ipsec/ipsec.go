// Package ipsec simulates VPP's IPsec: security associations, policy databases, policies, the
// protection of tunnels, and the interfaces of kind "ipsec".
//
// An association exists as long as somebody holds it: its creator, each policy of action PROTECT,
// and each protection. Deletion by its number gives up the creator's hold, also the second time.
//
//	file         | subject
//	ipsec.go     | interfaces, registration
//	sa.go        | security associations
//	spd.go       | policy databases, their interfaces and policies
//	protect.go   | protection of tunnels
package ipsec

import (
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ipsec"
	"go.fd.io/govpp/binapi/tunnel_types"

	"github.com/keyplane/keyplane/internal/vppsim/core"
	"github.com/keyplane/keyplane/internal/vppsim/ip"
	"github.com/keyplane/keyplane/internal/vppsim/tunnel"
)

// A device is the device of an IPsec interface: the request that created it, with its number.
type device struct{ itf ipsec.IpsecItf }

// Mode implements tunnel.Protectable.
func (d device) Mode() tunnel_types.TunnelMode { return d.itf.Mode }

type index = interface_types.InterfaceIndex

type plugin struct {
	vpp    *core.VPP
	tables *ip.IP
	// associations are in the order of their slots, as VPP's pool: the slot that was freed last is
	// used first. A free slot is nil.
	associations pool[association]
	databases    pool[database]
	bound        map[uint32]int // slot of the database, by sw_if_index
	// inputs are the slots of the databases that incoming packets go through, by sw_if_index. A
	// slot may be free, or that of another database by now.
	inputs      map[uint32][]int
	protections pool[protection]
}

// New adds the plugin. Deleting any other interface as an IPsec interface is refused with
// INVALID_SW_IF_INDEX.
func New(vpp *core.VPP, tables *ip.IP) {
	p := &plugin{vpp: vpp, tables: tables, bound: map[uint32]int{}, inputs: map[uint32][]int{}}
	vpp.Register(core.Plugin{
		Messages: []core.Message{
			core.Call(func(q *ipsec.IpsecItfCreate, r *ipsec.IpsecItfCreateReply) (e core.Errno) {
				r.SwIfIndex, e = tunnel.Numbered(vpp, "ipsec", "IPSEC Tunnel", q.Itf.UserInstance, func(number uint32) any {
					q.Itf.UserInstance = number
					return device{q.Itf}
				})
				return e
			}),
			core.Call(func(q *ipsec.IpsecItfDelete, _ *ipsec.IpsecItfDeleteReply) core.Errno {
				return core.Delete[device](vpp, q.SwIfIndex, api.INVALID_SW_IF_INDEX)
			}),
			core.Dump(func(q *ipsec.IpsecItfDump, yield func(ipsec.IpsecItfDetails)) {
				for i, d := range core.Each[device](vpp, q.SwIfIndex) {
					d.itf.SwIfIndex = index(i.Index)
					yield(ipsec.IpsecItfDetails{Itf: d.itf})
				}
			}),

			core.Call(p.addAssociation),
			core.Call(p.deleteAssociation),
			core.Dump(p.dumpAssociations),

			core.Call(p.setDatabase),
			core.Dump(p.dumpDatabases),
			core.On(vpp, func(q *ipsec.IpsecInterfaceAddDelSpd) index { return q.SwIfIndex }, p.bind),
			core.Dump(p.dumpBound),
			core.Call(p.setPolicy),
			core.Call(p.setPolicyV2),
			core.Dump(p.dumpPolicies),

			core.On(vpp, func(q *ipsec.IpsecTunnelProtectUpdate) index { return q.Tunnel.SwIfIndex }, p.protect),
			core.On(vpp, func(q *ipsec.IpsecTunnelProtectDel) index { return q.SwIfIndex }, p.unprotect),
			core.Dump(p.dumpProtections),
		},
		Pages: map[string]func() string{
			"show ipsec spd bindings": p.showBindings,
			"show ipsec spd inputs":   p.showInputs,
			"show ipsec sa":           p.showAssociations,
			"show ipsec spd":          p.showPolicies,
			"show ipsec tunnel":       p.showProtections,
		},
		Removing: p.removing,
	})
}

// A pool has slots, of which the one that was freed last is used first (VPP vppinfra/pool.h).
type pool[T any] struct {
	slots []*T // nil: free
	free  []int
}

// put stores one in a free slot. It returns the number of the slot. Dumps go by slots, so their
// order is not the order of creation after a deletion.
func (p *pool[T]) put(one *T) int {
	if n := len(p.free); n > 0 {
		slot := p.free[n-1]
		p.free, p.slots[slot] = p.free[:n-1], one
		return slot
	}
	p.slots = append(p.slots, one)
	return len(p.slots) - 1
}

// remove frees the slot that has one. If none has it, nothing happens.
func (p *pool[T]) remove(one *T) {
	for slot, other := range p.slots {
		if other == one {
			p.slots[slot] = nil
			p.free = append(p.free, slot)
		}
	}
}

// each yields the slots in use, with their numbers.
func (p *pool[T]) each(yield func(int, *T) bool) {
	for slot, one := range p.slots {
		if one != nil && !yield(slot, one) {
			return
		}
	}
}
