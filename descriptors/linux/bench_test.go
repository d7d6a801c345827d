package linux_test

import (
	"fmt"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/scheduler"
)

const ifaceKey = "config/linux/interfaces/v2/interface/"

// benchAgent starts an agent in a namespace of its own, beside others with names. try ends the
// benchmark at an error.
func benchAgent(b *testing.B, names ...string) (a *agent, try func(error)) {
	testkit.Netns(b)
	_, err := exec.LookPath("ip")
	testkit.Need(b, "ip (iproute2)", err == nil)
	a = newAgent()
	try = func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	try(a.start())
	b.Cleanup(a.end)
	try(a.netns(names))
	return a, try
}

// BenchmarkRoutesThroughTheScheduler installs 10,000 routes via one gateway in one
// transaction, and removes them in another, while the kernel is watched. Package l3
// has the same with verbs alone, and with ip -batch. cpu-ns is the processor time of an operation.
func BenchmarkRoutesThroughTheScheduler(b *testing.B) {
	const routes = 10_000
	a, try := benchAgent(b, "red")
	try(a.put([]string{ifaceKey + "a", `{"name":"a","type":"VETH","enabled":true,"namespace":{"type":"NSID","reference":"red"},"ip_addresses":["10.1.0.1/24"],"veth":{"peer_if_name":"z"}}`}))
	try(a.put([]string{ifaceKey + "z", `{"name":"z","type":"VETH","enabled":true,"veth":{"peer_if_name":"a"}}`}))
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

// BenchmarkVETHPairs creates and removes a hundred pairs. One end of each is in a namespace of its
// own, as for containers; the other is in the agent's namespace, or in another one.
func BenchmarkVETHPairs(b *testing.B) {
	for _, other := range []string{"own", "named"} {
		b.Run(other, func(b *testing.B) { benchVETHPairs(b, other == "named") })
	}
}

func benchVETHPairs(b *testing.B, bothNamed bool) {
	const pairs = 100
	names := []string{"other"}
	for i := range pairs {
		names = append(names, fmt.Sprint("red", i))
	}
	a, try := benchAgent(b, names...)
	var put, del []scheduler.Change
	add := func(name, peer, namespace string) {
		value := fmt.Sprintf(`{"name":%q,"type":"VETH","enabled":true,"veth":{"peer_if_name":%q}`, name, peer)
		if namespace != "" {
			value += fmt.Sprintf(`,"namespace":{"type":"NSID","reference":%q}`, namespace)
		}
		v, err := a.value(ifaceKey+name, value+"}")
		try(err)
		put, del = append(put, v.Change()), append(del, scheduler.Unwant(ifaceKey+name))
	}
	for i := range pairs {
		in, out := fmt.Sprint("in", i), fmt.Sprint("out", i)
		add(in, out, fmt.Sprint("red", i))
		if bothNamed {
			add(out, in, "other")
		} else {
			add(out, in, "")
		}
	}
	var created, removed time.Duration
	for b.Loop() {
		begun := time.Now()
		_, err := a.s.Commit(b.Context(), scheduler.Txn{Changes: put})
		try(err)
		created += time.Since(begun)
		begun = time.Now()
		_, err = a.s.Commit(b.Context(), scheduler.Txn{Changes: del})
		try(err)
		removed += time.Since(begun)
	}
	b.ReportMetric(float64(created.Milliseconds())/float64(b.N*pairs), "ms/created")
	b.ReportMetric(float64(removed.Milliseconds())/float64(b.N*pairs), "ms/removed")
}
