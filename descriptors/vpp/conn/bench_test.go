package conn_test

import (
	"sync"
	"syscall"
	"testing"
	"time"

	"go.fd.io/govpp/binapi/ip"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
)

// BenchmarkCalls is what a connection takes for a call, 64 at a time, from request to reply, with a VPP
// that does nothing: time of the processors besides what passes, as that is of two processes at once.
func BenchmarkCalls(b *testing.B) {
	c := dial(b, simulated.RouteSink(b))
	var wg sync.WaitGroup
	before := processorTime(b)
	b.ReportAllocs()
	b.ResetTimer()
	for g := range 64 {
		wg.Go(func() {
			request, reply := routeVia(g, 1), &ip.IPRouteAddDelReply{}
			for n := g; n < b.N; n += 64 {
				if err := c.Call(b.Context(), request, reply); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64((processorTime(b)-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
}

// processorTime is what this process has used.
func processorTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkBatch is what a connection takes for each request of a batch of 10,000.
func BenchmarkBatch(b *testing.B) {
	c := dial(b, simulated.RouteSink(b))
	steps := make([]*conn.Step, 10_000)
	for n := range steps {
		steps[n] = conn.Ask(routeVia(n, 1), &ip.IPRouteAddDelReply{})
	}
	before := processorTime(b)
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Batch(b.Context(), steps...); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((processorTime(b)-before).Nanoseconds())/float64(b.N*len(steps)), "cpu-ns/request")
}
