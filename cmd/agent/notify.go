package main

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/keyplane/keyplane/internal/wake"
	"github.com/keyplane/keyplane/scheduler"
)

// A notifier reports the state of the agent to the service manager by the protocol of
// sd_notify(3): datagrams to the socket in NOTIFY_SOCKET. Without that variable it does
// nothing.
type notifier struct {
	conn net.Conn
}

func newNotifier(socket string) (notifier, error) {
	if socket == "" {
		return notifier{}, nil
	}
	conn, err := net.Dial("unixgram", socket) //nolint:gosec // the service manager names its socket
	if err != nil {
		return notifier{}, fmt.Errorf("NOTIFY_SOCKET: %w", err)
	}
	return notifier{conn}, nil
}

// Tell sends states such as "READY=1". Errors are ignored: the service manager may be
// gone.
func (n notifier) Tell(state string) {
	if n.conn != nil {
		_, _ = n.conn.Write([]byte(state + "\n"))
	}
}

// Close closes the socket.
func (n notifier) Close() {
	if n.conn != nil {
		n.conn.Close()
	}
}

// An announcer is a scheduler that reports when the declared network has been applied.
type announcer struct {
	*scheduler.Scheduler
	complete wake.Signal // set after the transaction that all sources went into
	started  func()      // called when the start is over
}

// Commit commits, and notes the transaction that replaces the desired state as a whole. The
// orchestrator makes it when all sources are complete.
func (a announcer) Commit(ctx context.Context, txn scheduler.Txn) (*scheduler.Record, error) {
	record, err := a.Scheduler.Commit(ctx, txn)
	if txn.Replace && record != nil {
		a.complete.Set()
	}
	return record, err
}

// logTimeout limits the wait for the transaction log, whose reader may be slow.
const logTimeout = 5 * time.Second

// announce reports the applied network, after the transaction log has been written.
func (a announcer) announce(tell notifier) task {
	return func(ctx context.Context) error {
		for {
			select {
			case <-a.complete.C():
			case <-ctx.Done():
				return nil
			}
			flushing, cancel := context.WithTimeout(ctx, logTimeout)
			_ = a.Flush(flushing)
			cancel()
			if ctx.Err() != nil {
				return nil
			}
			tell.Tell("STATUS=the declared network is applied")
			awaitQuiet(ctx, a.operations)
			a.started()
		}
	}
}

// operations returns the number of executed operations.
func (a announcer) operations() (n uint64) {
	for _, count := range a.Stats().Operations {
		n += count
	}
	return n
}
