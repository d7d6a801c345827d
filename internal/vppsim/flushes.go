package vppsim

import (
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/l2"
)

// flushMessages take away what VPP has learned from packets, of which there are none, but
// answers to ARP that were asked for.
func flushMessages() []entry {
	return []entry{
		call(func(w *world, q *l2.L2fibFlushBd, _ *l2.L2fibFlushBdReply) errno {
			if w.l2.byID[q.BdID] == nil {
				return api.NO_SUCH_ENTRY
			}
			return ok
		}),
		on(func(q *l2.L2fibFlushInt) interface_types.InterfaceIndex { return q.SwIfIndex },
			func(*world, *iface, *l2.L2fibFlushInt, *l2.L2fibFlushIntReply) errno { return ok }),
		call(func(*world, *l2.L2fibFlushAll, *l2.L2fibFlushAllReply) errno { return ok }),
		call(func(w *world, q *l2.BdIPMacFlush, _ *l2.BdIPMacFlushReply) errno {
			b, errno := w.l2.at(q.BdID)
			if errno == ok {
				b.arps = nil
			}
			return errno
		}),
	}
}
