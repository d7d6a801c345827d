// Package nat simulates VPP's plugins for NAT44, nat44-ed (endpoint-dependent) and nat44-ei
// (endpoint-independent), and the settings of virtual reassembly, which both use.
//
//	a plugin, disabled        refuses everything except VRF tables, and keeps nothing when it was disabled
//	an interface              has sides (inside, outside), or is translated on output; never both
//	a side, removed           takes the interface out, even if it has only the other side
//	an address                comes once per plugin and kind; a range stops at the first refusal
//	a mapping                 is identified by its external address, port and protocol
//	a port of the ei plugin   is reserved in a pool: without the address, its mapping is refused, and
//	                          the address stays while it has such a mapping
//	a mapping of an interface has a record, and a mapping as soon as the interface has an address
//
// Before 23.02, an interface leaves its sides to its index, and the second version of the
// request for a static mapping takes ~0 for an interface. Mappings of an interface's address are
// simulated for the endpoint-dependent plugin only.
package nat

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"

	"github.com/keyplane/keyplane/internal/vppsim/core"
	"github.com/keyplane/keyplane/internal/vppsim/ip"
)

type (
	index   = interface_types.InterfaceIndex
	address = ip_types.IP4Address
)

// anyVRF is the VRF of an address that is independent of VRFs (~0).
const anyVRF = core.None

// New adds the plugins.
func New(vpp *core.VPP, tables *ip.IP) {
	newED(vpp, tables)
	newEI(vpp, tables)
	newReassembly(vpp)
}

// sides are those of an interface.
type sides struct{ inside, outside bool }

// An entry is an address of a pool.
type entry struct {
	address address
	vrf     uint32
}

// A box has the state that both plugins have. Interfaces are kept by index, as in VPP: a name
// would hide sides that a deleted one has left.
type box struct {
	vpp        *core.VPP
	tables     *ip.IP
	enabled    bool
	sessions   uint32 // as the running configuration has it; 0: disabled
	forwarding bool
	interfaces map[uint32]sides
	outputs    map[uint32]bool
	pool       []entry
	// disabled is the return value of a request while the plugin is disabled.
	disabled core.Errno
}

// newBox makes the state of a plugin. Until 22.10, VPP returns 1 for what cannot be enabled or
// disabled.
func newBox(vpp *core.VPP, tables *ip.IP, disabled core.Errno) box {
	return box{vpp: vpp, tables: tables, disabled: disabled, interfaces: map[uint32]sides{}, outputs: map[uint32]bool{}}
}

// already returns the return value for enabling an enabled plugin, and disabling a disabled
// one. The value 1 is no error number of VPP's API, so clients need a rule for it.
func already(vpp *core.VPP, want core.Errno) core.Errno {
	if vpp.Before("23.02") {
		return 1
	}
	return want
}

// enable switches the plugin on, or off. Then it forgets everything.
func (b *box) enable(on bool, sessions, otherwise uint32) core.Errno {
	switch {
	case on && b.enabled:
		return already(b.vpp, api.FEATURE_ALREADY_ENABLED)
	case !on && !b.enabled:
		return already(b.vpp, api.FEATURE_ALREADY_DISABLED)
	}
	*b = newBox(b.vpp, b.tables, b.disabled)
	if b.enabled = on; on {
		b.sessions = cmp.Or(sessions, otherwise)
	}
	return core.OK
}

// setSide gives an interface a side, or takes it out. An interface that lacks the side is taken
// out by its other one (nat44_ed_del_interface).
func (b *box) setSide(i *core.Interface, inside, add bool) core.Errno {
	s, has := b.interfaces[i.Index]
	switch {
	case !b.enabled:
		return b.disabled
	case add && b.outputs[i.Index]:
		return api.VALUE_EXIST
	case !add && !has:
		return api.NO_SUCH_ENTRY
	case !add && !(s.inside && s.outside):
		delete(b.interfaces, i.Index) // whichever side it has
		return core.OK
	}
	if inside {
		s.inside = add
	} else {
		s.outside = add
	}
	b.interfaces[i.Index] = s
	return core.OK
}

// setOutput has packets translated on output, or ends that.
func (b *box) setOutput(i *core.Interface, add bool) core.Errno {
	_, sided := b.interfaces[i.Index]
	switch {
	case !b.enabled:
		return b.disabled
	case add && (sided || b.outputs[i.Index]):
		return api.VALUE_EXIST
	case !add && !b.outputs[i.Index]:
		return api.NO_SUCH_ENTRY
	case add:
		b.outputs[i.Index] = true
	default:
		delete(b.outputs, i.Index)
	}
	return core.OK
}

// removing forgets an interface that is being deleted. In older releases, the next interface
// with the index has its sides.
func (b *box) removing(i *core.Interface) {
	if !b.vpp.Before("23.02") {
		delete(b.interfaces, i.Index)
		delete(b.outputs, i.Index)
	}
}

// sided yields the interfaces with their sides, sorted by index.
func (b *box) sided() iter.Seq2[index, sides] {
	return func(yield func(index, sides) bool) {
		for _, i := range slices.Sorted(maps.Keys(b.interfaces)) {
			if !yield(index(i), b.interfaces[i]) {
				return
			}
		}
	}
}

// flags returns the sides as the flags of one of the plugins: each has a type of its own.
func flags[F ~uint8](of sides, inside, outside F) (out F) {
	if of.inside {
		out |= inside
	}
	if of.outside {
		out |= outside
	}
	return out
}

// eachOutput passes the interfaces with the output feature to yield, sorted by index. It returns
// the cursor of the answer: the simulation never interrupts a list, so that is ~0.
func (b *box) eachOutput(yield func(index)) (cursor uint32) {
	for _, i := range slices.Sorted(maps.Keys(b.outputs)) {
		yield(index(i))
	}
	return core.None
}

// setRange adds or removes addresses one by one. It stops at the first that is refused, such as
// the removal of one that is bound. Addresses before that one stay changed. A range that ends
// before its start is empty.
func setRange(pool *[]entry, first, last address, vrf uint32, add bool, bound func(address) bool) core.Errno {
	for n := number(first); n <= number(last) && number(last) >= number(first); n++ {
		if !add && bound(addressOf(n)) {
			return api.UNSPECIFIED
		}
		if errno := setAddress(pool, entry{addressOf(n), vrf}, add); errno != core.OK {
			return errno
		}
	}
	return core.OK
}

// setAddress adds or removes one address. The last one takes the place of a removed one.
func setAddress(pool *[]entry, e entry, add bool) core.Errno {
	at := slices.IndexFunc(*pool, func(o entry) bool { return o.address == e.address })
	switch {
	case add && at >= 0:
		return api.VALUE_EXIST
	case add:
		*pool = append(*pool, e)
	case at < 0:
		return api.NO_SUCH_ENTRY
	default:
		end := len(*pool) - 1
		(*pool)[at] = (*pool)[end]
		*pool = (*pool)[:end]
	}
	return core.OK
}

// number returns an address as a number, wide enough for the number after the last address.
func number(a address) uint64 {
	return uint64(a[0])<<24 | uint64(a[1])<<16 | uint64(a[2])<<8 | uint64(a[3])
}

// addressOf is the inverse of number; it takes the lower 32 bits.
func addressOf(n uint64) address {
	return address{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
}

// need makes the table of a VRF, unless it exists. VPP calls fib_table_find_or_create_and_lock
// for that, so no client has to declare the table.
func (b *box) need(vrf uint32) {
	if vrf != anyVRF {
		b.tables.NeedTable(ip.Key{ID: vrf})
	}
}

// uses returns whether an address of a pool is in a table.
func uses(pool []entry, vrf uint32) bool {
	return slices.ContainsFunc(pool, func(e entry) bool { return e.vrf == vrf })
}
