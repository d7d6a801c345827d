package main

import (
	"context"
	"fmt"
	"net"

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

// announcing notices when all that is declared has been seen to.
type announcing struct {
	*scheduler.Scheduler
	standing chan struct{} // holds a token when it is time to say so
	taken    func()        // is called when it has been said
}

// Commit is the scheduler's. Only the transaction after all sources are complete
// replaces what is wanted.
func (a announcing) Commit(ctx context.Context, txn scheduler.Txn) (*scheduler.Record, error) {
	record, err := a.Scheduler.Commit(ctx, txn)
	if txn.Replace && record != nil {
		select {
		case a.standing <- struct{}{}:
		default:
		}
	}
	return record, err
}

// announce tells it, once the transaction log has said so too.
func (a announcing) announce(tell notifier) task {
	return func(ctx context.Context) error {
		for {
			select {
			case <-a.standing:
			case <-ctx.Done():
				return nil
			}
			if a.Flush(ctx) == nil {
				tell.Tell("STATUS=the network stands as declared")
			}
			a.taken()
		}
	}
}
