package publish_test

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/keyplane/keyplane/connectors/etcd"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/orchestrator/publish"
	"github.com/keyplane/keyplane/scheduler"
)

// BenchmarkCommit100k declares 100,000 values at once, with verbs that do nothing,
// without and then with their status being published into a real etcd: how long the
// transaction takes, as a ratio, and how many keys a second are written meanwhile and after.
func BenchmarkCommit100k(b *testing.B) {
	const values = 100_000
	e := testkit.StartEtcd(b, testkit.EtcdOptions{})
	store := etcd.New(etcd.Config{Endpoints: []string{e.Addr}}, slog.New(slog.DiscardHandler))
	var off, on time.Duration
	var written, over float64
	for b.Loop() {
		alone, end := newScheduler(b)
		off += commitMany(b, alone, values)
		end()
		told, end := newScheduler(b)
		stop := running(b, publish.New(told, publish.Options{Name: "etcd", Store: store, Root: root}).Run)
		on += commitMany(b, told, values)
		began := time.Now()
		before := keysIn(b, store)
		<-time.After(2 * time.Second)
		written += float64(keysIn(b, store) - before)
		over += time.Since(began).Seconds()
		stop()
		end()
	}
	b.ReportMetric(on.Seconds()/off.Seconds(), "on/off")
	b.ReportMetric(written/over, "keys-written/s")
	b.ReportMetric(values*float64(b.N)/on.Seconds(), "values/s-on")
}

func commitMany(b *testing.B, s *scheduler.Scheduler, n int) time.Duration {
	var txn scheduler.Txn
	for i := range n {
		v, err := s.Value(fmt.Sprintf("config/text/%d", i), wrapperspb.String("ok"))
		if err != nil {
			b.Fatal(err)
		}
		txn.Changes = append(txn.Changes, v.Change())
	}
	began := time.Now()
	if _, err := s.Commit(b.Context(), txn); err != nil {
		b.Fatal(err)
	}
	return time.Since(began)
}

func keysIn(b *testing.B, store *etcd.Connector) int {
	s, err := store.Session(b.Context(), 0)
	if err != nil {
		b.Fatal(err)
	}
	pairs, err := s.List(b.Context(), of)
	if err != nil {
		b.Fatal(err)
	}
	if err := s.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
	return len(pairs)
}
