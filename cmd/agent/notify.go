package main

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/keyplane/keyplane/internal/wake"
	"github.com/keyplane/keyplane/scheduler"
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

// logPatience is how long the report waits for the transaction log, which somebody reads.
const logPatience = 5 * time.Second

// announce reports it, after the transaction log has done so if that is not too slow.
func (a announcer) announce(tell notifier) task {
	return func(ctx context.Context) error {
		for {
			select {
			case <-a.complete.C():
			case <-ctx.Done():
				return nil
			}
			flushing, cancel := context.WithTimeout(ctx, logPatience)
			_ = a.Flush(flushing)
			cancel()
			if ctx.Err() != nil {
				return nil
			}
			tell.Tell("STATUS=the network stands as declared")
			awaitQuiet(ctx, a.operations)
			a.started()
		}
	}
}

// operations is how many operations have run.
func (a announcer) operations() (n uint64) {
	for _, count := range a.Stats().Operations {
		n += count
	}
	return n
}
