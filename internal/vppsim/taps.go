package vppsim

import (
	"cmp"
	"fmt"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ethernet_types"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/tapv2"
)

// A tap is the device of a TAP interface. It has no Linux side unless Options.TAP makes one.
type tap struct {
	id     uint32
	host   string
	q      tapv2.TapCreateV3
	remove func()
}

func (t *tap) gone(w *world, _ *iface) {
	w.interfaces.release("tap", t.id)
	t.remove()
}

func tapMessages() []entry {
	return []entry{
		call(createTAP),
		on(func(q *tapv2.TapDeleteV2) interface_types.InterfaceIndex { return q.SwIfIndex },
			func(w *world, i *iface, _ *tapv2.TapDeleteV2, _ *tapv2.TapDeleteV2Reply) errno {
				if _, is := i.device.(*tap); !is {
					return api.INVALID_SW_IF_INDEX
				}
				w.remove(i)
				return ok
			}),
		dump(func(w *world, q *tapv2.SwInterfaceTapV2Dump, yield func(tapv2.SwInterfaceTapV2Details)) {
			for _, i := range w.interfaces.sorted() {
				t, is := i.device.(*tap)
				if !is || uint32(q.SwIfIndex) != none && uint32(q.SwIfIndex) != i.index {
					continue
				}
				yield(tapv2.SwInterfaceTapV2Details{
					SwIfIndex: i.index, ID: t.id, TxRingSz: t.q.TxRingSz, RxRingSz: t.q.RxRingSz, HostMtuSize: t.q.HostMtuSize,
					HostMacAddr: t.q.HostMacAddr, HostIP4Prefix: t.q.HostIP4Prefix, HostIP6Prefix: t.q.HostIP6Prefix,
					TapFlags: t.q.TapFlags, DevName: i.name, HostIfName: t.host, HostNamespace: t.q.HostNamespace, HostBridge: t.q.HostBridge,
				})
			}
		}),
	}
}

// ringSize is that of a ring of which none is asked for.
const ringSize = 256

// createTAP: a ring has a power of two for a size. A TAP is down, with its link up.
func createTAP(w *world, q *tapv2.TapCreateV3, r *tapv2.TapCreateV3Reply) errno {
	r.SwIfIndex = interface_types.InterfaceIndex(none)
	for _, size := range []uint16{q.RxRingSz, q.TxRingSz} {
		if size&(size-1) != 0 {
			return api.INIT_FAILED
		}
	}
	q.RxRingSz, q.TxRingSz = cmp.Or(q.RxRingSz, ringSize), cmp.Or(q.TxRingSz, ringSize)
	id, free := w.interfaces.instance("tap", q.ID != none, q.ID)
	if !free {
		return api.INVALID_INTERFACE
	}
	t := &tap{id: id, host: q.HostIfName, q: *q, remove: func() {}}
	if t.host == "" {
		t.host = fmt.Sprintf("tap%d", id)
	}
	if w.sim.o.TAP != nil {
		remove, err := w.sim.o.TAP(t.host)
		if err != nil {
			w.sim.o.Log.Warn("simulated VPP: no Linux side of a TAP", "name", t.host, "err", err)
			w.interfaces.release("tap", id)
			return api.SYSCALL_ERROR_3
		}
		t.remove = remove
	}
	tag, _, _ := strings.Cut(q.Tag, "\x00")
	i := &iface{
		name: fmt.Sprintf("tap%d", id), devType: "virtio", device: t, tag: tag,
		flags: linkUp, linkMTU: 9000, mtu: [4]uint32{9000},
	}
	i.receive(q.NumRxQueues, interface_types.RX_MODE_API_POLLING)
	r.SwIfIndex = interface_types.InterfaceIndex(w.create(i))
	if i.mac = q.MacAddress; q.UseRandomMac || i.mac == (ethernet_types.MacAddress{}) {
		i.mac = randomMAC(i.index)
	}
	return ok
}

// randomMAC looks as random as those that VPP makes up.
func randomMAC(seed uint32) ethernet_types.MacAddress {
	seed = seed*2654435761 + 97
	return ethernet_types.MacAddress{0x02, 0xfe, byte(seed >> 24), byte(seed >> 16), byte(seed >> 8), byte(seed)}
}
