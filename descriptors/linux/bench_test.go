package linux_test

import (
	"fmt"
	"os/exec"
	"testing"

	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/scheduler"
)

// BenchmarkRoutesThroughTheScheduler installs 10,000 routes via one gateway in one
// transaction, and removes them in another, while the kernel is watched. Package l3
// has the same with verbs alone, and with ip -batch.
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
	for b.Loop() {
		for _, changes := range [][]scheduler.Change{put, del} {
			_, err := a.s.Commit(b.Context(), scheduler.Txn{Changes: changes})
			try(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(2*routes), "ns/operation")
}
