package main

import (
	"context"
	"errors"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/keyplane/keyplane/scheduler"
)

// A step is one action or one event.
type step func(ctx context.Context, l *lab) error

// declare is a transaction that sets messages.
func declare(about string, messages ...proto.Message) step {
	return declareAs(about, scheduler.Txn{}, messages...)
}

// declareAs is a transaction with options.
func declareAs(about string, txn scheduler.Txn, messages ...proto.Message) step {
	return func(ctx context.Context, l *lab) error {
		txn := txn
		for _, m := range messages {
			v, err := l.value(m)
			if err != nil {
				return err
			}
			txn.Changes = append(txn.Changes, v.Change())
		}
		return l.commit(ctx, about, txn)
	}
}

// withdraw is a transaction that deletes a key.
func withdraw(about, key string) step {
	return func(ctx context.Context, l *lab) error {
		return l.commit(ctx, about, scheduler.Txn{Changes: []scheduler.Change{scheduler.Unwant(key)}})
	}
}

// replace is a transaction with the complete desired state: all other values are removed.
func replace(about string, messages ...proto.Message) step {
	return declareAs(about, scheduler.Txn{Replace: true}, messages...)
}

// resync is a transaction that reads VPP back.
func resync(about string) step { return declareAs(about, scheduler.Txn{Refresh: true}) }

// vanish removes an item of VPP behind the scheduler's back.
func vanish(key string) step {
	return func(_ context.Context, l *lab) error {
		l.memory.lose(key)
		return nil
	}
}

// failNext makes the next calls for key fail.
func failNext(key string, times int) step {
	return func(_ context.Context, l *lab) error {
		l.memory.breaks(key, times)
		return nil
	}
}

// host reports that a Linux interface has appeared or vanished, and waits until key
// reaches state by itself.
func host(about, name string, there bool, key string, state scheduler.State) step {
	return func(ctx context.Context, l *lab) error {
		l.begin(about)
		seen := scheduler.Observed{Key: hostPrefix + name}
		if there {
			seen.Value = &emptypb.Empty{}
		}
		l.sched.Observe(seen)
		return l.until(ctx, key, state)
	}
}

// later waits until key reaches state by itself.
func later(about, key string, state scheduler.State) step {
	return func(ctx context.Context, l *lab) error {
		l.begin(about)
		return l.until(ctx, key, state)
	}
}

// connected restores the connection to VPP, and waits until key reaches state by itself.
func connected(about, key string, state scheduler.State) step {
	return func(ctx context.Context, l *lab) error {
		l.begin(about)
		l.line.Ready()
		return l.until(ctx, key, state)
	}
}

// errClosed is the reason that a scenario gives for a lost connection.
var errClosed = errors.New("connection closed by peer")

// cut loses the connection to VPP, and all items if VPP died. Then it waits until key
// reaches state by itself.
func cut(about string, died bool, key string, state scheduler.State) step {
	return func(ctx context.Context, l *lab) error {
		l.begin(about)
		if died {
			l.memory.forget()
		}
		l.line.Lost(errClosed)
		return l.until(ctx, key, state)
	}
}
