package grpc

import (
	"context"
	"net/http"
	"time"

	rpc "google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/keyplane/keyplane/internal/budget"
)

// A call is one that is served, from its request until its answer is written. One goroutine at a time
// uses it: that of the HTTP server before and after the call, and that of the service during it.
type call struct {
	memory *budget.Budget
	// gone ends when the client has left. The context of the HTTP request that gRPC gets does not: gRPC would
	// end the request while the service still has the memory of the call.
	gone  context.Context
	leave func()   // gives the memory back; nil: the call has none
	ends  []func() // called when the call ends
	// wrote has a token when a large message has been written.
	wrote chan struct{}
}

type callKey struct{}

// callOf returns the call of a context.
func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

func newCall(r *http.Request, memory *budget.Budget) *call {
	return &call{memory: memory, gone: r.Context(), wrote: make(chan struct{}, 1)}
}

// serve has a server of gRPC answer the request. It returns when the service has ended, and the answer
// is written or the client has left.
func (c *call) serve(server *rpc.Server, w *answering, r *http.Request) {
	w.control, w.call = http.NewResponseController(w.ResponseWriter), c
	server.ServeHTTP(w, r.WithContext(context.WithValue(context.WithoutCancel(r.Context()), callKey{}, c)))
}

// hold waits for so many bytes of the shared memory, in place of those that the call has. It gives these
// back first: somebody who has memory may not wait for more.
func (c *call) hold(ctx context.Context, bytes int64) error {
	c.release()
	leave, err := c.memory.Enter(ctx, bytes)
	if err == nil {
		c.leave = leave
	}
	return err
}

// release gives the memory back before the end of the call.
func (c *call) release() {
	if c.leave != nil {
		c.leave()
		c.leave = nil
	}
}

// end gives back everything that the call has.
func (c *call) end() {
	c.release()
	for _, end := range c.ends {
		end()
	}
}

// take takes a slot until the end of the call, and tells whether one was free.
func (c *call) take(slots chan struct{}) bool {
	select {
	case slots <- struct{}{}:
		c.ends = append(c.ends, func() { <-slots })
		return true
	default:
		return false
	}
}

// whileThere returns a context that also ends when the client of the call has left.
func whileThere(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(callOf(ctx).gone, cancel)
	return ctx, func() { stop(); cancel() }
}

// A presentStream is a stream whose context ends when its client has left.
type presentStream struct {
	rpc.ServerStream
	ctx context.Context
}

// Context implements rpc.ServerStream.
func (s presentStream) Context() context.Context { return s.ctx }

// An answering writer breaks an answer off if the client reads nothing of it for its patience, or not all of
// one message within maxAnswer. Then the memory of the answer is free.
type answering struct {
	http.ResponseWriter
	control  *http.ResponseController
	call     *call
	patience time.Duration // 0: no deadline
	stream   bool          // the answer has several messages, with pauses between them
	set      time.Time
}

// awaitWritten waits until the large message that was sent last is written, or the client has left.
func (c *call) awaitWritten(ctx context.Context) error {
	select {
	case <-c.wrote:
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

// maxPart is how many bytes are written within the patience for a client.
const maxPart = 64 << 10

// Write implements http.ResponseWriter.
func (a *answering) Write(p []byte) (done int, err error) {
	end := time.Now().Add(maxAnswer)
	for rest := p; len(rest) > 0 && err == nil; rest = p[done:] {
		a.limit(end)
		n, failed := a.ResponseWriter.Write(rest[:min(len(rest), maxPart)])
		done, err = done+n, failed
	}
	if len(p) > budget.Small {
		select {
		case a.call.wrote <- struct{}{}:
		default:
		}
	}
	return done, err
}

// limit sets the deadline of the next part. Each costs the server a message, so one is set in a second.
func (a *answering) limit(end time.Time) {
	now := time.Now()
	if a.patience == 0 || now.Sub(a.set) < time.Second {
		return
	}
	a.set = now
	deadline := now.Add(a.patience)
	if deadline.After(end) {
		deadline = end
	}
	// Writers without a connection, such as those of tests, have no deadline.
	_ = a.control.SetWriteDeadline(deadline)
}

// Flush implements http.Flusher.
func (a *answering) Flush() {
	a.limit(time.Now().Add(maxAnswer))
	_ = a.control.Flush() // the client has left
	if a.stream && a.patience > 0 {
		// HTTP/2 would end the stream at a deadline that passes while nothing is written.
		_ = a.control.SetWriteDeadline(time.Time{})
		a.set = time.Time{}
	}
}

// Unwrap is for http.ResponseController.
func (a *answering) Unwrap() http.ResponseWriter { return a.ResponseWriter }
