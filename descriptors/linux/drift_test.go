package linux_test

import (
	"context"
	"fmt"
	"log/slog"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/descriptors/linux"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/testkit/draw"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/drift"
	"github.com/keyplane/keyplane/scheduler/inspect"
)

// Whatever a resync would do, drift shows, and nothing else, whatever others have done to our items. What depends on
// something that differs goes and comes with it.
func TestDriftIsWhatAResyncDoes(t *testing.T) {
	testkit.Netns(t)
	_, err := exec.LookPath("ip")
	testkit.Need(t, "ip (iproute2)", err == nil)
	a := newIdleAgent(t)
	for _, args := range [][]string{
		{"config/linux/interfaces/v2/interface/v1", `{"name":"v1","type":"VETH","enabled":true,"ip_addresses":["10.0.0.1/24","fd00::1/64"],"veth":{"peer_if_name":"v2"}}`},
		{"config/linux/interfaces/v2/interface/v2", `{"name":"v2","type":"VETH","enabled":true,"ip_addresses":["10.0.0.2/24"],"veth":{"peer_if_name":"v1"}}`},
		{"config/linux/interfaces/v2/interface/lo", `{"name":"lo","type":"LOOPBACK","enabled":true,"ip_addresses":["10.255.0.1/32"]}`},
		{"config/linux/l3/v2/route/10.2.0.0/16/v1", `{"outgoing_interface":"v1","dst_network":"10.2.0.0/16","gw_addr":"10.0.0.2"}`},
		{"config/linux/l3/v2/arp/v1/10.0.0.9", `{"interface":"v1","ip_address":"10.0.0.9","hw_address":"02:fe:00:00:00:09"}`},
	} {
		if err := a.put(args); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.commit(nil); err != nil {
		t.Fatal(err)
	}
	acts := []string{
		"addr add 10.0.0.100/32 dev v1", "addr add 10.9.0.1/24 dev v2", "addr add 10.10.10.10/32 dev lo", "addr add fd00::9/64 dev v1",
		"addr del 10.0.0.1/24 dev v1", "addr del fd00::1/64 dev v1", "addr del 10.255.0.1/32 dev lo",
		"addr add 10.0.0.77 peer 10.0.0.78/32 dev v1",
		"link set v1 alias uplink", "link set v2 alias downlink", "link set v1 mtu 1400", "link set v2 down", "link set v2 name other",
		"route del 10.2.0.0/16", "route add 10.3.0.0/16 dev v1 proto 151", "route add 10.4.0.0/16 dev v1",
		"neigh del 10.0.0.9 dev v1", "neigh replace 10.0.0.9 lladdr 02:00:00:00:00:01 dev v1 nud permanent protocol 151",
	}
	draw.Few(t, 30, func(rt *rapid.T) {
		did := rapid.SliceOfN(rapid.SampledFrom(acts), 1, 4).Draw(rt, "acts")
		for _, act := range did {
			_ = exec.Command("ip", strings.Fields(act)...).Run() // the one before may leave nothing for it
		}
		if err := a.expectDriftIsWhatAResyncDoes(rt); err != nil {
			rt.Fatal(err)
		}
	})
}

// newIdleAgent returns an agent whose plugin does not run: nothing is repaired before a resync.
func newIdleAgent(t *testing.T) *agent {
	t.Helper()
	a := newAgent()
	a.s = scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler)})
	plugin, err := linux.Register(a.s, linux.Options{Label: "test", Log: slog.New(slog.DiscardHandler), Known: a.known})
	if err != nil {
		t.Fatal(err)
	}
	a.plugin = plugin
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.s.Run(ctx) }()
	a.stop = func() { cancel(); <-ended }
	t.Cleanup(a.end)
	return a
}

// expectDriftIsWhatAResyncDoes compares what drift shows with what a resync does then. It returns the error of the
// resync, after which it compares no more.
func (a *agent) expectDriftIsWhatAResyncDoes(rt *rapid.T) error {
	report, err := drift.Check(context.Background(), a.s)
	if err != nil || len(report.Errors) > 0 {
		rt.Fatal(err, report.Errors)
	}
	record, failed := a.s.Commit(context.Background(), scheduler.Txn{Refresh: true})
	var shown, done []string
	for _, v := range report.Values {
		shown = append(shown, v.Key)
	}
	for _, op := range record.Executed.All() {
		if !op.Noop {
			done = append(done, op.Key)
		}
	}
	slices.Sort(done)
	done = slices.DeleteFunc(slices.Compact(done), func(key string) bool { return !slices.Contains(shown, key) && a.follows(key, shown) })
	if fmt.Sprint(shown) != fmt.Sprint(done) {
		rt.Errorf("drift shows\n%s\nthe resync did\n%s", strings.Join(shown, "\n"), strings.Join(done, "\n"))
	}
	if failed != nil {
		return fmt.Errorf("the resync: %w", failed)
	}
	if err := a.unchangedNow(); err != nil {
		rt.Error(err)
	}
	return nil
}

// follows reports whether a value depends on one of the others: it goes and comes with them.
func (a *agent) follows(key string, others []string) bool {
	st, ok := a.s.Status(key)
	return ok && slices.ContainsFunc(inspect.Message(a.s, key, st.Normalized()).Dependencies, func(d scheduler.Dependency) bool {
		return slices.ContainsFunc(others, d.MetBy)
	})
}

// unchangedNow expects that another resync does nothing, and that drift shows nothing.
func (a *agent) unchangedNow() error {
	if err := a.resync(nil); err != nil {
		return err
	}
	report, err := drift.Check(context.Background(), a.s)
	if err == nil && len(report.Values) > 0 {
		err = fmt.Errorf("after two resyncs drift shows %v", report.Values)
	}
	return err
}
