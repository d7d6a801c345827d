// Package tap simulates VPP's TAP interfaces (version 2). A TAP has a Linux side only if
// Options.TAP makes one.
//
// The real VPP opens /dev/net/tun and asks the kernel for the Linux side. Here a function
// of the options does that, so that most tests need no privileges, and tests of the whole
// agent get a real device.
package tap

import (
	"cmp"
	"fmt"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ethernet_types"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/tapv2"

	"github.com/keyplane/keyplane/internal/vppsim/core"
)

// A tap is the device of a TAP interface.
type tap struct {
	id      uint32
	host    string // name of the Linux side
	request tapv2.TapCreateV3
	remove  func() // of the Linux side
}

// A plugin adds its messages to a VPP. The TAPs are the devices of its interfaces.
type plugin struct{ vpp *core.VPP }

// New adds the plugin. Deleting any other interface is refused with INVALID_SW_IF_INDEX.
func New(vpp *core.VPP) {
	p := plugin{vpp}
	vpp.Register(core.Plugin{
		Messages: []core.Message{
			core.Call(p.create),
			core.Call(func(q *tapv2.TapDeleteV2, _ *tapv2.TapDeleteV2Reply) core.Errno {
				return core.Delete[*tap](vpp, q.SwIfIndex, api.INVALID_SW_IF_INDEX)
			}),
			core.Dump(p.dump),
		},
		Removing: func(i *core.Interface) {
			if t, is := i.Device.(*tap); is {
				t.remove()
			}
		},
		Ended: func() {
			for _, t := range core.Each[*tap](vpp, ^interface_types.InterfaceIndex(0)) {
				t.remove()
			}
		},
	})
}

// defaultRing is the size of a ring that the request leaves to VPP.
const defaultRing = 256

// create makes a TAP that is down, with its link up. A TUN has no MAC address. The size of a ring
// is a power of two. The ID is part of the name; the name of the Linux side defaults to the same
// name here, while the real kernel chooses one.
func (p plugin) create(q *tapv2.TapCreateV3, r *tapv2.TapCreateV3Reply) core.Errno {
	r.SwIfIndex = interface_types.InterfaceIndex(core.None)
	for _, size := range []uint16{q.RxRingSz, q.TxRingSz} {
		if size&(size-1) != 0 {
			return api.INIT_FAILED
		}
	}
	q.RxRingSz, q.TxRingSz = cmp.Or(q.RxRingSz, defaultRing), cmp.Or(q.TxRingSz, defaultRing)
	number, free := p.vpp.Number("tap", q.ID)
	if !free {
		return api.INVALID_INTERFACE
	}
	name := fmt.Sprintf("tap%d", number.N)
	t := &tap{id: number.N, host: cmp.Or(q.HostIfName, name), request: *q}
	if errno := p.linuxSide(t); errno != core.OK {
		p.vpp.Free(number)
		return errno
	}
	tag, _, _ := strings.Cut(q.Tag, "\x00")
	i := &core.Interface{
		Name: name, DevType: p.devType(), Device: t, Number: number, Tag: tag,
		NoMAC: q.TapFlags&tapv2.TAP_API_FLAG_TUN != 0, Flags: core.LinkUp, LinkMTU: 9000, MTU: [4]uint32{9000},
	}
	i.Receive(q.NumRxQueues, interface_types.RX_MODE_API_POLLING)
	r.SwIfIndex = p.vpp.Create(i)
	switch {
	case i.NoMAC:
	case q.UseRandomMac || q.MacAddress == ethernet_types.MacAddress{}:
		i.MAC = core.RandomMAC(i.Index)
	default:
		i.MAC = q.MacAddress
	}
	return core.OK
}

// devType returns the type that dumps show. TAPs moved into a plugin of their own with 26.02.
func (p plugin) devType() string {
	if p.vpp.Before("26.02") {
		return "virtio"
	}
	return "tap"
}

// linuxSide makes the Linux side. VPP returns SYSCALL_ERROR_3 for a name that the kernel
// refuses, for example "lo".
func (p plugin) linuxSide(t *tap) core.Errno {
	t.remove = func() {}
	if p.vpp.Options.TAP == nil {
		return core.OK
	}
	remove, err := p.vpp.Options.TAP(t.host)
	if err != nil {
		p.vpp.Options.Log.Warn("simulated VPP: no Linux side of a TAP", "name", t.host, "err", err)
		return api.SYSCALL_ERROR_3
	}
	t.remove = remove
	return core.OK
}

// dump lists one TAP, or all for ~0.
func (p plugin) dump(q *tapv2.SwInterfaceTapV2Dump, yield func(tapv2.SwInterfaceTapV2Details)) {
	for i, t := range core.Each[*tap](p.vpp, q.SwIfIndex) {
		yield(tapv2.SwInterfaceTapV2Details{
			SwIfIndex: i.Index, ID: t.id, TxRingSz: t.request.TxRingSz, RxRingSz: t.request.RxRingSz,
			HostMtuSize: t.request.HostMtuSize, HostMacAddr: t.request.HostMacAddr,
			HostIP4Prefix: t.request.HostIP4Prefix, HostIP6Prefix: t.request.HostIP6Prefix,
			TapFlags: t.request.TapFlags, DevName: i.Name, HostIfName: t.host,
			HostNamespace: t.request.HostNamespace, HostBridge: t.request.HostBridge,
		})
	}
}
