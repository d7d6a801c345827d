package orchestrator_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/scheduler"
)

// A faulty scheduler does not survive one value.
type faulty struct {
	*scheduler.Scheduler
	txns chan scheduler.Txn
}

func (f faulty) Decode(key string, data []byte) (scheduler.Value, error) {
	if strings.HasSuffix(key, "if2") {
		panic("no idea")
	}
	return f.Scheduler.Decode(key, data)
}

func (f faulty) Start(_ context.Context, txn scheduler.Txn, ended func(*scheduler.Record, error)) error {
	f.txns <- txn
	ended(&scheduler.Record{}, nil)
	return nil
}

func TestAFaultOfOursIsOneBadValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		in, sched := newInput(), faulty{scheduler.New(scheduler.Options{}), make(chan scheduler.Txn, 1)}
		o := orchestrator.New(sched, orchestrator.Options{
			Sources: []orchestrator.Source{{Name: "etcd", Feed: in}}, Log: slog.New(slog.DiscardHandler),
		})
		ended := make(chan error, 1)
		go func() { ended <- o.Run(ctx) }()
		in.queue = []kvdbsync.Change{{Synced: true, Events: events("if1=1 if2=2")}}
		in.ready <- struct{}{}
		txn := <-sched.txns
		if len(txn.Changes) != 2 || txn.Changes[1].Err == nil || !strings.Contains(txn.Changes[1].Err.Error(), "no idea") {
			t.Errorf("committed %+v", txn.Changes)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
