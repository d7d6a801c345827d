// Package tunnel has the helpers that plugins of tunnels share. It registers no message.
package tunnel

import (
	"fmt"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/tunnel_types"

	"github.com/keyplane/keyplane/internal/vppsim/core"
	"github.com/keyplane/keyplane/internal/vppsim/ip"
	"github.com/keyplane/keyplane/internal/vppsim/l2"
	"github.com/keyplane/keyplane/internal/vppwire"
)

const (
	// MTU is the MTU of a tunnel that carries Ethernet.
	MTU = 9000
	// DecapL2 is the number of the node that a VXLAN or GTPU tunnel sends decapsulated
	// packets to by default.
	DecapL2 = 1
)

// A Protectable is the device of a tunnel that IPsec can protect (VPP interface.h, ip_tun_desc).
type Protectable interface {
	Mode() tunnel_types.TunnelMode
}

// CheckEnds refuses equal endpoints, and an IP table that does not exist.
func CheckEnds(tables *ip.IP, src, dst ip_types.Address, table uint32) core.Errno {
	switch {
	case src == dst:
		return api.SAME_SRC_DST
	case !tables.HasTable(src.Af == ip_types.ADDRESS_IP6, table):
		return api.NO_SUCH_FIB
	}
	return core.OK
}

// CheckMulticast refuses a multicast destination unless the interface to send by exists.
func CheckMulticast(vpp *core.VPP, dst ip_types.Address, by interface_types.InterfaceIndex) core.Errno {
	if vppwire.Addr(dst).IsMulticast() && vpp.Interface(uint32(by)) == nil {
		return api.INVALID_SW_IF_INDEX
	}
	return core.OK
}

// Numbered makes an interface that is named by its kind and a number below 16384, as in
// "wg0": the wanted number, or the lowest free one for ~0. device returns the interface's
// device for the number. The interface is for IP packets. (VPP ipsec_itf.c, wireguard_if.c)
func Numbered(vpp *core.VPP, kind, devType string, wanted uint32, device func(number uint32) any) (interface_types.InterfaceIndex, core.Errno) {
	const maxNumbers = 16 * 1024
	refused := interface_types.InterfaceIndex(core.None)
	if wanted != core.None && wanted >= maxNumbers {
		return refused, api.INVALID_REGISTRATION
	}
	number, free := vpp.Number(kind, wanted)
	if !free {
		return refused, api.INVALID_REGISTRATION
	}
	return vpp.Create(&core.Interface{
		Name: fmt.Sprintf("%s%d", kind, number.N), DevType: devType, Device: device(number.N), Number: number, NoMAC: true, MTU: [4]uint32{MTU},
	}), core.OK
}

// A Recycler makes the interfaces of GTPU and VXLAN-GPE tunnels. VPP does not delete these
// interfaces but hides them (VPP gtpu.c and vxlan_gpe.c, free_*_hw_if_indices):
//
//	tunnel deleted    the interface is set down and leaves its bridge domain; dumps do not show it; its index stays
//	                  in use; no event reports a deletion
//	next tunnel       gets the interface that was hidden last, with its tag, addresses and MTU; otherwise a new one
type Recycler struct {
	VPP    *core.VPP
	L2     *l2.L2
	Prefix string // of the names of interfaces

	hidden []*core.Interface
}

// Up makes the interface of a new tunnel, which is up at once.
func (r *Recycler) Up(devType string, device any) interface_types.InterfaceIndex {
	i := r.next(devType, device)
	r.VPP.SetFlags(i, core.AdminUp)
	return interface_types.InterfaceIndex(i.Index)
}

// next returns the interface that was hidden last, with its former state, or makes a new one.
func (r *Recycler) next(devType string, device any) *core.Interface {
	if n := len(r.hidden); n > 0 {
		i := r.hidden[n-1]
		r.hidden = r.hidden[:n-1]
		i.Device = device
		r.VPP.Unhide(i)
		return i
	}
	// The number is never released, because the interface is never deleted.
	number, _ := r.VPP.Number(r.Prefix, core.None)
	i := &core.Interface{
		Name: fmt.Sprintf("%s%d", r.Prefix, number.N), DevType: devType, Device: device, NoMAC: true, LinkMTU: MTU, MTU: [4]uint32{MTU},
	}
	r.VPP.Create(i)
	return i
}

// Hide hides the interface of a deleted tunnel.
func (r *Recycler) Hide(i *core.Interface) {
	r.VPP.SetFlags(i, 0)
	r.L2.Detach(i)
	r.VPP.Hide(i)
	r.hidden = append(r.hidden, i)
}
