package conn

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/memclnt"

	"github.com/keyplane/keyplane/internal/guard"
	"github.com/keyplane/keyplane/internal/vppwire"
)

// A call waits for the answers to its requests.
type call struct {
	frames []byte // the encoded requests
	awaits []await
	at     int        // the first request that is not completely answered
	err    error      // of the first request that was refused
	taking sync.Mutex // held while an answer is processed that is not the last
	done   chan error

	decoder *vppwire.Decoder // of the connection
}

// An await is the expected answer to one request: a reply, or any number of details.
type await struct {
	request api.Message
	reply   api.Message // nil: details
	detail  api.Message // with take
	take    Take        // called with each detail
	id      uint16
	retval  int // see kind
	// clientFirst: these details have a client field before the context, as requests do.
	clientFirst bool
	isEnd       bool   // the reply ends the details of the await before, and has no request of its own
	step        *Step  // nil: the caller does not need the result
	got         limits // counts the details so far
	answered    bool
	refused     error // with answered
}

// limits bound the details that answer one request, in number and in bytes.
type limits struct{ details, bytes int }

// defaultLimits are larger than the largest routing tables, and smaller than the memory of
// a host.
var defaultLimits = limits{details: 1 << 23, bytes: 1 << 30}

// errEndless ends a connection whose details do not end.
var errEndless = errors.New("too many details")

// add counts one more detail.
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

// idleCall returns a call without requests. The caller calls rest at the end.
func (c *Conn) idleCall() *call {
	if one, ok := c.idle.Get().(*call); ok {
		return one
	}
	return &call{done: make(chan error, 1), decoder: &c.decoder}
}

// rest clears a call and keeps its memory for the next one.
func (c *Conn) rest(one *call) {
	clear(one.awaits)
	one.frames, one.awaits, one.at, one.err = one.frames[:0], one.awaits[:0], 0, nil
	c.idle.Put(one)
}

// Call sends request and waits for reply. A non-zero return value is a *Refusal; a message
// that VPP does not have is a *Missing. When ctx ends, the answer is dropped, and VPP may
// still have carried out the request.
func (c *Conn) Call(ctx context.Context, request, reply api.Message) error {
	one := c.idleCall()
	defer c.rest(one)
	one.awaits = append(one.awaits, await{request: request, reply: reply})
	return c.do(ctx, one)
}

// Details sends a request with any number of answers, and calls take with each, but never
// after it has returned. A control_ping after the request marks the end.
//
// A VPP that does not have the request has nothing to tell: its plugin is not loaded, or it is older
// than such items. So there are no answers. One that defines it in a way that is not known may have
// something: that is an *Unreadable.
func (c *Conn) Details(ctx context.Context, request, detail api.Message, take Take) error {
	if c.lacks(request) {
		return ctx.Err()
	}
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
	one.awaits = slices.Grow(one.awaits, len(steps))
	for _, s := range steps {
		if s.Take != nil && c.lacks(s.Request) { // as in Details
			continue
		}
		if s.Take != nil && s.Reply != nil {
			one.awaits = append(one.awaits,
				await{request: s.Request, detail: s.Detail, take: s.Take},
				await{request: s.Request, reply: s.Reply, isEnd: true, step: s})
			continue
		}
		one.awaits = append(one.awaits, await{request: s.Request, reply: s.Reply, detail: s.Detail, take: s.Take, step: s})
	}
	if len(one.awaits) == 0 {
		return ctx.Err()
	}
	err := c.do(ctx, one)
	for i := range one.awaits[one.at:] {
		if step := one.awaits[one.at+i].step; step != nil {
			step.Err = err
		}
	}
	return err
}

// do sends the requests of a call, all with the same context, and waits for the end. No
// answer is processed after it has returned.
func (c *Conn) do(ctx context.Context, one *call) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for i := range one.awaits {
		if err := c.encode(one, &one.awaits[i]); err != nil {
			return err
		}
		if i == 0 { // the requests of a batch mostly have the same length
			one.frames = slices.Grow(one.frames, min(len(one.frames)*(len(one.awaits)-1), mostForeseen))
		}
	}
	begun := time.Now()
	number, err := c.begin(one)
	if err != nil {
		c.counts.add(one, 0, err)
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
	one.taking.Lock() // wait for the answer that is being processed
	defer one.taking.Unlock()
	c.counts.add(one, time.Since(begun), err)
	return err
}

// mostForeseen bounds the bytes for which a batch has room before they are encoded.
const mostForeseen = 4 << 20

// longestAnswer limits calls without a deadline. VPP can answer others and never answer
// this one.
const longestAnswer = 5 * time.Minute

// tooLate fires when a call without a deadline has waited for longestAnswer. For other
// calls it never fires.
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
	switch {
	case request.known && answer.known:
		if err := c.unlisted(a.request); err != nil {
			return err
		}
	case !request.known && !c.lacks(a.request) && (a.take != nil || c.lists(a.request)):
		return &Unreadable{Message: a.request.GetMessageName(), Release: c.release}
	default:
		return c.missing(a.request)
	}
	a.id, a.retval = answer.id, answer.retval
	if a.isEnd {
		return nil
	}
	one.frames, err = vppwire.Append(one.frames, request.id, a.request, c.client, 0)
	return err
}

// longBatch is the length in bytes from which requests are queued without a copy.
const longBatch = 64 << 10

// begin queues the requests. It writes the queue, unless another goroutine is writing.
func (c *Conn) begin(one *call) (number uint32, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, c.err
	}
	c.last++
	number = c.last
	vppwire.SetContext(one.frames, number)
	if len(c.out) == 0 && len(one.frames) >= longBatch {
		c.out, one.frames = one.frames, c.out
	} else {
		c.out = append(c.out, one.frames...)
	}
	c.calls[number] = one
	if !c.writing {
		c.write()
	}
	return number, nil
}

// write writes until the queue is empty. It first lets other callers queue their requests,
// so that many requests go out in one write. It is called and returns with mu held.
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

// abandon forgets a call. It returns false if the call's last answer is already being
// processed.
func (c *Conn) abandon(number uint32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, waits := c.calls[number]
	delete(c.calls, number)
	return waits
}

// dispatch passes a message to the call that it answers. Messages of abandoned calls are
// dropped. An error ends the connection.
func (c *Conn) dispatch(message []byte) error {
	id := vppwire.ID(message)
	if event := c.events[id]; event != nil {
		if c.ended() != nil { // an earlier answer may have been dropped
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

// ifPanic returns an error that ends the connection, and nil for one of a single answer.
func ifPanic(err error) error {
	if errors.Is(err, guard.ErrPanic) || errors.Is(err, errEndless) {
		return err
	}
	return nil
}

// harmless returns the error of take. It turns a panic into an error about VPP's message.
func harmless(id uint16, take func() error) error {
	err := Safely(take)
	if errors.Is(err, guard.ErrPanic) {
		return fmt.Errorf("message %d: %w", id, err)
	}
	return err
}

// Safely returns the error of do, which processes answers of VPP. It turns a panic into an
// ErrProtocol with the stack.
func Safely(do func() error) error {
	err := guard.Run(do)
	if bug, ok := errors.AsType[*guard.Panic](err); ok {
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

// endsWith tells whether a message is the last expected answer.
func (one *call) endsWith(id uint16) bool {
	last := len(one.awaits) - 1
	return one.awaits[last].id == id && one.awaits[last].take == nil && one.next(id) == last
}

// next returns the request that a message answers, if those before it are answered. The
// answer to a later request ends details. It is len(one.awaits) if the message answers
// none.
func (one *call) next(id uint16) int {
	for i := one.at; i < len(one.awaits); i++ {
		a := &one.awaits[i]
		if a.id == id {
			return i
		}
		if a.take == nil {
			break
		}
	}
	return len(one.awaits)
}

// end processes the last answer.
func (one *call) end(id uint16, message []byte) error {
	if err := one.answer(id, message, limits{}); err != nil {
		return err
	}
	return one.err
}

// answer processes a message that answers one of the requests. most limits its details. An
// error ends the call.
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
		return a.take(one.decoder, message)
	}
	if err := one.decoder.Decode(message, a.reply); err != nil {
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	var refusal error
	if a.retval >= 0 {
		if retval := int32(reflect.ValueOf(a.reply).Elem().Field(a.retval).Int()); retval != 0 {
			refusal = &Refusal{Request: a.request, Retval: retval}
		}
	}
	a.ended(refusal)
	one.err = cmp.Or(one.err, refusal)
	one.at++
	return nil
}

// ended stores the error in the step, if the answer belongs to one.
func (a *await) ended(err error) {
	a.answered, a.refused = true, err
	if a.step != nil {
		a.step.Err = err
	}
}
