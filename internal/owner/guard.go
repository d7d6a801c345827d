package owner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// A Guard holds the name of a label in the network namespace of this process: an abstract
// unix socket (unix(7)). The kernel releases the name at any end of the process. So two
// agents of a label cannot work in one namespace, even if they share neither a store nor a
// state folder.
type Guard struct {
	listener net.Listener // nil: the name is not held
	self     Holder
}

// Listen takes the name. The error is a *TakenError if another agent has it. Only the same
// user and root can keep an agent from starting. If another user's process has the name,
// that is logged and ignored.
func Listen(ctx context.Context, self Holder, log *slog.Logger) (*Guard, error) {
	name := socketName(self.Label)
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", name)
	if err == nil {
		return &Guard{listener: l, self: self}, nil
	}
	if !errors.Is(err, unix.EADDRINUSE) {
		log.Warn("another agent of this label would go unnoticed in this network namespace", "err", err)
		return &Guard{}, nil
	}
	holder, uid, err := ask(ctx, name)
	holder.Label = self.Label
	switch {
	case err != nil: // the holder has just ended, or does not answer
		log.Warn("the label's name is taken in this network namespace by a process that does not answer", "err", err)
	case uid != 0 && uid != os.Geteuid():
		log.Warn("the label's name is taken in this network namespace by a process of another user", "pid", holder.PID, "uid", uid)
	default:
		return nil, &TakenError{Holder: holder, Where: "its socket " + name + " in this network namespace"}
	}
	return &Guard{}, nil
}

// socketName begins with "@", which package net turns into the zero byte of an abstract
// name. A label that is too long is replaced by its hash.
func socketName(label string) string {
	const most = 64
	if len(label) > most {
		hash := sha256.Sum256([]byte(label))
		label = hex.EncodeToString(hash[:])
	}
	return "@keyplane/agent/" + label
}

// patienceToAsk is the longest wait for a holder's answer. For a holder that starts or
// hangs, only the process ID is known.
const patienceToAsk = 300 * time.Millisecond

// ask asks for the holder of the name. The kernel supplies the user and the process.
func ask(ctx context.Context, name string) (h Holder, uid int, err error) {
	conn, err := (&net.Dialer{Timeout: patienceToAsk}).DialContext(ctx, "unix", name)
	if err != nil {
		return Holder{}, 0, err
	}
	defer conn.Close()
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return Holder{}, 0, err
	}
	var peer *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) { peer, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err := errors.Join(err, failed); err != nil {
		return Holder{}, 0, err
	}
	_ = conn.SetReadDeadline(time.Now().Add(patienceToAsk))
	text, _ := io.ReadAll(io.LimitReader(conn, 1<<16))
	h, ok := parse(text)
	if !ok {
		h = Holder{PID: int(peer.Pid)}
	}
	return h, int(peer.Uid), nil
}

// Run answers each connection with the holder of the name, until ctx ends.
func (g *Guard) Run(ctx context.Context) error {
	if g.listener == nil {
		return nil
	}
	defer context.AfterFunc(ctx, func() { g.listener.Close() })()
	for {
		conn, err := g.listener.Accept()
		if err != nil {
			return nil //nolint:nilerr // closed, or out of descriptors: the name is still held
		}
		_ = conn.SetWriteDeadline(time.Now().Add(patienceToAsk))
		_, _ = conn.Write(g.self.bytes()) // fails only if the other process has gone
		conn.Close()
	}
}

// Close releases the name.
func (g *Guard) Close() error {
	if g.listener == nil {
		return nil
	}
	if err := g.listener.Close(); !errors.Is(err, net.ErrClosed) { // Run closes it too
		return err
	}
	return nil
}
