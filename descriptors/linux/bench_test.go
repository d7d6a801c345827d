package linux_test

import (
	"fmt"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/scheduler"
)

// BenchmarkRoutesThroughTheScheduler installs 10,000 routes via one gateway in one
// transaction, and removes them in another, while the kernel is watched. Package l3
// has the same with verbs alone, and with ip -batch. cpu-ns is the processor time of an operation.
func BenchmarkRoutesThroughTheScheduler(b *testing.B) {
	const routes = 10_000
	testkit.Netns(b)
	_, err := exec.LookPath("ip")
	testkit.Need(b, "ip (iproute2)", err == nil)
	a := newAgent()
	try := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	try(a.start())
	b.Cleanup(a.end)
	try(a.netns([]string{"red"}))
	const iface = "config/linux/interfaces/v2/interface/"
	try(a.put([]string{iface + "a", `{"name":"a","type":"VETH","enabled":true,"namespace":{"type":"NSID","reference":"red"},"ip_addresses":["10.1.0.1/24"],"veth":{"peer_if_name":"z"}}`}))
	try(a.put([]string{iface + "z", `{"name":"z","type":"VETH","enabled":true,"veth":{"peer_if_name":"a"}}`}))
	try(a.commit(nil))
	var put, del []scheduler.Change
	for i := range routes {
		dst := fmt.Sprintf("100.%d.%d.0/24", i/256, i%256)
		key := "config/linux/l3/v2/route/" + dst + "/a"
		v, err := a.value(key, fmt.Sprintf(`{"outgoing_interface":"a","dst_network":%q,"gw_addr":"10.1.0.2"}`, dst))
		try(err)
		put, del = append(put, v.Change()), append(del, scheduler.Unwant(key))
	}
	var before, after unix.Rusage
	try(unix.Getrusage(unix.RUSAGE_SELF, &before))
	for b.Loop() {
		for _, changes := range [][]scheduler.Change{put, del} {
			_, err := a.s.Commit(b.Context(), scheduler.Txn{Changes: changes})
			try(err)
		}
	}
	try(unix.Getrusage(unix.RUSAGE_SELF, &after))
	used := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
	operations := float64(b.N) * 2 * routes
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/operations, "ns/operation")
	b.ReportMetric(float64(used)/operations, "cpu-ns/operation")
}
