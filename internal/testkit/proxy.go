package testkit

import (
	"bytes"
	"context"
	"net"
	"sync"
	"testing"

	"golang.org/x/time/rate"
)

// A Mode is what a Proxy does to the connections through it.
type Mode int

const (
	Pass      Mode = iota // hands on, both ways
	Drop                  // closes those that are and those that come
	Reset                 // the same, with a TCP reset
	BlackHole             // holds everything back; after Pass it flows on
)

// A Proxy is a TCP line to a server. A test can cut it, make it slow, and silence
// single connections of it.
type Proxy struct {
	Addr string // host:port to connect to

	mu     sync.Mutex // guards what follows
	mode   Mode
	change *sync.Cond // mode, or the set of connections, is another
	target string
	conns  map[*net.TCPConn]*link
	slow   *rate.Limiter // of bytes from the server to all clients; nil: as fast as they come
}

// A link is one connection through a Proxy. The Proxy's mutex guards it.
type link struct {
	sent   []byte // what the client has sent, up to sentKept bytes
	silent bool
}

// sentKept is how much of what a client sends is kept for Silence.
const sentKept = 16 << 10

// StartProxy opens a line to target, a host:port. The test closes it.
func StartProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listening for the proxy: %v", err)
	}
	p := &Proxy{Addr: l.Addr().String(), target: target, conns: map[*net.TCPConn]*link{}}
	p.change = sync.NewCond(&p.mu)
	var all sync.WaitGroup
	all.Go(func() { p.accept(l, &all) })
	t.Cleanup(func() {
		l.Close()
		p.Set(Drop)
		all.Wait()
	})
	return p
}

// Set changes what happens to the connections.
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

// Silence silences, for good, the connections on which the client has sent text near the
// beginning, and returns how many these are. The line goes on to acknowledge what comes
// on them, as a load balancer does whose other side hangs, but hands nothing on.
// Connections that come later are not silent.
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

// Slow bounds the bytes per second that all connections together carry from the
// server to its clients; 0: no bound.
func (p *Proxy) Slow(bytesPerSecond int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slow = nil
	if bytesPerSecond > 0 {
		p.slow = rate.NewLimiter(rate.Limit(bytesPerSecond), slowPart(bytesPerSecond))
	}
}

// slowPart is how many bytes a slow line carries at a time: of all connections in turn.
func slowPart(bytesPerSecond int) int { return max(bytesPerSecond/50, 1) }

// Retarget leads the connections that come to another server.
func (p *Proxy) Retarget(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

func (p *Proxy) accept(l net.Listener, all *sync.WaitGroup) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		all.Go(func() { p.serve(c.(*net.TCPConn), all) })
	}
}

// serve carries one connection until either side ends it.
func (p *Proxy) serve(near *net.TCPConn, all *sync.WaitGroup) {
	l := &link{}
	target, ok := p.admit(near, l)
	if !ok {
		return
	}
	c, err := net.Dial("tcp", target)
	if err != nil {
		p.remove(near)
		return
	}
	far := c.(*net.TCPConn)
	if _, ok := p.admit(far, l); !ok {
		p.remove(near)
		return
	}
	all.Go(func() {
		p.carry(far, near, func(part []byte) { p.note(l, part) })
	})
	p.carry(near, far, p.trickle)
}

// note keeps what the client of a connection sends.
func (p *Proxy) note(l *link, part []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.sent = append(l.sent, part[:min(len(part), sentKept-len(l.sent))]...)
}

// trickle returns when a slow line may carry a part.
func (p *Proxy) trickle(part []byte) {
	p.mu.Lock()
	slow := p.slow
	p.mu.Unlock()
	for left := len(part); slow != nil && left > 0; left -= slow.Burst() {
		_ = slow.WaitN(context.Background(), min(left, slow.Burst())) // fails only for more than the burst
	}
}

// carry copies one direction, and calls before with each part of it; when it ends, so does
// the connection.
func (p *Proxy) carry(to, from *net.TCPConn, before func(part []byte)) {
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

// part is how much is read at a time.
func (p *Proxy) part(most int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.slow != nil {
		return min(most, p.slow.Burst())
	}
	return most
}

// mayPass holds the caller back while the line is a black hole. It tells whether to
// deliver what was read; not ok: the connection is closed.
func (p *Proxy) mayPass(c *net.TCPConn) (deliver, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.mode == BlackHole && p.conns[c] != nil {
		p.change.Wait()
	}
	l := p.conns[c]
	return l != nil && !l.silent, l != nil
}

// admit takes a connection into the set, and tells where it leads, unless the
// line is cut.
func (p *Proxy) admit(c *net.TCPConn, l *link) (target string, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mode == Drop || p.mode == Reset {
		hangUp(c, p.mode)
		return "", false
	}
	p.conns[c] = l
	return p.target, true
}

func (p *Proxy) remove(c *net.TCPConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
	p.change.Broadcast()
	c.Close()
}

func hangUp(c *net.TCPConn, m Mode) {
	if m == Reset {
		_ = c.SetLinger(0) // fails on a connection that is closed already
	}
	c.Close()
}
