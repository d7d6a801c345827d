package orchestrator_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/statestore"
)

// BenchmarkRestore100k starts over a memory of 100,000 values whose store is down, and
// tells when all of them stand, patience included.
func BenchmarkRestore100k(b *testing.B) {
	const keys = 100_000
	path := filepath.Join(b.TempDir(), "intent")
	file, err := statestore.Open(path, statestore.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	changes := map[string][]byte{}
	for i := range keys {
		e := event(fmt.Sprintf("if%d", i), "1500")
		changes["etcd\x00v"+e.Key] = e.Value
	}
	if err := file.Save(maps.All(changes)); err != nil {
		b.Fatal(err)
	}
	if err := file.Close(); err != nil {
		b.Fatal(err)
	}
	var took time.Duration
	for b.Loop() {
		took += restored(b, path, keys)
	}
	b.ReportMetric(float64(took.Milliseconds())/float64(b.N), "ms-to-stand")
}

// restored lives until all values stand.
func restored(b *testing.B, path string, keys int) time.Duration {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	log := slog.New(slog.DiscardHandler)
	r := &rig{stands: map[string]string{}}
	r.sched = scheduler.New(scheduler.Options{Log: log})
	if _, err := scheduler.Register(r.sched, r.descriptor()); err != nil {
		b.Fatal(err)
	}
	begun := time.Now()
	file, err := statestore.Open(path, statestore.Options{Log: log})
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	done := &finish{r.sched, make(chan struct{})}
	o := orchestrator.New(done, orchestrator.Options{Log: log, Memory: file, Sources: []orchestrator.Source{{Name: "etcd", Feed: newInput()}}})
	var running errgroup.Group
	running.Go(func() error { return r.sched.Run(ctx) })
	running.Go(func() error { return o.Run(ctx) })
	<-done.committed
	took := time.Since(begun)
	if len(r.stands) != keys {
		b.Fatalf("%d stand", len(r.stands))
	}
	cancel()
	if err := running.Wait(); err != nil {
		b.Fatal(err)
	}
	return took
}

// finish tells when the first transaction is done.
type finish struct {
	*scheduler.Scheduler
	committed chan struct{}
}

func (f *finish) Start(ctx context.Context, txn scheduler.Txn, ended func(*scheduler.Record, error)) error {
	return f.Scheduler.Start(ctx, txn, func(record *scheduler.Record, err error) {
		ended(record, err)
		close(f.committed)
	})
}
