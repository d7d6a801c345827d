package conn

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/memclnt"

	"github.com/keyplane/keyplane/internal/vppwire"
)

// A call waits for its reply.
type call struct {
	frames  []byte // of its requests
	request api.Message
	reply   api.Message
	replyID uint16
	retval  bool
	// Of a dump, each message that comes before the reply.
	detailID uint16
	detail   func(message []byte) error
	taking   sync.Mutex // held while detail is called
	// clientFirst: these details have a client before the context, as requests do.
	clientFirst bool
	done        chan error
}

func newCall() *call { return &call{done: make(chan error, 1)} }

// Call sends request and waits for reply. A return value that is not zero is a *Refusal,
// a message that VPP does not have *Missing. When ctx ends the answer is dropped; what
// was asked may have been done.
func (c *Conn) Call(ctx context.Context, request, reply api.Message) error {
	k := c.kindOf(reply)
	if !k.known {
		return c.missing(request)
	}
	one, ok := c.idle.Get().(*call)
	if !ok {
		one = newCall()
	}
	one.request, one.reply, one.replyID, one.retval = request, reply, k.id, k.retval
	err := c.do(ctx, one, request)
	one.frames, one.request, one.reply = one.frames[:0], nil, nil
	c.idle.Put(one) // nobody else knows of it any more
	return err
}

// Details sends a request that is answered by any number of details, and has take
// called with each message, but not after it has returned. One of control_ping behind the request marks the end.
func (c *Conn) Details(ctx context.Context, request, detail api.Message, take func(message []byte) error) error {
	ping := c.kindOf(&memclnt.ControlPingReply{})
	k := c.kindOf(detail)
	if !k.known {
		return c.missing(detail)
	}
	one := newCall()
	one.request, one.reply, one.replyID = request, &memclnt.ControlPingReply{}, ping.id
	one.detailID, one.detail, one.clientFirst = k.id, take, detail.GetMessageType() == api.RequestMessage
	err := c.do(ctx, one, request, &memclnt.ControlPing{})
	one.taking.Lock() // what is being taken is taken to the end
	defer one.taking.Unlock()
	return err
}

// do sends the requests of a call, all with its context, and waits for its end.
func (c *Conn) do(ctx context.Context, one *call, requests ...api.Message) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, m := range requests {
		k := c.kindOf(m)
		if !k.known {
			return c.missing(m)
		}
		if one.frames, err = vppwire.Append(one.frames, k.id, m, c.client, 0); err != nil {
			return err
		}
	}
	number, err := c.begin(one)
	if err != nil {
		return err
	}
	select {
	case err := <-one.done:
		return err
	case <-ctx.Done():
	}
	if c.abandon(number) {
		return ctx.Err()
	}
	return <-one.done
}

// begin queues the requests, and writes what is queued unless somebody does.
func (c *Conn) begin(one *call) (number uint32, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, c.err
	}
	c.last++
	number = c.last
	vppwire.SetContext(one.frames, number)
	c.out = append(c.out, one.frames...)
	c.calls[number] = one
	if !c.writing {
		c.write()
	}
	return number, nil
}

// write writes until nothing is queued any more. Who else is about to call goes first,
// so that many requests go out together. It is called and returns with mu held.
func (c *Conn) write() {
	c.writing = true
	for len(c.out) > 0 && c.err == nil {
		c.mu.Unlock()
		runtime.Gosched()
		c.mu.Lock()
		batch := c.out
		c.out = c.spare[:0]
		c.mu.Unlock()
		_, err := c.sock.Write(batch)
		if err != nil {
			c.Close(err)
		}
		c.mu.Lock()
		c.spare = batch
	}
	c.writing = false
}

// abandon forgets a call. It tells whether its end was not under way yet.
func (c *Conn) abandon(number uint32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, waits := c.calls[number]
	delete(c.calls, number)
	return waits
}

// dispatch hands a message to whom it is for. What nobody waits for any more is dropped.
func (c *Conn) dispatch(message []byte) {
	id := vppwire.ID(message)
	if event := c.events[id]; event != nil {
		if c.ended() == nil { // otherwise the answer before it may have been dropped
			event(message)
		}
		return
	}
	if len(message) < 6 {
		return
	}
	c.mu.Lock()
	number, one := c.callOf(id, message)
	detail := one != nil && one.detail != nil && id == one.detailID
	if detail {
		one.taking.Lock()
	} else if one != nil {
		delete(c.calls, number)
	}
	c.mu.Unlock()
	switch {
	case one == nil:
	case detail:
		err := one.detail(message)
		one.taking.Unlock()
		if err != nil && c.abandon(number) {
			one.done <- err
		}
	case id == one.replyID:
		one.done <- one.end(message)
	default:
		one.done <- fmt.Errorf("%w: message %d answers %s", ErrProtocol, id, one.request.GetMessageName())
	}
}

// callOf finds the call that a message answers, by its context. It is called with mu held.
func (c *Conn) callOf(id uint16, message []byte) (number uint32, one *call) {
	number = binary.BigEndian.Uint32(message[2:])
	if one = c.calls[number]; one != nil || len(message) < 10 {
		return number, one
	}
	number = binary.BigEndian.Uint32(message[6:])
	if one = c.calls[number]; one != nil && one.clientFirst && one.detailID == id {
		return number, one
	}
	return number, nil
}

// end takes the reply.
func (one *call) end(message []byte) error {
	if err := vppwire.Decode(message, one.reply); err != nil {
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	if one.retval {
		if retval := int32(binary.BigEndian.Uint32(message[6:])); retval != 0 {
			return &Refusal{Request: one.request, Retval: retval}
		}
	}
	return nil
}
