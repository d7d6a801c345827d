package redis

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
)

// TCP keepalive settings, which find a dead host on an idle connection.
const (
	tcpProbeAfter = 3 * time.Second
	tcpProbeEvery = time.Second
	tcpProbes     = 3
)

// A dialFunc is the form in which the client library takes a dialer.
type dialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// dialer opens connections that close when life ends, so that no goroutine waits for them
// longer. timeout limits each part of an answer, not the whole answer: a large answer may
// take long.
func dialer(life context.Context, security TLS, timeout time.Duration) dialFunc {
	plain := &net.Dialer{KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: tcpProbeAfter, Interval: tcpProbeEvery, Count: tcpProbes,
	}}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(life, cancel)()
		conn, err := security.dial(ctx, plain, network, addr)
		if err != nil {
			return nil, err
		}
		forget := context.AfterFunc(life, func() { conn.Close() })
		return &boundConn{Conn: conn, forget: forget, timeout: timeout}, nil
	}
}

// once allows only one connection. A second connection would not know which changes the
// first one missed.
func once(dial dialFunc) dialFunc {
	var dialed atomic.Bool
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if dialed.Swap(true) {
			return nil, fmt.Errorf("%w: %s", ErrLost, addr)
		}
		return dial(ctx, network, addr)
	}
}

// hearing reports the bytes received on the connections to heard.
func hearing(dial dialFunc, heard *kvdbsync.Pulse) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return heardConn{conn, heard}, nil
	}
}

// A heardConn notes each time that bytes come from the server.
type heardConn struct {
	net.Conn
	heard *kvdbsync.Pulse
}

// Read notes that bytes came, whatever their content: the connection is alive.
func (c heardConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.heard.Beat()
	}
	return n, err
}

// A boundConn closes when its life ends. It applies a read deadline to each part of an
// answer, so that a large answer on a slow line does not fail. A deadline nearer than
// timeout comes from a caller with less time, and applies to the whole answer.
type boundConn struct {
	net.Conn
	forget func() bool // detaches the connection from its life
	// The maximum silence within an answer. 0: deadlines of the library are left as they are.
	timeout time.Duration
	hurried bool // each part of an answer has a deadline; only the reading goroutine uses it
}

// Close also detaches the connection from the end of its context.
func (c *boundConn) Close() error {
	c.forget()
	return c.Conn.Close()
}

// SetReadDeadline recognises a deadline for a whole reply by its length. Read then
// replaces it by one for each read.
func (c *boundConn) SetReadDeadline(t time.Time) error {
	c.hurried = !t.IsZero() && time.Until(t) > c.timeout*9/10
	return c.Conn.SetReadDeadline(t)
}

// Read gives the server the full timeout for each part of a reply. A large reply over a
// slow line would otherwise never arrive.
func (c *boundConn) Read(p []byte) (int, error) {
	if c.hurried && c.timeout > 0 {
		if err := c.Conn.SetReadDeadline(time.Now().Add(c.timeout)); err != nil {
			return 0, err
		}
	}
	return c.Conn.Read(p)
}
