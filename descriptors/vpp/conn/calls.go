package conn

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/memclnt"

	"github.com/keyplane/keyplane/internal/guard"
	"github.com/keyplane/keyplane/internal/vppwire"
)

// A call waits for its answers.
type call struct {
	frames []byte // of its requests
	awaits []await
	at     int        // the first whose answer has not come to its end
	err    error      // of the first that was refused
	taking sync.Mutex // held while an answer is taken behind which others come
	done   chan error

	decoder *vppwire.Decoder // of the connection
}

// An await is what one request of a call is answered by: a reply, or any number of details.
type await struct {
	request api.Message
	reply   api.Message                // nil: details
	detail  api.Message                // with take
	take    func(message []byte) error // called with each
	id      uint16
	retval  bool
	// clientFirst: these details have a client before the context, as requests do.
	clientFirst bool
	step        *Step  // nil: nobody asks how it ended
	got         limits // so many details there were
}

// limits bound the details that answer one request: their count, and their bytes.
type limits struct{ details, bytes int }

// defaultLimits are above the largest tables of routes, and below the memory of a host.
var defaultLimits = limits{details: 1 << 23, bytes: 1 << 30}

// errEndless is why details end the connection: nothing else would end them.
var errEndless = errors.New("too many details")

// add counts one more of the details that answer request.
func (l *limits) add(bytes int, most limits, request api.Message) error {
	l.details++
	l.bytes += bytes
	switch {
	case l.details > most.details:
		return fmt.Errorf("%w: %w: more than %d details answer %s", ErrProtocol, errEndless, most.details, request.GetMessageName())
	case l.bytes > most.bytes:
		return fmt.Errorf("%w: %w: details of more than %d bytes answer %s", ErrProtocol, errEndless, most.bytes, request.GetMessageName())
	}
	return nil
}

// idleCall is a call that awaits nothing; rest is to be called with it in the end.
func (c *Conn) idleCall() *call {
	if one, ok := c.idle.Get().(*call); ok {
		return one
	}
	return &call{done: make(chan error, 1), decoder: &c.decoder}
}

func (c *Conn) rest(one *call) {
	clear(one.awaits)
	one.frames, one.awaits, one.at, one.err = one.frames[:0], one.awaits[:0], 0, nil
	c.idle.Put(one)
}

// Call sends request and waits for reply. A return value that is not zero is a *Refusal,
// a message that VPP does not have *Missing. When ctx ends the answer is dropped; what
// was asked may have been done.
func (c *Conn) Call(ctx context.Context, request, reply api.Message) error {
	one := c.idleCall()
	defer c.rest(one)
	one.awaits = append(one.awaits, await{request: request, reply: reply})
	return c.do(ctx, one)
}

// Details sends a request that is answered by any number of details, and has take
// called with each message, but not after it has returned. One of control_ping behind the request marks the end.
func (c *Conn) Details(ctx context.Context, request, detail api.Message, take func(message []byte) error) error {
	one := c.idleCall()
	defer c.rest(one)
	one.awaits = append(one.awaits,
		await{request: request, detail: detail, take: take},
		await{request: &memclnt.ControlPing{}, reply: &memclnt.ControlPingReply{}})
	return c.do(ctx, one)
}

// Batch implements API.
func (c *Conn) Batch(ctx context.Context, steps ...*Step) error {
	if len(steps) == 0 {
		return nil
	}
	one := c.idleCall()
	defer c.rest(one)
	for _, s := range steps {
		one.awaits = append(one.awaits, await{request: s.Request, reply: s.Reply, detail: s.Detail, take: s.Take, step: s})
	}
	err := c.do(ctx, one)
	for _, s := range steps[one.at:] {
		s.Err = err
	}
	return err
}

// do sends the requests of a call, all with its context, and waits for its end. Nothing is taken
// after it has returned.
func (c *Conn) do(ctx context.Context, one *call) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for i := range one.awaits {
		if err := c.encode(one, &one.awaits[i]); err != nil {
			return err
		}
	}
	number, err := c.begin(one)
	if err != nil {
		return err
	}
	select {
	case err = <-one.done:
	case <-ctx.Done():
		if err = ctx.Err(); !c.abandon(number) {
			err = <-one.done
		}
	case <-c.tooLate(ctx):
		if err = fmt.Errorf("%w %s within %s", ErrHung, one.awaits[0].request.GetMessageName(), longestAnswer); !c.abandon(number) {
			err = <-one.done
		}
	}
	one.taking.Lock() // what is being taken is taken to the end
	defer one.taking.Unlock()
	return err
}

// longestAnswer is how long a call waits that has no deadline: VPP may answer others, and never this.
const longestAnswer = 5 * time.Minute

// tooLate tells when a call without a deadline has waited long enough; of others it never tells.
func (c *Conn) tooLate(ctx context.Context) <-chan time.Time {
	if _, has := ctx.Deadline(); has {
		return nil
	}
	return time.After(longestAnswer)
}

// encode appends a request to the frames of its call.
func (c *Conn) encode(one *call, a *await) (err error) {
	by := a.reply
	if by == nil {
		by = a.detail
		a.clientFirst = by.GetMessageType() == api.RequestMessage
	}
	request, answer := c.kindOf(a.request), c.kindOf(by)
	if !request.known || !answer.known {
		return c.missing(a.request)
	}
	a.id, a.retval = answer.id, answer.retval
	one.frames, err = vppwire.Append(one.frames, request.id, a.request, c.client, 0)
	return err
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

// dispatch hands a message to whom it is for. What nobody waits for any more is dropped. An error ends
// the connection.
func (c *Conn) dispatch(message []byte) error {
	id := vppwire.ID(message)
	if event := c.events[id]; event != nil {
		if c.ended() != nil { // the answer before it may have been dropped
			return nil
		}
		return harmless(id, func() error { event(message); return nil })
	}
	if len(message) < 6 {
		return nil
	}
	c.mu.Lock()
	number, one := c.callOf(id, message)
	last := one != nil && one.endsWith(id)
	if last {
		delete(c.calls, number)
	} else if one != nil {
		one.taking.Lock()
	}
	c.mu.Unlock()
	switch {
	case one == nil:
		return nil
	case last:
		err := harmless(id, func() error { return one.end(id, message) })
		one.done <- err
		return ifPanic(err)
	}
	err := harmless(id, func() error { return one.answer(id, message, c.limits) })
	one.taking.Unlock()
	if err != nil && c.abandon(number) {
		one.done <- err
	}
	return ifPanic(err)
}

func ifPanic(err error) error {
	if errors.Is(err, guard.ErrPanic) || errors.Is(err, errEndless) {
		return err
	}
	return nil
}

// harmless returns the error of take. A panic in it is one of VPP's message.
func harmless(id uint16, take func() error) error {
	err := Safely(take)
	if errors.Is(err, guard.ErrPanic) {
		return fmt.Errorf("message %d: %w", id, err)
	}
	return err
}

// Safely returns the error of do, which works with answers of VPP. A panic in it is an ErrProtocol that
// has the stack.
func Safely(do func() error) error {
	err := guard.Run(do)
	var bug *guard.Panic
	if errors.As(err, &bug) {
		return fmt.Errorf("%w: %w\n%s", ErrProtocol, bug, bug.Stack)
	}
	return err
}

// callOf finds the call that a message answers, by its context. It is called with mu held.
func (c *Conn) callOf(id uint16, message []byte) (number uint32, one *call) {
	number = binary.BigEndian.Uint32(message[2:])
	if one = c.calls[number]; one != nil || len(message) < 10 {
		return number, one
	}
	number = binary.BigEndian.Uint32(message[6:])
	if one = c.calls[number]; one != nil && slices.ContainsFunc(one.awaits, func(a await) bool { return a.clientFirst && a.id == id }) {
		return number, one
	}
	return number, nil
}

// endsWith tells whether a message is the last answer that is awaited.
func (one *call) endsWith(id uint16) bool {
	last := len(one.awaits) - 1
	return one.awaits[last].id == id && one.awaits[last].take == nil && one.next(id) == last
}

// next is the request that a message answers, when those before it have been answered: details
// end with what comes behind them. It is len(one.awaits) if none is answered so.
func (one *call) next(id uint16) int {
	for i, a := range one.awaits[one.at:] {
		if a.id == id {
			return one.at + i
		}
		if a.take == nil {
			break
		}
	}
	return len(one.awaits)
}

// end takes the last answer.
func (one *call) end(id uint16, message []byte) error {
	if err := one.answer(id, message, limits{}); err != nil {
		return err
	}
	return one.err
}

// answer takes a message that answers one of the requests, of details as many as most. An error ends
// the call.
func (one *call) answer(id uint16, message []byte, most limits) error {
	n := one.next(id)
	if n == len(one.awaits) {
		return fmt.Errorf("%w: message %d answers %s", ErrProtocol, id, one.awaits[one.at].request.GetMessageName())
	}
	for ; one.at < n; one.at++ {
		one.awaits[one.at].ended(nil)
	}
	a := &one.awaits[n]
	if a.take != nil {
		if err := a.got.add(len(message), most, a.request); err != nil {
			return err
		}
		return a.take(message)
	}
	if err := one.decoder.Decode(message, a.reply); err != nil {
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	var refusal error
	if a.retval {
		if retval := int32(binary.BigEndian.Uint32(message[6:])); retval != 0 {
			refusal = &Refusal{Request: a.request, Retval: retval}
		}
	}
	a.ended(refusal)
	one.err = cmp.Or(one.err, refusal)
	one.at++
	return nil
}

func (a *await) ended(err error) {
	if a.step != nil {
		a.step.Err = err
	}
}
