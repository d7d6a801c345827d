package testkit

import (
	"errors"
	"io"
	"net"
	"os"
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
