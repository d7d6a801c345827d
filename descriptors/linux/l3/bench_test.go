package l3

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"

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

// BenchmarkRoutes compares the verbs, one after the other, with ip -batch, which
// does the same: each iteration installs 10,000 routes, and removes them.
func BenchmarkRoutes(b *testing.B) {
	h, _, _, name := inNamed(b)
	all := routes()
	b.Run("verbs", func(b *testing.B) {
		for b.Loop() {
			withVerbs(b, h, all)
		}
		perRoute(b)
	})
	b.Run("ip-batch", func(b *testing.B) {
		_, err := exec.LookPath("ip")
		testkit.Need(b, "ip (iproute2)", err == nil)
		for b.Loop() {
			withIP(b, name, all)
		}
		perRoute(b)
	})
}

func perRoute(b *testing.B) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(2*manyRoutes), "ns/operation")
}

func withVerbs(b *testing.B, h handler, all []*l3.Route) {
	ctx := context.Background()
	metas := make([]RouteMeta, len(all))
	for i, r := range all {
		var err error
		if metas[i], err = h.createRoute(ctx, "key", r); err != nil {
			b.Fatal(err)
		}
	}
	for i, r := range all {
		if err := h.deleteRoute(ctx, "key", r, metas[i]); err != nil {
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
