package nat

import (
	binip "go.fd.io/govpp/binapi/ip"

	"github.com/keyplane/keyplane/internal/vppsim/core"
)

// reassembly has the settings of each kind of reassembly. VPP checks none of them.
type reassembly map[binip.IPReassemblyGet]binip.IPReassemblySet

// newReassembly begins with the defaults of virtual reassembly of IPv4 (VPP ip4_sv_reass.c).
// The timeout and the walk are in milliseconds, the others numbers of packets and of their
// fragments.
func newReassembly(vpp *core.VPP) {
	r := reassembly{{Type: binip.IP_REASS_TYPE_SHALLOW_VIRTUAL}: {TimeoutMs: 100, MaxReassemblies: 1024, MaxReassemblyLength: 3, ExpireWalkIntervalMs: 10000}}
	vpp.Register(core.Plugin{Messages: []core.Message{
		core.Call(func(q *binip.IPReassemblySet, _ *binip.IPReassemblySetReply) core.Errno {
			r[binip.IPReassemblyGet{IsIP6: q.IsIP6, Type: q.Type}] = *q
			return core.OK
		}),
		core.Call(func(q *binip.IPReassemblyGet, a *binip.IPReassemblyGetReply) core.Errno {
			s := r[*q]
			a.TimeoutMs, a.MaxReassemblies, a.MaxReassemblyLength = s.TimeoutMs, s.MaxReassemblies, s.MaxReassemblyLength
			a.ExpireWalkIntervalMs, a.IsIP6 = s.ExpireWalkIntervalMs, q.IsIP6
			return core.OK
		}),
	}})
}
