package scheduler_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/keyplane/keyplane/proto/ligato/linux/l3"
	"github.com/keyplane/keyplane/scheduler"
)

// BenchmarkDumpWhileCommitting creates and deletes routes, one at a time, while 1 M
// values stand: first undisturbed, then as often again while all statuses are
// dumped, over and over.
func BenchmarkDumpWhileCommitting(b *testing.B) {
	const standing = 1_000_000
	s, stop := start(b)
	defer stop()
	ms := network(standing)
	mustCommit(b, s, scheduler.Txn{Changes: wantAll(b, s, keysOf(b, ms), ms)})

	var quiet, dumping []time.Duration
	for b.Loop() {
		quiet = append(quiet, changeOne(b, s, len(quiet)))
	}
	dumps := dumpUntil(s, func() {
		for len(dumping) < len(quiet) {
			dumping = append(dumping, changeOne(b, s, len(dumping)))
		}
	})
	if dumps == 0 {
		b.Fatal("nothing was dumped meanwhile")
	}
	b.ReportMetric(p99us(quiet), "p99-us")
	b.ReportMetric(p99us(dumping), "p99-us-dumping")
	b.ReportMetric(p99us(dumping)/p99us(quiet), "ratio")
}

// dumpUntil dumps all statuses, again and again, until busy returns, and says
// how many dumps were begun.
func dumpUntil(s *scheduler.Scheduler, busy func()) (dumps int) {
	ctx, cancel := context.WithCancel(context.Background())
	begun := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for ; ctx.Err() == nil; dumps++ {
			if dumps == 0 {
				close(begun)
			}
			s.Statuses("")
		}
	})
	<-begun
	busy()
	cancel()
	wg.Wait()
	return dumps
}

// changeOne makes a route, or takes it away the next time, and says how long that took.
func changeOne(b *testing.B, s *scheduler.Scheduler, i int) time.Duration {
	route := &l3.Route{OutgoingInterface: "if1", DstNetwork: fmt.Sprintf("11.%d.%d.%d/32", i>>17&255, i>>9&255, i>>1&255)}
	key := keyOf(b, route)
	begin := time.Now()
	change := scheduler.Unwant(key)
	if i%2 == 0 {
		v, err := s.Value(key, route)
		if err != nil {
			b.Fatal(err)
		}
		change = scheduler.Want(v)
	}
	mustCommit(b, s, scheduler.Txn{Changes: []scheduler.Change{change}})
	return time.Since(begin)
}

func p99us(took []time.Duration) float64 {
	slices.Sort(took)
	return float64(took[len(took)*99/100].Nanoseconds()) / 1e3
}
