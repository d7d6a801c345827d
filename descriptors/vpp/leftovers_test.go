package vpp_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/bond"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/memif"
	"go.fd.io/govpp/binapi/tapv2"
	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/descriptors/vpp"
	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/testkit/draw"
	"github.com/keyplane/keyplane/internal/vppsim"
	"github.com/keyplane/keyplane/scheduler"
)

// deletion is what deletes an interface, and the reply; nil: nothing that is known here.
func deletion(d vppif.SwInterfaceDetails) (request, reply api.Message) {
	switch {
	case d.Type == interface_types.IF_API_TYPE_SUB:
		return &vppif.DeleteSubif{SwIfIndex: d.SwIfIndex}, &vppif.DeleteSubifReply{}
	case d.InterfaceDevType == "Loopback":
		return &vppif.DeleteLoopback{SwIfIndex: d.SwIfIndex}, &vppif.DeleteLoopbackReply{}
	case d.InterfaceDevType == "virtio", d.InterfaceDevType == "tap": // before 26.02, and since
		return &tapv2.TapDeleteV2{SwIfIndex: d.SwIfIndex}, &tapv2.TapDeleteV2Reply{}
	case d.InterfaceDevType == "memif":
		return &memif.MemifDelete{SwIfIndex: d.SwIfIndex}, &memif.MemifDeleteReply{}
	case d.InterfaceDevType == "bond":
		return &bond.BondDelete{SwIfIndex: d.SwIfIndex}, &bond.BondDeleteReply{}
	}
	return nil, nil
}

// byHand deletes one of the interfaces that have names, behind the agent's back, and may make
// a newcomer, which gets its index. The agent may miss that.
func byHand(rt *rapid.T, v *simulated.VPP) {
	hand := v.Dial()
	all := deletable(rt, v, hand)
	if len(all) == 0 {
		return
	}
	if v.Sim != nil && rapid.Bool().Draw(rt, "missed") {
		v.Sim.Drop()
		hand = v.Dial()
	}
	deleteOneOf(rt, v, hand, all)
	if rapid.Bool().Draw(rt, "replaced") {
		v.Ask(hand, &vppif.CreateLoopback{}, &vppif.CreateLoopbackReply{})
	}
}

// deletable are the interfaces that have names, and can be deleted here. They are sorted by name: their indexes
// depend on which of the agent's requests VPP executes first.
func deletable(rt *rapid.T, v *simulated.VPP, hand *conn.Conn) []vppif.SwInterfaceDetails {
	all := slices.DeleteFunc(interfacesOf(rt, v, hand), func(d vppif.SwInterfaceDetails) bool {
		request, _ := deletion(d)
		return d.Tag == "" || request == nil
	})
	slices.SortFunc(all, func(a, b vppif.SwInterfaceDetails) int { return strings.Compare(a.Tag, b.Tag) })
	return all
}

// deleteOneOf deletes one of some interfaces.
func deleteOneOf(rt *rapid.T, v *simulated.VPP, hand *conn.Conn, all []vppif.SwInterfaceDetails) {
	request, reply := deletion(all[rapid.IntRange(0, len(all)-1).Draw(rt, "deleted")])
	if err := hand.Call(v.Context(), request, reply); err != nil {
		rt.Fatal(err)
	}
}

func interfacesOf(rt rapid.TB, v *simulated.VPP, hand *conn.Conn) []vppif.SwInterfaceDetails {
	all, err := conn.Dump[vppif.SwInterfaceDetails](v.Context(), hand, &vppif.SwInterfaceDump{SwIfIndex: ^interface_types.InterfaceIndex(0)})
	if err != nil {
		rt.Fatal(err)
	}
	return all
}

// dead are DHCP clients of interfaces that are gone, of which VPP does not let go until
// somebody gets the index.
var dead = regexp.MustCompile(`(?m)^DELETED.*\n`)

// townOf is the town as a VPP can have it. A real one has no hardware, and needs vhost-net for TAPs.
func townOf(v *simulated.VPP) map[string]string {
	all := town()
	if v.Sim != nil {
		return all
	}
	delete(all, "config/vpp/v2/interfaces/nic0")
	if !simulated.HasTAPs() {
		delete(all, "config/vpp/v2/interfaces/ta1")
		delete(all, "config/vpp/v2/interfaces/ta2")
	}
	return all
}

// TestNothingOutlivesItsOwner has somebody delete interfaces, and make others that get their
// indexes, while the agent looks or while it is not connected: what was on the old ones comes
// back on the ones that the agent makes, and is on no other.
func TestNothingOutlivesItsOwner(t *testing.T) {
	newest := simulated.Releases()[len(simulated.Releases())-1]
	sim, fresh := simulated.Start(t, newest), simulated.Start(t, newest)
	a, other := startAgentWith(t, sim.Socket, nil, notebook{}), startAgent(t, fresh.Socket)
	awaitReady(t, a)
	awaitReady(t, other)
	bare := pages(fresh)
	all := townOf(sim)
	draw.Few(t, 25, func(rt *rapid.T) {
		defer revive(rt, sim, fresh)
		a.declareOnly(nil)
		other.declareOnly(nil)
		withoutNewcomers(rt, sim, 0) // of a check that has failed
		declared := maps.Clone(all)
		for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom(slices.Sorted(maps.Keys(all))), 0, len(all)/2, rapid.ID[string]).Draw(rt, "without") {
			delete(declared, key)
		}
		a.declareOnly(declared)
		other.declareOnly(declared)
		other.awaitVPP()
		want := pages(fresh)
		living := func() string { return dead.ReplaceAllString(pages(sim), "") }
		eventuallyIn(rt, living, want)

		for range rapid.IntRange(1, 3).Draw(rt, "hands") {
			byHand(rt, sim)
			withoutNewcomers(rt, sim, tagged(fresh))
			eventuallyIn(rt, living, want)
		}
		a.declareOnly(nil)
		eventuallyIn(rt, living, bare)
		other.declareOnly(nil)
		eventually(rt, fresh, bare)
	})
}

// TestIndexOfALostInterface has somebody delete an interface, unnoticed by the agent, and the agent make another one: it does not get
// the index, by which VPP keeps what was on the first.
func TestIndexOfALostInterface(t *testing.T) {
	for _, release := range simulated.Releases() {
		t.Run(release, func(t *testing.T) { indexOfALostInterface(t, release) })
	}
}

func indexOfALostInterface(t *testing.T, release string) {
	sim, fresh := simulated.Start(t, release), simulated.Start(t, release)
	a, other := startAgent(t, sim.Socket), startAgent(t, fresh.Socket)
	awaitReady(t, a)
	awaitReady(t, other)
	loopback := func(name, more string) []string {
		return []string{"config/vpp/v2/interfaces/" + name, fmt.Sprintf(`{"name":%q,"type":"SOFTWARE_LOOPBACK","enabled":true%s}`, name, more)}
	}
	declared := slices.Concat(loopback("lo1", `,"ip_addresses":["10.1.0.1/24"]`), loopback("lo2", ""), []string{
		"config/vpp/v2/vrrp/lo1/vrid/7", `{"interface":"lo1","vr_id":7,"priority":9,"interval":1000,"ip_addresses":["10.1.0.9"],"enabled":true}`,
		"config/vpp/v2/arp/lo1/10.1.0.9", `{"interface":"lo1","ip_address":"10.1.0.9","phys_address":"02:00:00:00:00:09","static":true}`,
		"config/vpp/v2/l3xconnect/lo1/protocol/IPV4", `{"interface":"lo1","paths":[{"outgoing_interface":"lo2","next_hop_addr":"10.2.0.3"}]}`,
		"config/vpp/v2/span/lo1/to/lo2", `{"interface_from":"lo1","interface_to":"lo2","direction":"BOTH"}`,
		"config/vpp/v2/teib/lo1/peer/10.1.0.8", `{"interface":"lo1","peer_addr":"10.1.0.8","next_hop_addr":"10.2.0.8"}`,
		"config/vpp/v2/proxyarp-global", `{"interfaces":[{"name":"lo1"}]}`,
	})
	a.want(true, declared...)
	hand := sim.Dial()
	indexOf := func(name string) interface_types.InterfaceIndex {
		for _, d := range interfacesOf(t, sim, hand) {
			if d.Tag == name {
				return d.SwIfIndex
			}
		}
		t.Fatalf("VPP has no %s", name)
		return 0
	}
	lost := indexOf("lo1")
	sim.Sim.Fail("interface events", vppsim.Fault{Mute: true})
	sim.Ask(hand, &vppif.DeleteLoopback{SwIfIndex: lost}, &vppif.DeleteLoopbackReply{})
	if err := a.sched.Submit(t.Context(), a.txn(false, loopback("lo9", "")...)); err != nil {
		t.Fatal(err)
	}
	_ = a.sched.Refresh() // it would read what is on lo9 before the agent knows that lo1 is gone
	if err := a.sched.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if indexOf("lo9") == lost {
		t.Error("lo9 has the index of lo1")
	}
	other.want(true, slices.Concat(declared, loopback("lo9", ""))...)
	eventually(t, sim, pages(fresh))
}

// revive fails a check in which a VPP has died, and starts that VPP again, so that the next check has
// a fresh one.
func revive(rt *rapid.T, all ...*simulated.VPP) {
	for _, v := range all {
		if v.Revive() {
			rt.Errorf("VPP has died")
		}
	}
}

// idle is what VPP keeps by indexes that nobody has, and counts.
var idle = regexp.MustCompile(`(?m)^(.*DELETED.*|\S+ via 10\.\S+ weight \d+)\n| \d+ routes$`)

// TestNothingIsInheritedFromBefore has somebody delete interfaces while no agent runs. The next
// one, which remembers what was applied, makes others that get their indexes: they have nothing of the old ones.
func TestNothingIsInheritedFromBefore(t *testing.T) {
	newest := simulated.Releases()[len(simulated.Releases())-1]
	sim, fresh := simulated.Start(t, newest), simulated.Start(t, newest)
	other := startAgent(t, fresh.Socket)
	awaitReady(t, other)
	all := townOf(sim)
	delete(all, "config/vpp/v2/interfaces/nic0") // it is not made, and cannot be deleted
	notes := notebook{}
	draw.Few(t, 25, func(rt *rapid.T) {
		defer revive(rt, sim, fresh)
		before := startAgentWith(t, sim.Socket, nil, notes)
		awaitReady(t, before)
		before.declareOnly(all)
		before.stop()
		declared, hand := maps.Clone(all), sim.Dial()
		for i := range rapid.IntRange(1, 3).Draw(rt, "hands") {
			deleteOneOf(rt, sim, hand, deletable(rt, sim, hand))
			name := fmt.Sprint("new", i)
			declared["config/vpp/v2/interfaces/"+name] = fmt.Sprintf(`{"name":%q,"type":"SOFTWARE_LOOPBACK","enabled":true}`, name)
		}
		for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom(slices.Sorted(maps.Keys(all))), 0, len(all), rapid.ID[string]).Draw(rt, "without") {
			delete(declared, key)
		}
		a := startAgentWith(t, sim.Socket, nil, notes)
		defer a.stop()
		awaitReady(t, a)
		a.declareOnly(declared)
		other.declareOnly(declared)
		other.awaitVPP()
		eventuallyIn(rt, func() string {
			has, want := idle.ReplaceAllString(pages(sim), ""), idle.ReplaceAllString(pages(fresh), "")
			if has == want {
				return ""
			}
			return has + "\nwant\n" + want
		}, "")
	})
}

// awaitVPP waits until nothing waits for VPP, which may be too busy to answer for a while.
func (a *agent) awaitVPP() {
	a.Helper()
	until(a.T, func() bool {
		return !slices.ContainsFunc(a.sched.Statuses("config/vpp/"), func(st *scheduler.Status) bool {
			return slices.ContainsFunc(st.Details, func(what string) bool { return strings.HasPrefix(what, vpp.ConnectionName+":") })
		})
	}, func() string { return "VPP is still not connected" })
}

// tagged is how many interfaces have a name.
func tagged(v *simulated.VPP) (n int) {
	for line := range strings.Lines(v.Show("show interface")) {
		if words := strings.Fields(line); words[3] == "up" || words[3] == "down" {
			n++
		}
	}
	return n
}

// withoutNewcomers waits until all interfaces are back, and takes the newcomers away, which
// shows what is by one of them.
func withoutNewcomers(rt *rapid.T, v *simulated.VPP, interfaces int) {
	v.Helper()
	if !testkit.Until(func() bool { return tagged(v) >= interfaces }) {
		rt.Fatalf("VPP has\n%s\nwant %d with names", v.Show("show interface"), interfaces)
	}
	hand := v.Dial()
	for _, d := range interfacesOf(rt, v, hand) {
		if d.Tag == "" && d.InterfaceDevType == "Loopback" {
			v.Ask(hand, &vppif.DeleteLoopback{SwIfIndex: d.SwIfIndex}, &vppif.DeleteLoopbackReply{})
		}
	}
}
