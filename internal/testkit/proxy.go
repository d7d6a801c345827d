package testkit

import (
	"net"
	"sync"
	"testing"
)

// A Mode is what a Proxy does to the connections through it.
type Mode int

const (
	Pass      Mode = iota // hands on, both ways
	Drop                  // closes those that are and those that come
	Reset                 // the same, with a TCP reset
	BlackHole             // holds everything back; after Pass it flows on
)

// A Proxy is a TCP line to a server that a test can cut.
type Proxy struct {
	Addr string // host:port to connect to

	mu     sync.Mutex // guards what follows
	mode   Mode
	change *sync.Cond // mode, or the set of connections, is another
	target string
	conns  map[*net.TCPConn]bool
}

// StartProxy opens a line to target, a host:port. The test closes it.
func StartProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listening for the proxy: %v", err)
	}
	p := &Proxy{Addr: l.Addr().String(), target: target, conns: map[*net.TCPConn]bool{}}
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
	target, ok := p.admit(near)
	if !ok {
		return
	}
	c, err := net.Dial("tcp", target)
	if err != nil {
		p.remove(near)
		return
	}
	far := c.(*net.TCPConn)
	if _, ok := p.admit(far); !ok {
		p.remove(near)
		return
	}
	all.Go(func() { p.carry(near, far) })
	p.carry(far, near)
}

// carry copies one direction; when it ends, so does the connection.
func (p *Proxy) carry(to, from *net.TCPConn) {
	defer p.remove(to)
	defer p.remove(from)
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil || !p.mayPass(from) {
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// mayPass holds the caller back while the line is a black hole.
func (p *Proxy) mayPass(c *net.TCPConn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.mode == BlackHole && p.conns[c] {
		p.change.Wait()
	}
	return p.conns[c]
}

// admit takes a connection into the set, and tells where it leads, unless the
// line is cut.
func (p *Proxy) admit(c *net.TCPConn) (target string, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mode == Drop || p.mode == Reset {
		hangUp(c, p.mode)
		return "", false
	}
	p.conns[c] = true
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
