package testkit

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestEtcdServesAgainAfterEachWayToEndIt(t *testing.T) {
	e := StartEtcd(t, EtcdOptions{})
	servesAgain(t, e.process, e.Addr, e.Wipe)
}

func TestConsulServesAgainAfterEachWayToEndIt(t *testing.T) {
	c := StartConsul(t, ConsulOptions{})
	servesAgain(t, c.process, c.Addr, c.Wipe)
}

func servesAgain(t *testing.T, p *process, addr string, wipe func()) {
	t.Helper()
	for _, end := range []func(){p.Stop, p.Kill, func() { p.Kill(); wipe() }} {
		end()
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			t.Fatal("an ended server answers")
		}
		p.Start()
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatalf("a started server: %v", err)
		}
		c.Close()
	}
}

func TestProxyModes(t *testing.T) {
	p := StartProxy(t, echoServer(t))
	c := dial(t, p)
	echo(t, c, "one")

	p.Set(BlackHole)
	if _, err := io.WriteString(c, "two"); err != nil {
		t.Fatal(err)
	}
	if err := c.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("through a black hole: %d bytes, %v", n, err)
	}
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	p.Set(Pass)
	expect(t, c, "two")

	p.Set(Reset)
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("after a reset: %v", err)
	}
	p.Set(Pass)
	c = dial(t, p)
	echo(t, c, "three")
	p.Set(Drop)
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Fatalf("after a drop: %v", err)
	}
}

// One connection is silent: what is sent on it is taken, and nothing comes back.
func TestProxySilencesOneConnection(t *testing.T) {
	p := StartProxy(t, echoServer(t))
	waiting, other := dial(t, p), dial(t, p)
	echo(t, waiting, "waiting")
	echo(t, other, "other")
	if n := p.Silence("wait"); n != 1 {
		t.Fatalf("%d connections are silent, want 1", n)
	}
	for range 100 { // more than any buffer in between holds
		if _, err := waiting.Write(make([]byte, 64<<10)); err != nil {
			t.Fatalf("a silent connection takes no more: %v", err)
		}
	}
	if err := waiting.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := waiting.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("through a silent connection: %d bytes, %v", n, err)
	}
	echo(t, other, "more")
	echo(t, dial(t, p), "later")
}

// A slow line carries everything, in order, and no faster than told.
func TestProxySlow(t *testing.T) {
	p := StartProxy(t, echoServer(t))
	const perSecond, bytes = 100 << 10, 20 << 10
	p.Slow(perSecond)
	c := dial(t, p)
	begun := time.Now()
	echo(t, c, strings.Repeat("abc", bytes/3))
	if took, least := time.Since(begun), time.Second*(bytes-perSecond/50-3)/perSecond; took < least {
		t.Errorf("%d bytes took %v, want at least %v", bytes, took, least)
	}
	p.Slow(0)
	echo(t, c, "fast again")
}

func TestProxyLeadsElsewhere(t *testing.T) {
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	p := StartProxy(t, gone.Addr().String())
	if n, err := dial(t, p).Read(make([]byte, 1)); err == nil {
		t.Fatalf("%d bytes from a server that is not there", n)
	}
	p.Retarget(echoServer(t))
	echo(t, dial(t, p), "here")
}

func dial(t *testing.T, p *Proxy) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func echo(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	expect(t, c, text)
}

func expect(t *testing.T, c net.Conn, text string) {
	t.Helper()
	got := make([]byte, len(text))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != text {
		t.Fatalf("got %q, %v; want %q", got, err, text)
	}
}

func echoServer(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c) // until either side ends it
				c.Close()
			}()
		}
	}()
	return l.Addr().String()
}

// A port belongs to one test until that test ends.
func TestPortsAreReserved(t *testing.T) {
	port := 0
	t.Run("a test", func(t *testing.T) {
		port = freePorts(t, 1)[0]
		t.Run("another one", func(t *testing.T) {
			if reserve(t, port) {
				t.Errorf("port %d is given twice", port)
			}
		})
	})
	if !reserve(t, port) {
		t.Errorf("port %d is still reserved", port)
	}
}
