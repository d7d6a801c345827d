package main

import (
	"context"
	"errors"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/keyplane/keyplane/scheduler"
)

// A step is one thing that somebody does, or that happens.
type step func(ctx context.Context, l *lab) error

// want is a transaction that puts messages.
func declare(about string, messages ...proto.Message) step {
	return declareAs(about, scheduler.Txn{}, messages...)
}

// wantAs is one with options.
func declareAs(about string, txn scheduler.Txn, messages ...proto.Message) step {
	return func(ctx context.Context, l *lab) error {
		txn := txn
		for _, m := range messages {
			v, err := l.value(m)
			if err != nil {
				return err
			}
			txn.Changes = append(txn.Changes, scheduler.Want(v))
		}
		return l.commit(ctx, about, txn)
	}
}

// unwant is a transaction that deletes a key.
func withdraw(about, key string) step {
	return func(ctx context.Context, l *lab) error {
		return l.commit(ctx, about, scheduler.Txn{Changes: []scheduler.Change{scheduler.Unwant(key)}})
	}
}

// breaks has the next calls for key fail.
func failNext(key string, times int) step {
	return func(_ context.Context, l *lab) error {
		l.memory.breaks(key, times)
		return nil
	}
}

// host is Linux telling that a host interface has come or gone; then key reaches
// state by itself.
func host(about, name string, there bool, key string, state scheduler.State) step {
	return func(ctx context.Context, l *lab) error {
		l.memory.say("  %s", about)
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
		l.memory.say("  %s", about)
		return l.until(ctx, key, state)
	}
}

// connected is the connection to VPP standing; then key reaches state by itself.
func connected(about, key string, state scheduler.State) step {
	return func(ctx context.Context, l *lab) error {
		l.memory.say("  %s", about)
		l.line.Ready()
		return l.until(ctx, key, state)
	}
}

var errClosed = errors.New("connection closed by peer")

// cut is the connection to VPP lost, and VPP with it if it died; then key
// reaches state by itself.
func cut(about string, died bool, key string, state scheduler.State) step {
	return func(ctx context.Context, l *lab) error {
		l.memory.say("  %s", about)
		if died {
			l.memory.forget()
		}
		l.line.Lost(errClosed)
		return l.until(ctx, key, state)
	}
}
