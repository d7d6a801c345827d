package redis

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
)

// How the kernel finds a host that is gone, where nothing is sent.
const (
	tcpProbeAfter = 3 * time.Second
	tcpProbeEvery = time.Second
	tcpProbes     = 3
)

type dialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// dialer opens connections that end when life does, so that nothing which waits
// for them outlives it. Given patience, they may take long for an answer, if only
// some of it comes within that time again and again.
func dialer(life context.Context, security TLS, patience time.Duration) dialFunc {
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
		return &boundConn{Conn: conn, forget: forget, patience: patience}, nil
	}
}

// once lets one connection be opened: a second would know nothing of what the
// first has missed.
func once(dial dialFunc) dialFunc {
	var dialed atomic.Bool
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if dialed.Swap(true) {
			return nil, fmt.Errorf("%w: %s", ErrLost, addr)
		}
		return dial(ctx, network, addr)
	}
}

// hearing notes what comes on the connections.
func hearing(dial dialFunc, heard *kvdbsync.Pulse) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return heardConn{conn, heard}, nil
	}
}

type heardConn struct {
	net.Conn
	heard *kvdbsync.Pulse
}

func (c heardConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.heard.Beat()
	}
	return n, err
}

// A boundConn is bound to a life. It takes a deadline for an answer as one for each part of
// the answer, so that a large answer on a slow line is not taken for none. A deadline
// that is nearer than patience is that of a caller who has no more time, and stays.
type boundConn struct {
	net.Conn
	forget   func() bool // leaves the life
	patience time.Duration
	hurried  bool // each part of an answer has a deadline; set and read by the one who reads
}

func (c *boundConn) Close() error {
	c.forget()
	return c.Conn.Close()
}

func (c *boundConn) SetReadDeadline(t time.Time) error {
	c.hurried = !t.IsZero() && time.Until(t) > c.patience*9/10
	return c.Conn.SetReadDeadline(t)
}

func (c *boundConn) Read(p []byte) (int, error) {
	if c.hurried && c.patience > 0 {
		if err := c.Conn.SetReadDeadline(time.Now().Add(c.patience)); err != nil {
			return 0, err
		}
	}
	return c.Conn.Read(p)
}
