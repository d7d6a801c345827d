package vppsim

import (
	"encoding/binary"
	"reflect"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/memclnt"

	"github.com/keyplane/keyplane/internal/vppwire"
)

// allEntries is every message that is served.
func allEntries() []entry {
	var out []entry
	for _, domain := range [][]entry{
		generalMessages(),
		interfaceMessages(),
		rxMessages(),
		addressMessages(),
		tableMessages(),
		routeMessages(),
		l2Messages(),
		flushMessages(),
		bviMessages(),
		tapMessages(),
		afPacketMessages(),
		memifMessages(),
		subIfMessages(),
		tunnelMessages(),
		vxlanGPEMessages(),
		gtpuMessages(),
		ipsecMessages(),
		wireguardMessages(),
		rdmaMessages(),
		vmxnet3Messages(),
		bondMessages(),
		neighbourMessages(),
		dhcpMessages(),
		autoconfMessages(),
		dhcpProxyMessages(),
		vrrpMessages(),
		spanMessages(),
		agingMessages(),
	} {
		out = append(out, domain...)
	}
	return out
}

// A message is a pointer to a message of type T.
type message[T any] interface {
	*T
	api.Message
}

// errno is a return value; 0 is success.
type errno = api.VPPApiError

const ok errno = 0

// call is a message with one reply. serve changes the world and the reply; what it
// returns becomes the reply's Retval.
func call[Q, R any, PQ message[Q], PR message[R]](serve func(w *world, q *Q, r *R) errno) entry {
	answer := func(c *client, context uint32, r *R, retval errno) {
		if field := reflect.ValueOf(r).Elem().FieldByName("Retval"); field.IsValid() {
			field.SetInt(int64(retval))
		}
		c.answer(PR(r), context)
	}
	return entry{
		request: PQ(new(Q)), answers: []api.Message{PR(new(R))},
		serve: func(c *client, m []byte) {
			var q Q
			if vppwire.Decode(m, PQ(&q)) != nil {
				return // too short: no answer
			}
			var r R
			c.sim.world.asking = c
			retval := serve(c.sim.world, &q, &r)
			if retval == crash {
				c.sim.die(false)
				return
			}
			answer(c, vppwire.Context(m, PQ(&q)), &r, retval)
		},
		refuse: func(c *client, m []byte, retval int32) {
			var r R
			answer(c, binary.BigEndian.Uint32(m[6:]), &r, errno(retval))
		},
	}
}

// crash is what VPP does not survive.
const crash errno = 1 << 30

// dump is a message that any number of details answer, and nothing behind them.
func dump[Q, D any, PQ message[Q], PD message[D]](serve func(w *world, q *Q, yield func(D))) entry {
	return entry{
		request: PQ(new(Q)), answers: []api.Message{PD(new(D))},
		serve: func(c *client, m []byte) {
			var q Q
			if vppwire.Decode(m, PQ(&q)) != nil {
				return
			}
			context := vppwire.Context(m, PQ(&q))
			serve(c.sim.world, &q, func(d D) { c.answer(PD(&d), context) })
		},
		refuse: func(*client, []byte, int32) {}, // nothing can be refused: no details
	}
}

// with adds an event to what an entry answers.
func (e entry) with(events ...api.Message) entry {
	e.answers = append(e.answers, events...)
	return e
}

func generalMessages() []entry {
	return []entry{
		call(func(w *world, _ *memclnt.ControlPing, r *memclnt.ControlPingReply) errno {
			r.VpePID = w.pid
			return ok
		}),
		call(func(w *world, q *memclnt.SockclntDelete, r *memclnt.SockclntDeleteReply) errno {
			r.Response = 1
			w.asking.leaves()
			return ok
		}),
		call(showVersion),
		call(cliInband),
	}
}
