package core

import (
	"encoding/binary"
	"reflect"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/internal/vppwire"
)

// A Message is a request that a plugin serves, with the types of its answers. Call, Dump
// and On make one.
type Message struct {
	request api.Message
	answers []api.Message
	serve   func(c *Client, message []byte)
	// refuse answers with a return value and has no other effect.
	refuse func(c *Client, message []byte, retval int32)
}

// pointer is a pointer to a message of type T.
type pointer[T any] interface {
	*T
	api.Message
}

// Call makes a message with one reply. serve changes the state of its plugin and fills in
// the reply. The value that it returns becomes the reply's Retval.
func Call[Q, R any, PQ pointer[Q], PR pointer[R]](serve func(q *Q, r *R) Errno) Message {
	answer := func(c *Client, context uint32, r *R, retval Errno) {
		if field := reflect.ValueOf(r).Elem().FieldByName("Retval"); field.IsValid() {
			field.SetInt(int64(retval))
		}
		c.answer(PR(r), context)
	}
	return Message{
		request: PQ(new(Q)), answers: []api.Message{PR(new(R))},
		serve: func(c *Client, m []byte) {
			var q Q
			if c.server.decoder.Decode(m, PQ(&q)) != nil {
				return // VPP drops a message that is too short, and does not answer
			}
			var r R
			c.server.vpp.asking = c
			retval := serve(&q, &r)
			if retval == Crash {
				c.server.die(false)
				return
			}
			answer(c, vppwire.Context(m, PQ(&q)), &r, retval)
		},
		refuse: func(c *Client, m []byte, retval int32) {
			var r R
			answer(c, binary.BigEndian.Uint32(m[6:]), &r, Errno(retval))
		},
	}
}

// On makes a Call about an interface. An index without an interface is refused with
// INVALID_SW_IF_INDEX.
func On[Q, R any, PQ pointer[Q], PR pointer[R]](
	vpp *VPP, index func(*Q) interface_types.InterfaceIndex, serve func(i *Interface, q *Q, r *R) Errno,
) Message {
	return Call[Q, R, PQ, PR](func(q *Q, r *R) Errno {
		i, errno := vpp.At(index(q))
		if errno != OK {
			return errno
		}
		return serve(i, q, r)
	})
}

// Dump makes a message that any number of details answer. VPP marks their end by no
// message of its own, so clients send a control_ping behind a dump.
func Dump[Q, D any, PQ pointer[Q], PD pointer[D]](serve func(q *Q, yield func(D))) Message {
	return Message{
		request: PQ(new(Q)), answers: []api.Message{PD(new(D))},
		serve: func(c *Client, m []byte) {
			var q Q
			if c.server.decoder.Decode(m, PQ(&q)) != nil {
				return
			}
			context := vppwire.Context(m, PQ(&q))
			serve(&q, func(d D) { c.answer(PD(&d), context) })
		},
		refuse: func(*Client, []byte, int32) {}, // details have no return value: a refused dump is an empty one
	}
}

// Get makes a message that any number of details answer, and a reply behind them.
func Get[Q, D, R any, PQ pointer[Q], PD pointer[D], PR pointer[R]](serve func(q *Q, yield func(D), r *R) Errno) Message {
	var details func(D)
	out := Call[Q, R, PQ, PR](func(q *Q, r *R) Errno { return serve(q, details, r) })
	reply := out.serve
	out.serve = func(c *Client, m []byte) {
		context := vppwire.Context(m, PQ(new(Q)))
		details = func(d D) { c.answer(PD(&d), context) }
		reply(c, m)
	}
	return out.With(PD(new(D)))
}

// With adds events to the answers of a message, so that the message table has them.
func (m Message) With(events ...api.Message) Message {
	m.answers = append(m.answers, events...)
	return m
}
