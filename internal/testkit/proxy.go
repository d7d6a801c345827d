package testkit

import (
	"bytes"
	"context"
	"net"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/time/rate"
)

// A Mode is the behaviour of a Proxy towards its connections.
type Mode int

const (
	Pass      Mode = iota // hands on, both ways
	Drop                  // closes those that are and those that come
	Reset                 // the same, with a TCP reset
	BlackHole             // holds everything back; after Pass it flows on
)

// A Proxy forwards connections to a server, by TCP or by Unix sockets. A test can interrupt it, slow it
// down, and silence single connections.
type Proxy struct {
	Addr string // host:port, or the path of a socket, to connect to

	mu     sync.Mutex // guards the fields below
	mode   Mode
	change *sync.Cond // signals a change of mode or of the set of connections
	target string
	conns  map[net.Conn]*link
	slow   *rate.Limiter // limits bytes from the server to all clients; nil: no limit
}

// A link is one connection through a Proxy. The Proxy's mutex guards it.
type link struct {
	sent   []byte // the first sentKept bytes from the client
	silent bool
}

// sentKept is the number of bytes from a client that are kept for Silence.
const sentKept = 16 << 10

// StartProxy starts a proxy for target, a host:port. The test closes it.
func StartProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	return startProxy(t, "tcp", "127.0.0.1:0", target)
}

// StartUnixProxy starts a proxy for the socket target, at a socket of its own. The test closes it. Reset is the
// same as Drop there.
func StartUnixProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	return startProxy(t, "unix", filepath.Join(t.TempDir(), "proxy.sock"), target)
}

func startProxy(t testing.TB, network, addr, target string) *Proxy {
	t.Helper()
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Fatalf("listening for the proxy: %v", err)
	}
	p := &Proxy{Addr: l.Addr().String(), target: target, conns: map[net.Conn]*link{}}
	p.change = sync.NewCond(&p.mu)
	var all sync.WaitGroup
	all.Go(func() { p.accept(l, network, &all) })
	t.Cleanup(func() {
		l.Close()
		p.Set(Drop)
		all.Wait()
	})
	return p
}

// Set changes the mode of the proxy and of its open connections.
func (p *Proxy) Set(m Mode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mode = m
	p.change.Broadcast()
	if m == Drop || m == Reset {
		for c := range p.conns {
			hangUp(c, m)
		}
		clear(p.conns)
	}
}

// Silence permanently silences the connections on which the client has sent text near the
// beginning, and returns their number. The proxy still acknowledges data on them but
// forwards nothing, like a load balancer whose other side hangs. Later connections are not
// affected.
func (p *Proxy) Silence(text string) (silenced int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := map[*link]bool{}
	for _, l := range p.conns {
		if !seen[l] && bytes.Contains(l.sent, []byte(text)) {
			seen[l], l.silent = true, true
		}
	}
	return len(seen)
}

// Slow limits the bytes per second from the server to all clients together; 0: no limit.
func (p *Proxy) Slow(bytesPerSecond int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slow = nil
	if bytesPerSecond > 0 {
		p.slow = rate.NewLimiter(rate.Limit(bytesPerSecond), slowPart(bytesPerSecond))
	}
}

// slowPart returns the number of bytes that a slow proxy forwards at a time, so that all
// connections get their share.
func slowPart(bytesPerSecond int) int { return max(bytesPerSecond/50, 1) }

// Retarget sends later connections to another server.
func (p *Proxy) Retarget(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

// accept serves each connection on a goroutine of its own, until the listener is closed.
func (p *Proxy) accept(l net.Listener, network string, all *sync.WaitGroup) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		all.Go(func() { p.serve(c, network, all) })
	}
}

// serve forwards one connection until either side ends it.
func (p *Proxy) serve(near net.Conn, network string, all *sync.WaitGroup) {
	l := &link{}
	target, ok := p.admit(near, l)
	if !ok {
		return
	}
	far, err := net.Dial(network, target)
	if err != nil {
		p.remove(near)
		return
	}
	if _, ok := p.admit(far, l); !ok {
		p.remove(near)
		return
	}
	all.Go(func() {
		p.carry(far, near, func(part []byte) { p.note(l, part) })
	})
	p.carry(near, far, p.trickle)
}

// note keeps the beginning of the data from the client.
func (p *Proxy) note(l *link, part []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.sent = append(l.sent, part[:min(len(part), sentKept-len(l.sent))]...)
}

// trickle waits until a slow proxy may forward a part.
func (p *Proxy) trickle(part []byte) {
	p.mu.Lock()
	slow := p.slow
	p.mu.Unlock()
	for left := len(part); slow != nil && left > 0; left -= slow.Burst() {
		_ = slow.WaitN(context.Background(), min(left, slow.Burst())) // fails only for more than the burst
	}
}

// carry copies one direction and calls before with each part. When it ends, it closes the
// connection.
func (p *Proxy) carry(to, from net.Conn, before func(part []byte)) {
	defer p.remove(to)
	defer p.remove(from)
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf[:p.part(len(buf))])
		if err != nil {
			return
		}
		before(buf[:n])
		deliver, ok := p.mayPass(from)
		if !ok {
			return
		}
		if !deliver {
			continue
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// part returns the maximum number of bytes to read at a time.
func (p *Proxy) part(most int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.slow != nil {
		return min(most, p.slow.Burst())
	}
	return most
}

// mayPass blocks while the proxy is a black hole. It reports whether to deliver the data;
// not ok means that the connection is closed.
func (p *Proxy) mayPass(c net.Conn) (deliver, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.mode == BlackHole && p.conns[c] != nil {
		p.change.Wait()
	}
	l := p.conns[c]
	return l != nil && !l.silent, l != nil
}

// admit adds a connection to the set and returns its target, unless the proxy is cut.
func (p *Proxy) admit(c net.Conn, l *link) (target string, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mode == Drop || p.mode == Reset {
		hangUp(c, p.mode)
		return "", false
	}
	p.conns[c] = l
	return p.target, true
}

// remove closes a connection, and wakes goroutines that wait for a change of mode.
func (p *Proxy) remove(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
	p.change.Broadcast()
	c.Close()
}

// hangUp closes a connection: with a linger time of 0 the kernel sends a reset instead of
// a regular end.
func hangUp(c net.Conn, m Mode) {
	if tcp, ok := c.(*net.TCPConn); ok && m == Reset {
		_ = tcp.SetLinger(0) // fails on a connection that is closed already
	}
	c.Close()
}
