package scheduler_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/keyplane/keyplane/proto/ligato/linux/l3"
	"github.com/keyplane/keyplane/scheduler"
)

// BenchmarkDumpWhileCommitting creates and deletes routes, one at a time, while 1 M
// values stand: in each round as long as one dump of all statuses takes, and then
// as often again undisturbed.
func BenchmarkDumpWhileCommitting(b *testing.B) {
	const standing = 1_000_000
	s, stop := start(b)
	defer stop()
	ms := network(standing)
	mustCommit(b, s, scheduler.Txn{Changes: wantAll(b, s, keysOf(b, ms), ms)})
	runtime.GC()

	var quiet, dumping []time.Duration
	for b.Loop() {
		dumped := make(chan int, 1)
		go func() { dumped <- len(s.Statuses("")) }()
		for len(dumped) == 0 {
			dumping = append(dumping, changeOne(b, s, len(dumping)))
		}
		if n := <-dumped; n < standing {
			b.Fatalf("the dump has %d values, not %d", n, standing)
		}
		for len(quiet) < len(dumping) {
			quiet = append(quiet, changeOne(b, s, len(quiet)))
		}
	}
	b.ReportMetric(p99us(quiet), "p99-us")
	b.ReportMetric(p99us(dumping), "p99-us-dumping")
	b.ReportMetric(p99us(dumping)/p99us(quiet), "ratio")
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
		change = v.Change()
	}
	mustCommit(b, s, scheduler.Txn{Changes: []scheduler.Change{change}})
	return time.Since(begin)
}

func p99us(took []time.Duration) float64 {
	slices.Sort(took)
	return float64(took[len(took)*99/100].Nanoseconds()) / 1e3
}
