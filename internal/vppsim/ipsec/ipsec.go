// Package ipsec simulates the interfaces that IPsec protects. Security associations and
// policies are not simulated.
package ipsec

import (
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ipsec"

	"github.com/keyplane/keyplane/internal/vppsim/core"
	"github.com/keyplane/keyplane/internal/vppsim/tunnel"
)

// A device is the device of an IPsec interface: the request that created it, with its number.
type device struct{ itf ipsec.IpsecItf }

type index = interface_types.InterfaceIndex

// New adds the plugin. Deleting any other interface is refused with INVALID_SW_IF_INDEX.
func New(vpp *core.VPP) {
	vpp.Register(core.Plugin{Messages: []core.Message{
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
	}})
}
