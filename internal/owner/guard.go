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

// A Guard holds the name of a label in the network namespace of this process: an
// abstract unix socket (unix(7)). The kernel lets it go when the process ends, however
// it ends. So two agents of a label that share neither a store nor a state folder cannot
// work in the same namespace.
type Guard struct {
	listener net.Listener // nil: the name could not be had
	self     Holder
}

// Listen takes the name. The error is a *TakenError if another agent has it. A process
// of another user who is not root cannot keep an agent from starting: its name is
// reported and ignored.
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
	case err != nil: // it has just ended, or belongs to nobody that answers
		log.Warn("the label's name is taken in this network namespace by a process that does not answer", "err", err)
	case uid != 0 && uid != os.Geteuid():
		log.Warn("the label's name is taken in this network namespace by a process of another user", "pid", holder.PID, "uid", uid)
	default:
		return nil, &TakenError{Holder: holder, Where: "its socket " + name + " in this network namespace"}
	}
	return &Guard{}, nil
}

// socketName begins with "@", which package net takes for the zero byte of an abstract
// name. A label that is too long for it counts by its hash.
func socketName(label string) string {
	const most = 64
	if len(label) > most {
		hash := sha256.Sum256([]byte(label))
		label = hex.EncodeToString(hash[:])
	}
	return "@keyplane/agent/" + label
}

// patienceToAsk is how long a holder may take to say who it is. One that starts or hangs
// is known by its process alone.
const patienceToAsk = 300 * time.Millisecond

// ask asks who has the name. The user and the process are known from the kernel.
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

// Run tells whoever asks who has the name, until ctx ends.
func (g *Guard) Run(ctx context.Context) error {
	if g.listener == nil {
		return nil
	}
	defer context.AfterFunc(ctx, func() { g.listener.Close() })()
	for {
		conn, err := g.listener.Accept()
		if err != nil {
			return nil //nolint:nilerr // closed, or out of descriptors: the name is held all the same
		}
		_ = conn.SetWriteDeadline(time.Now().Add(patienceToAsk))
		_, _ = conn.Write(g.self.bytes()) // fails only when who asked has gone
		conn.Close()
	}
}

// Close lets the name go.
func (g *Guard) Close() error {
	if g.listener == nil {
		return nil
	}
	if err := g.listener.Close(); !errors.Is(err, net.ErrClosed) { // Run closes it too
		return err
	}
	return nil
}
