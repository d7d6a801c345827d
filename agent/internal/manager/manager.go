// Package manager talks to the service manager that has started the agent, such as systemd.
package manager

import (
	"context"
	"fmt"
	"io"
	"net"
	"time"
)

// A Manager is the socket of the service manager (sd_notify(3)); "": there is none, and nothing is told.
type Manager string

// Variable is that of the environment with the socket.
const Variable = "NOTIFY_SOCKET"

// Timeout limits how long the service manager delays other work.
const Timeout = time.Second

// Open returns the service manager with a socket, if it can be reached.
func Open(socket string) (Manager, error) {
	m := Manager(socket)
	if m == "" {
		return m, nil
	}
	conn, err := m.dial()
	if err != nil {
		return "", fmt.Errorf("%s: %w", Variable, err)
	}
	return m, conn.Close()
}

func (m Manager) dial() (net.Conn, error) {
	return net.Dial("unixgram", string(m))
}

// Notify reports a state. A manager that is busy or hangs reads nothing, and its socket takes only a few states: Notify then waits
// until ctx ends. So who has other work to do calls it in a task of its own. An error has no effect: the manager may be gone.
func (m Manager) Notify(ctx context.Context, state string) {
	if m == "" {
		return
	}
	conn, err := m.dial()
	if err != nil {
		return
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetWriteDeadline(time.Unix(1, 0)) })()
	_, _ = io.WriteString(conn, state)
}

// Ready tells the service manager that the agent runs.
func (m Manager) Ready(ctx context.Context) error {
	m.Notify(ctx, "READY=1")
	return nil
}

// Stopping tells the service manager that the agent ends.
func (m Manager) Stopping() {
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	m.Notify(ctx, "STOPPING=1")
}
