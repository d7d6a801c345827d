// Package sender knows who sends a request to the agent, for the log and the history of changes.
//
//	web.ConnContext = sender.OfConn      // in each server
//	ctx = sender.Named(ctx, "anna")      // a server that knows more than the kernel
//	log.Info("changed", "by", sender.Of(ctx))
//
// A name is for people: "root (pid 4242)" of the agent's socket, as the kernel tells, "127.0.0.1:50312" of TCP, and
// "anna from 127.0.0.1:50312" of a user that a server knows. It grants nothing. A name may have any characters: whoever
// prints it makes it printable.
package sender

import (
	"context"
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

// OfConn returns the context of the requests of a connection. It has the form of http.Server.ConnContext.
func OfConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, who{}, peerOf(c))
}

// peerOf returns who is at the other end of a connection.
func peerOf(c net.Conn) string {
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
