package l3

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/proto/ligato/linux/l3"
)

// manyRoutes is how many routes via one gateway the benchmarks install.
const manyRoutes = 10_000

func routes() []*l3.Route {
	out := make([]*l3.Route, manyRoutes)
	for i := range out {
		dst := fmt.Sprintf("100.%d.%d.0/24", i/256, i%256)
		out[i] = &l3.Route{DstNetwork: dst, OutgoingInterface: "if1", GwAddr: "10.1.0.2"}
	}
	return out
}

// BenchmarkRoutes compares the verbs, 64 at once as the scheduler calls them, with ip -batch,
// which does the same: each iteration installs 10,000 routes, and removes them. cpu-ns is the
// processor time of an operation, which other programs on the machine disturb less.
func BenchmarkRoutes(b *testing.B) {
	h, _, _, name := inNamed(b)
	all := routes()
	b.Run("verbs", func(b *testing.B) {
		begun := processorTime(b, unix.RUSAGE_SELF)
		for b.Loop() {
			withVerbs(b, h, all)
		}
		perRoute(b, unix.RUSAGE_SELF, begun)
	})
	b.Run("ip-batch", func(b *testing.B) {
		_, err := exec.LookPath("ip")
		testkit.Need(b, "ip (iproute2)", err == nil)
		begun := processorTime(b, unix.RUSAGE_CHILDREN)
		for b.Loop() {
			withIP(b, name, all)
		}
		perRoute(b, unix.RUSAGE_CHILDREN, begun)
	})
}

// perRoute reports the time and the processor time of an operation. begun is the processor time
// at the beginning, of this process or of its children.
func perRoute(b *testing.B, who int, begun time.Duration) {
	operations := float64(b.N) * 2 * manyRoutes
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/operations, "ns/operation")
	b.ReportMetric(float64((processorTime(b, who)-begun).Nanoseconds())/operations, "cpu-ns/operation")
}

func processorTime(b *testing.B, who int) time.Duration {
	var used unix.Rusage
	if err := unix.Getrusage(who, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func withVerbs(b *testing.B, h handler, all []*l3.Route) {
	metas := make([]RouteMeta, len(all))
	for _, verb := range []func(i int) error{
		func(i int) (err error) {
			metas[i], err = h.createRoute(b.Context(), "key", all[i])
			return err
		},
		func(i int) error { return h.deleteRoute(b.Context(), "key", all[i], metas[i]) },
	} {
		var g errgroup.Group
		for worker := range 64 {
			g.Go(func() error {
				for i := worker; i < len(all); i += 64 {
					if err := verb(i); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err := g.Wait(); err != nil {
			b.Fatal(err)
		}
	}
}

func withIP(b *testing.B, name string, all []*l3.Route) {
	for _, verb := range []string{"add", "del"} {
		var batch strings.Builder
		for _, r := range all {
			fmt.Fprintf(&batch, "route %s %s via %s dev if1 proto 151\n", verb, r.GetDstNetwork(), r.GetGwAddr())
		}
		cmd := exec.Command("ip", "-n", name, "-batch", "-")
		cmd.Stdin = strings.NewReader(batch.String())
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("ip -batch: %v: %s", err, out)
		}
	}
}
