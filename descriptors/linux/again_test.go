package linux_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/stats"
)

// A link that is made again has the name of another one that is gone. Only EXISTING values follow names, so without one on the former
// link nothing is read back: that would hold all other operations of Linux, and here it would be so for each change.
func TestLinksMadeAgainAreNotReadBack(t *testing.T) {
	testkit.Netns(t)
	a := newAgent()
	t.Cleanup(a.end)
	if err := a.start(); err != nil {
		t.Fatal(err)
	}
	const key = "config/linux/interfaces/v2/interface/"
	commit := func() {
		t.Helper()
		if err := a.commit(nil); err != nil {
			t.Fatal(err)
		}
	}
	put := func(name, peer string) {
		t.Helper()
		value := fmt.Sprintf(`{"name":%q,"type":"VETH","enabled":true,"veth":{"peer_if_name":%q}}`, name, peer)
		if err := a.put([]string{key + name, value}); err != nil {
			t.Fatal(err)
		}
	}
	other := []string{key + "ext", `{"name":"ext","type":"EXISTING","host_if_name":"lower","enabled":true}`}
	put("lower", "upper")
	put("upper", "lower")
	if err := a.put(other); err != nil {
		t.Fatal(err)
	}
	commit()
	announced := func(state string) {
		t.Helper()
		if err := a.state([]string{"linux/interface/host-name/v1", state}); err != nil {
			t.Fatal(err)
		}
	}
	before := a.readBacks()
	for range 5 {
		put("v1", "v2")
		put("v2", "v1")
		commit()
		announced("OBTAINED")
		if err := a.del([]string{key + "v1", key + "v2"}); err != nil {
			t.Fatal(err)
		}
		commit()
		announced("NONEXISTENT")
	}
	if err := a.s.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := a.readBacks(); after != before {
		t.Errorf("%d read-backs, want none", after-before)
	}
}

// readBacks is the number of transactions that have read something back.
func (a *agent) readBacks() int {
	all := a.s.History()
	return len(slices.DeleteFunc(all, func(r *scheduler.Record) bool { return !r.Refresh }))
}

// What the kernel refuses has not changed anything, so nothing is read back.
func TestRefusedValuesAreNotReadBack(t *testing.T) {
	testkit.Netns(t)
	a := newAgent()
	t.Cleanup(a.end)
	if err := a.start(); err != nil {
		t.Fatal(err)
	}
	const ifaces, routes = "config/linux/interfaces/v2/interface/", "config/linux/l3/v2/route/"
	for _, kv := range [][]string{
		{ifaces + "v1", `{"name":"v1","type":"VETH","enabled":true,"ip_addresses":["10.0.0.1/24"],"veth":{"peer_if_name":"v2"}}`},
		{ifaces + "v2", `{"name":"v2","type":"VETH","enabled":true,"veth":{"peer_if_name":"v1"}}`},
	} {
		if err := a.put(kv); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.commit(nil); err != nil {
		t.Fatal(err)
	}
	before := stats.Of(a.s).Phases[stats.PhaseRefresh].Count
	if err := a.put([]string{routes + "10.5.0.0/16/v1", `{"outgoing_interface":"v1","dst_network":"10.5.0.0/16","gw_addr":"127.0.0.1","on_link":true}`}); err != nil {
		t.Fatal(err)
	}
	if err := a.commit(nil); err != nil {
		t.Fatal(err)
	}
	if err := a.state([]string{routes + "10.5.0.0/16/v1", "RETRYING"}); err != nil { // such a gateway is refused
		t.Fatal(err)
	}
	if after := stats.Of(a.s).Phases[stats.PhaseRefresh].Count; after != before {
		t.Errorf("%d read-backs, want none", after-before)
	}
}
