package vpp_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/internal/vppsim"
	"github.com/keyplane/keyplane/scheduler"
)

// A typeStory is an interface of a type, and how it is listed once it stands; empty: it waits.
type typeStory struct{ name, value, shows string }

// TestInterfacesOfEachType has one interface of each type made, read back without a
// difference, and removed.
func TestInterfacesOfEachType(t *testing.T) { onEachVPP(t, interfacesOfEachType) }

func interfacesOfEachType(t *testing.T, vpp *simulated.VPP) {
	const base = "config/vpp/v2/interfaces/"
	types := []typeStory{
		{"loop1", `{"name":"loop1","type":"SOFTWARE_LOOPBACK","enabled":true,"phys_address":"02:00:00:00:00:01"}`, "loop0 loop1 up"},
		{"tap1", `{"name":"tap1","type":"TAP","enabled":true,"mtu":1400,"tap":{"version":2,"host_if_name":"lin1"}}`, " tap1 up"},
		{"tap2", `{"name":"tap2","type":"TAP","tap":{"rx_ring_size":512}}`, " tap2 down"},
		{"memif1", `{"name":"memif1","type":"MEMIF","enabled":true,"memif":{"id":3,"master":true,"socket_filename":"/run/m.sock","secret":"x"}}`, "memif1/3 memif1 up"},
		{"memif2", `{"name":"memif2","type":"MEMIF","memif":{"id":4}}`, "memif0/4 memif2 down"},
		{"sub1", `{"name":"sub1","type":"SUB_INTERFACE","enabled":true,"sub":{"parent_name":"loop1","sub_id":100,"tag_rw_option":"POP1"}}`, ".100 sub1 up"},
		{"vxlan1", `{"name":"vxlan1","type":"VXLAN_TUNNEL","enabled":true,"vxlan":{"src_address":"10.0.0.1","dst_address":"10.0.0.2","vni":7}}`, "vxlan_tunnel0 vxlan1 up"},
		{"gpe1", `{"name":"gpe1","type":"VXLAN_TUNNEL","enabled":true,"vxlan":{"src_address":"10.0.0.1","dst_address":"10.0.0.2","vni":7,"gpe":{"protocol":"IP4"}}}`, "vxlan_gpe_tunnel0 gpe1 up"},
		{"gtpu1", `{"name":"gtpu1","type":"GTPU_TUNNEL","gtpu":{"src_addr":"10.0.0.1","dst_addr":"10.0.0.2","teid":7}}`, "gtpu_tunnel0 gtpu1 down"},
		{"gre1", `{"name":"gre1","type":"GRE_TUNNEL","enabled":true,"gre":{"tunnel_type":"TEB","src_addr":"10.0.0.1","dst_addr":"10.0.0.2"}}`, "gre0 gre1 up"},
		{"ipip1", `{"name":"ipip1","type":"IPIP_TUNNEL","ipip":{"src_addr":"FD00::1","dst_addr":"fd00::2"}}`, "ipip0 ipip1 down"},
		{"ipsec1", `{"name":"ipsec1","type":"IPSEC_TUNNEL","enabled":true,"ipsec":{}}`, "ipsec1 up"},
		{"wg1", `{"name":"wg1","type":"WIREGUARD_TUNNEL","enabled":true,"wireguard":{"private_key":"AAECAwQFBgcICQoLDA0ODw8ODQwLCgkIBwYFBAMCAQA=","port":51820,"src_addr":"10.0.0.1"}}`, "wg0 wg1 up"},
		{"rdma1", `{"name":"rdma1","type":"RDMA","enabled":true,"rdma":{"host_if_name":"lo"}}`, ""},
		{"bond1", `{"name":"bond1","type":"BOND_INTERFACE","enabled":true,"bond":{"id":5,"mode":"ROUND_ROBIN","bonded_interfaces":[{"name":"memif1"}]}}`, "BondEthernet5 bond1 up"},
		{"afp1", `{"name":"afp1","type":"AF_PACKET","enabled":true,"afpacket":{"host_if_name":"lo"}}`, ""},
	}
	if vpp.Sim != nil { // a real one may have no such device
		types = append(types, typeStory{"vmxnet3-0/b/0/0", `{"name":"vmxnet3-0/b/0/0","type":"VMXNET3_INTERFACE","enabled":true,"vmx_net3":{}}`, "vmxnet3-0/b/0/0 vmxnet3-0/b/0/0 up"})
	}
	if !simulated.HasTAPs() {
		types = slices.DeleteFunc(types, func(one typeStory) bool { return strings.HasPrefix(one.name, "tap") })
	}
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	var all []string
	for _, one := range types {
		all = append(all, base+one.name, one.value)
	}
	a.wantPossible(vpp, false, all...)
	for _, one := range types {
		if one.shows == "" {
			a.expectState(base+one.name, scheduler.Pending)
			continue
		}
		if st, _ := a.sched.Status(base + one.name); vpp.Sim == nil && st.State == scheduler.Unimplemented {
			t.Logf("SKIPPED: %s: %v", one.name, st.Err) // this VPP lacks the plugin
			continue
		}
		a.expectState(base+one.name, scheduler.Configured)
		awaits(t, vpp, "show interface", one.shows)
	}

	vpp.Counts()
	a.wantPossible(vpp, true, all...)
	expectOnlyReads(t, vpp)

	a.want(true)
	awaits(t, vpp, "show interface", "addresses 0 local0 down 0")
	for _, one := range types {
		if _, there := a.sched.Status(base + one.name); there {
			t.Errorf("%s still stands", one.name)
		}
	}
}

// wantPossible is want where a real VPP may lack plugins.
func (a *agent) wantPossible(vpp *simulated.VPP, replace bool, keysAndValues ...string) {
	a.Helper()
	_, err := a.declare(replace, keysAndValues...)
	if err != nil && (vpp.Sim != nil || !errors.Is(err, scheduler.ErrUnimplemented)) {
		a.Fatal(err)
	}
}

// TestWhatOthersDeleteComesBack has somebody else set an interface down, and delete it.
func TestWhatOthersDeleteComesBack(t *testing.T) { onEachVPP(t, whatOthersDeleteComesBack) }

func whatOthersDeleteComesBack(t *testing.T, vpp *simulated.VPP) {
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	a.want(false, network()...)
	awaits(t, vpp, "show ip fib", "10.2.0.0/16 via 10.1.0.2 loop0 weight 1")
	a.awaitState("vpp/interface/loop1/link-state/UP", scheduler.Obtained)

	other := vpp.Dial()
	all, err := conn.Dump[vppif.SwInterfaceDetails](t.Context(), other, &vppif.SwInterfaceDump{SwIfIndex: ^interface_types.InterfaceIndex(0)})
	i := slices.IndexFunc(all, func(d vppif.SwInterfaceDetails) bool { return d.Tag == "loop1" })
	if err != nil || i < 0 {
		t.Fatalf("loop1 does not exist: %v", err)
	}
	loop := all[i].SwIfIndex
	vpp.Ask(other, &vppif.SwInterfaceSetFlags{SwIfIndex: loop}, &vppif.SwInterfaceSetFlagsReply{})
	a.awaitState("vpp/interface/loop1/link-state/DOWN", scheduler.Obtained)

	vpp.Ask(other, &vppif.DeleteLoopback{SwIfIndex: loop}, &vppif.DeleteLoopbackReply{})
	awaits(t, vpp, "show interface", "loop0 loop1 up 5 10.1.0.1/24")
	awaits(t, vpp, "show ip fib", "10.2.0.0/16 via 10.1.0.2 loop0 weight 1")
	a.awaitState("vpp/interface/loop1/link-state/UP", scheduler.Obtained)
}

// TestTypesThatVPPLacks: a type whose plugin is not loaded is UNIMPLEMENTED until it changes,
// and says why; what else is declared stands.
func TestTypesThatVPPLacks(t *testing.T) {
	vpp := simulated.StartWith(t, vppsim.Options{Release: "24.10", Without: []string{"gtpu"}})
	a := startAgent(t, vpp.Socket)
	const gtp = "config/vpp/v2/interfaces/gtp1"
	awaitReady(t, a)
	if _, err := a.declare(false, append(network(), gtp, `{"name":"gtp1","type":"GTPU_TUNNEL","gtpu":{"src_addr":"10.0.0.1","dst_addr":"10.0.0.2","teid":7}}`)...); err == nil {
		t.Error("it was done")
	}
	a.expectState(gtp, scheduler.Unimplemented)
	status, _ := a.sched.Status(gtp)
	if text := status.Err.Error(); !strings.Contains(text, "gtpu_add_del_tunnel") || !strings.Contains(text, "24.10") {
		t.Errorf("it says %q", text)
	}
	awaits(t, vpp, "show ip fib", "10.2.0.0/16 via 10.1.0.2 loop0 weight 1")
}

// TestLinksGoWithTheirInterfaces has interfaces come and go: VPP tells that each goes down
// before it does.
func TestLinksGoWithTheirInterfaces(t *testing.T) { onEachVPP(t, linksGoWithTheirInterfaces) }

func linksGoWithTheirInterfaces(t *testing.T, vpp *simulated.VPP) {
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	for i := range 20 {
		name := fmt.Sprint("passing", i)
		a.want(false, interfacesPrefix+name, `{"name":"`+name+`","type":"SOFTWARE_LOOPBACK","enabled":true}`)
		a.unwant(interfacesPrefix + name)
	}
	left := func() []*scheduler.Status { return a.sched.Statuses("vpp/interface/passing") }
	until(t, func() bool { return len(left()) == 0 }, func() string { return fmt.Sprintf("left behind: %d, such as %s", len(left()), left()[0].Key) })
}

// TestKilledBeforeTheTag kills an agent between the creation of an interface in VPP and its tag. The
// value has changed, or is not declared any more, when the next agent starts: nothing is left behind.
func TestKilledBeforeTheTag(t *testing.T) {
	const tag, tunnel, key = "sw_interface_tag_add_del", "gre_tunnel_add_del", interfacesPrefix + "gre1"
	value := func(to string) string {
		return `{"name":"gre1","type":"GRE_TUNNEL","enabled":true,"gre":{"tunnel_type":"L3","src_addr":"10.9.0.1","dst_addr":"` + to + `"}}`
	}
	for name, next := range map[string][]string{"removed": nil, "changed": {key, value("10.9.0.3")}} {
		t.Run(name, func(t *testing.T) {
			onEachRelease(t, func(t *testing.T, sim *vppsim.Sim, socket string) {
				bare := sim.Show("show interface")
				known := quiet()
				a := startAgentKnowing(t, socket, known)
				awaitReady(t, a)
				sim.Fail(tag, vppsim.Fault{Mute: true})
				sim.Fail(tunnel, vppsim.Fault{Mute: true, Skip: 1}) // the creation succeeds, and the deletion does not
				ended := make(chan struct{})
				go func() { _, _ = a.declare(true, key, value("10.9.0.2")); close(ended) }() // it fails with the end of the agent
				until(t, func() bool { return strings.Contains(sim.Show("show interface"), "gre0") }, func() string { return "no tunnel came" })
				// What the agent would still do as it ends, a kill prevents.
				killed := memories{applied: maps.Clone(known.applied.(notebook)), settings: maps.Clone(known.settings.(notebook))}
				a.stop()
				<-ended
				sim.Fail(tag, vppsim.Fault{})
				sim.Fail(tunnel, vppsim.Fault{})

				again := startAgentKnowing(t, socket, killed)
				awaitReady(t, again)
				again.want(true, next...)
				if next == nil {
					until(t, func() bool { return sim.Show("show interface") == bare }, func() string { return "left behind:\n" + sim.Show("show interface") })
				}
				until(t, func() bool { return !strings.Contains(strings.Join(untagged(again), " "), "gre") }, func() string { return fmt.Sprint("left behind: ", untagged(again)) })
			})
		})
	}
}

// untagged are the keys of interfaces without a tag.
func untagged(a *agent) (out []string) {
	for _, st := range a.sched.Statuses(interfacesPrefix + "UNTAGGED-") {
		out = append(out, st.Key)
	}
	return out
}
