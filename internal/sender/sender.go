// Package sender knows who sends a request to the agent, for the log and the history of changes.
//
//	web.ConnContext = sender.OfConn      // in each server
//	ctx = sender.Named(ctx, "anna")      // a server that knows more than the kernel
//	log.Info("changed", "by", sender.Of(ctx))
//
// A name is for people: "root (pid 4242)" of the agent's socket, as the kernel tells, "127.0.0.1:50312" of TCP,
// "anna from 127.0.0.1:50312" of a user that a server knows, and "certificate of anna from 127.0.0.1:50312" of a client
// with a certificate. It grants nothing. A name may have any characters: whoever prints it makes it printable.
package sender

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"os/user"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// who is the key of the name in a context.
type who struct{}

// Of returns who sends the request of ctx; empty: it is not known, as of a request within the process.
func Of(ctx context.Context) string {
	name, _ := ctx.Value(who{}).(string)
	return name
}

// mostName is the maximum length of a name that a server tells, in bytes: a client may choose it.
const mostName = 100

// Named adds the name of a user to the sender of ctx.
func Named(ctx context.Context, name string) context.Context {
	if len(name) > mostName {
		name = strings.ToValidUTF8(name[:mostName], "") + "…"
	}
	if from := Of(ctx); from != "" {
		name += " from " + from
	}
	return context.WithValue(ctx, who{}, name)
}

// OfCertificate returns the name of a client with a verified certificate: its common name, or the first of its other
// names (URI, DNS, e-mail, IP), as authorities of machines leave the common name empty, or the serial number.
func OfCertificate(c *x509.Certificate) string {
	names := []string{c.Subject.CommonName}
	for _, uri := range c.URIs {
		names = append(names, uri.String())
	}
	names = append(append(names, c.DNSNames...), c.EmailAddresses...)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	names = append(names, fmt.Sprintf("serial number %d", c.SerialNumber))
	return "certificate of " + cmp.Or(names...)
}

// OfConn returns the context of the requests of a connection. It has the form of http.Server.ConnContext.
func OfConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, who{}, peerOf(c))
}

// Listener returns a listener for l whose connections know who is at their other end also behind what wraps them, such as
// TLS or a limit: those pass on the address, and hide the socket, which the kernel is asked of.
func Listener(l net.Listener) net.Listener { return listener{l} }

type listener struct{ net.Listener }

// Accept implements net.Listener.
func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return conn{c, address{c.RemoteAddr(), peerOf(c)}}, nil
}

// A conn has the name of its peer in its address.
type conn struct {
	net.Conn
	remote address
}

// RemoteAddr implements net.Conn.
func (c conn) RemoteAddr() net.Addr { return c.remote }

// An address has the name of who is there.
type address struct {
	net.Addr
	peer string
}

// peerOf returns who is at the other end of a connection.
func peerOf(c net.Conn) string {
	if known, ok := c.RemoteAddr().(address); ok {
		return known.peer
	}
	if c.RemoteAddr().Network() == "tcp" {
		return c.RemoteAddr().String()
	}
	socket, ok := c.(syscall.Conn)
	if !ok {
		return "a process of this host"
	}
	peer, err := peerOfSocket(socket)
	if err != nil {
		return "a process of this host"
	}
	name := "uid " + strconv.Itoa(int(peer.Uid))
	if known, err := user.LookupId(strconv.Itoa(int(peer.Uid))); err == nil {
		name = known.Username
	}
	return fmt.Sprintf("%s (pid %d)", name, peer.Pid)
}

// peerOfSocket returns the process that has connected to a Unix socket, as it was then.
func peerOfSocket(c syscall.Conn) (peer *unix.Ucred, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	failed := raw.Control(func(fd uintptr) {
		peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if failed != nil {
		return nil, failed
	}
	return peer, err
}
