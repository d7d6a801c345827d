// Package iface simulates the messages that all interfaces have in common, loopbacks,
// sub-interfaces, receive queues, and the hardware that VPP finds at its start. The
// interface table itself is part of package core.
//
// VPP checks little here: it accepts any MAC address, any MTU and any name, also the name
// of another interface. An index without an interface is refused with INVALID_SW_IF_INDEX.
package iface

import (
	"fmt"
	"strings"

	"go.fd.io/govpp/api"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/internal/vppsim/core"
)

type plugin struct{ vpp *core.VPP }

type index = interface_types.InterfaceIndex

// New adds the plugin, and the hardware of Options.Hardware.
func New(vpp *core.VPP) {
	p := plugin{vpp}
	p.findHardware()
	vpp.Register(core.Plugin{
		Messages: []core.Message{
			// An event for each creation, deletion, and change of state.
			core.Call(func(q *vppif.WantInterfaceEvents, _ *vppif.WantInterfaceEventsReply) core.Errno {
				return vpp.Want("interface", q.EnableDisable != 0, q.PID)
			}).With(&vppif.SwInterfaceEvent{}),
			core.Dump(p.dump),
			core.On(vpp, func(q *vppif.SwInterfaceTagAddDel) index { return q.SwIfIndex }, setTag),
			core.On(vpp, func(q *vppif.SwInterfaceSetFlags) index { return q.SwIfIndex },
				func(i *core.Interface, q *vppif.SwInterfaceSetFlags, _ *vppif.SwInterfaceSetFlagsReply) core.Errno {
					return vpp.SetFlags(i, q.Flags)
				}),
			core.On(vpp, func(q *vppif.SwInterfaceSetMacAddress) index { return q.SwIfIndex }, setMAC),
			core.On(vpp, func(q *vppif.SwInterfaceSetMtu) index { return q.SwIfIndex }, setMTU),
			core.On(vpp, func(q *vppif.HwInterfaceSetMtu) index { return q.SwIfIndex }, setHardwareMTU),
			core.Call(p.setName),
		},
		Pages: map[string]func() string{"show interface": p.show},
	})
	p.loopbacks()
	p.subInterfaces()
	p.queues()
}

// dump lists one interface, or all of them for index 0 as well as for ~0. The name filter
// selects interfaces with that text anywhere in their names, in any case. An unknown index
// gives no details and no error.
func (p plugin) dump(q *vppif.SwInterfaceDump, yield func(vppif.SwInterfaceDetails)) {
	if q.SwIfIndex != 0 && uint32(q.SwIfIndex) != core.None {
		if i := p.vpp.Interface(uint32(q.SwIfIndex)); i != nil {
			yield(p.vpp.DetailsOf(i))
		}
		return
	}
	filter := strings.ToLower(q.NameFilter)
	for _, i := range p.vpp.Interfaces() {
		if !q.NameFilterValid || strings.Contains(strings.ToLower(i.Name), filter) {
			yield(p.vpp.DetailsOf(i))
		}
	}
}

// maxTag is the length of the longest tag. VPP cuts off the rest.
const maxTag = 63

// setTag replaces the tag. An empty tag is refused and the old one stays. Deleting ignores
// the text of the request, and succeeds without a tag.
func setTag(i *core.Interface, q *vppif.SwInterfaceTagAddDel, _ *vppif.SwInterfaceTagAddDelReply) core.Errno {
	switch {
	case !q.IsAdd:
		i.Tag = ""
	case q.Tag == "":
		return api.INVALID_VALUE
	default:
		i.Tag = q.Tag[:min(len(q.Tag), maxTag)]
	}
	return core.OK
}

// setMAC accepts multicast addresses and zero as well, but local0 and interfaces for IP packets
// have no MAC address.
func setMAC(i *core.Interface, q *vppif.SwInterfaceSetMacAddress, _ *vppif.SwInterfaceSetMacAddressReply) core.Errno {
	if i.Device == nil || i.NoMAC {
		return api.UNIMPLEMENTED
	}
	i.MAC = q.MacAddress
	return core.OK
}

// setMTU replaces all four software MTUs without any limit. The MTU of the link stays.
func setMTU(i *core.Interface, q *vppif.SwInterfaceSetMtu, _ *vppif.SwInterfaceSetMtuReply) core.Errno {
	copy(i.MTU[:], q.Mtu)
	return core.OK
}

// setHardwareMTU sets the MTU of the link. A loopback refuses every value but its present
// one, and local0 has none.
func setHardwareMTU(i *core.Interface, q *vppif.HwInterfaceSetMtu, _ *vppif.HwInterfaceSetMtuReply) core.Errno {
	_, isLoopback := i.Device.(loopback)
	switch {
	case i.Device == nil:
		return api.FEATURE_DISABLED
	case isLoopback && q.Mtu != i.LinkMTU:
		return api.UNSUPPORTED
	}
	i.LinkMTU = q.Mtu
	return core.OK
}

// setName accepts any name but the empty one, also a name in use. Before 25.10 an unknown
// index renamed local0.
func (p plugin) setName(q *vppif.SwInterfaceSetInterfaceName, _ *vppif.SwInterfaceSetInterfaceNameReply) core.Errno {
	i, errno := p.vpp.At(q.SwIfIndex)
	if errno != core.OK && p.vpp.Before("25.10") {
		i, errno = p.vpp.At(0)
	}
	switch {
	case errno != core.OK:
		return errno
	case q.Name == "":
		return api.INVALID_VALUE
	}
	i.Name = q.Name
	return core.OK
}

// show lists interfaces with their addresses, a tag rewrite, and the agent that owns them.
func (p plugin) show() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-6s %-24s %-24s %-10s %-6s %s\n", "index", "name", "tag", "state", "table", "addresses")
	for _, i := range p.vpp.Interfaces() {
		state := "down"
		if i.IsUp() {
			state = "up"
		}
		var words []string
		for _, a := range i.Addresses {
			words = append(words, a.String())
		}
		if op := p.vpp.DetailsOf(i).VtrOp; op != 0 {
			words = append(words, fmt.Sprint("rewrites ", op))
		}
		name, owner := core.ParseTag(i.Tag)
		if owner != "" {
			words = append(words, "of "+owner)
		}
		fmt.Fprintf(&b, "%-6d %-24s %-24s %-10s %-6d %s\n", i.Index, i.Name, name, state, i.Tables[0], strings.Join(words, " "))
	}
	return b.String()
}
