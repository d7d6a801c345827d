package etcd

import (
	"context"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
)

// A line is the set of connections of one client. It records the time of the last received
// data.
type line struct {
	heard kvdbsync.Pulse

	mu    sync.Mutex // guards conns
	conns map[*heardConn]bool
}

// hangUp closes the connections; the client makes new ones.
func (l *line) hangUp() {
	l.mu.Lock()
	conns := slices.Collect(maps.Keys(l.conns))
	l.mu.Unlock()
	for _, c := range conns {
		c.Close()
	}
}

// dial opens one connection, with the kernel's probes on.
func (l *line) dial(ctx context.Context, addr string) (net.Conn, error) {
	network := "tcp"
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		network, addr = "unix", strings.TrimPrefix(path, "//")
	}
	d := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: tcpProbeAfter, Interval: tcpProbeEvery, Count: tcpProbes,
	}}
	conn, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	c := &heardConn{conn, l}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[c] = true
	return c, nil
}

// A heardConn records the time of received data.
type heardConn struct {
	net.Conn
	line *line
}

// Close also removes the connection from the line, which closes all that are left.
func (c *heardConn) Close() error {
	c.line.mu.Lock()
	delete(c.line.conns, c)
	c.line.mu.Unlock()
	return c.Conn.Close()
}

// Read notes that bytes came, whatever their content: the connection is alive.
func (c *heardConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.line.heard.Beat()
	}
	return n, err
}

// A silence is the error of a request that ended because no data came any more.
type silence struct{ limit time.Duration }

// Error names the time without a byte.
func (s *silence) Error() string { return "no byte from etcd for " + s.limit.String() }

// Unwrap makes errors.Is find context.DeadlineExceeded.
func (s *silence) Unwrap() error { return context.DeadlineExceeded }

// bounded returns a context that ends after a silence of limit. It bounds the silence and
// not the time of a request, because a large answer takes long on a slow line. While a
// server reads a large request, it acknowledges the received parts.
func (l *line) bounded(ctx context.Context, limit time.Duration) (bounded context.Context, end func()) {
	return l.heard.Bound(ctx, limit, &silence{limit})
}

// because returns the silence of the line if that ended ctx, and otherwise err.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}
