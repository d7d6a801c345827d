package main

import (
	"fmt"
	"net"
)

// A notifier tells whoever started the agent how it is, by the protocol of
// sd_notify(3): a datagram to the socket that NOTIFY_SOCKET names. Without that
// it says nothing.
type notifier struct {
	conn net.Conn
}

func newNotifier(socket string) (notifier, error) {
	if socket == "" {
		return notifier{}, nil
	}
	conn, err := net.Dial("unixgram", socket)
	if err != nil {
		return notifier{}, fmt.Errorf("NOTIFY_SOCKET: %w", err)
	}
	return notifier{conn}, nil
}

// Tell sends states such as "READY=1". Nobody listening any more is no fault
// of the agent's.
func (n notifier) Tell(state string) {
	if n.conn != nil {
		_, _ = n.conn.Write([]byte(state + "\n"))
	}
}

// Close lets the socket go.
func (n notifier) Close() {
	if n.conn != nil {
		n.conn.Close()
	}
}
