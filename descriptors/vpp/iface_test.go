package vpp_test

import (
	"context"
	"errors"
	"testing"

	vppif "go.fd.io/govpp/binapi/interface"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/proto/ligato/kvscheduler"
)

// TestInterfacesOfEachType has one interface of each type made, read back without a
// difference, and removed.
func TestInterfacesOfEachType(t *testing.T) { onEachVPP(t, interfacesOfEachType) }

func interfacesOfEachType(t *testing.T, vpp *simulated.VPP) {
	const base = "config/vpp/v2/interfaces/"
	types := []struct{ name, value, shows string }{
		{"loop1", `{"name":"loop1","type":"SOFTWARE_LOOPBACK","enabled":true,"phys_address":"02:00:00:00:00:01"}`, "loop0 loop1 up"},
		{"tap1", `{"name":"tap1","type":"TAP","enabled":true,"mtu":1400,"tap":{"version":2,"host_if_name":"lin1"}}`, " tap1 up"},
		{"tap2", `{"name":"tap2","type":"TAP","tap":{"rx_ring_size":512}}`, " tap2 down"},
		{"memif1", `{"name":"memif1","type":"MEMIF","enabled":true,"memif":{"id":3,"master":true,"socket_filename":"/tmp/m.sock","secret":"x"}}`, "memif1/3 memif1 up"},
		{"memif2", `{"name":"memif2","type":"MEMIF","memif":{"id":4}}`, "memif0/4 memif2 down"},
		{"sub1", `{"name":"sub1","type":"SUB_INTERFACE","enabled":true,"sub":{"parent_name":"tap1","sub_id":100,"tag_rw_option":"POP1"}}`, ".100 sub1 up"},
		{"vxlan1", `{"name":"vxlan1","type":"VXLAN_TUNNEL","enabled":true,"vxlan":{"src_address":"10.0.0.1","dst_address":"10.0.0.2","vni":7}}`, "vxlan_tunnel0 vxlan1 up"},
		{"gpe1", `{"name":"gpe1","type":"VXLAN_TUNNEL","enabled":true,"vxlan":{"src_address":"10.0.0.1","dst_address":"10.0.0.2","vni":7,"gpe":{"protocol":"IP4"}}}`, "vxlan_gpe_tunnel0 gpe1 up"},
		{"gtpu1", `{"name":"gtpu1","type":"GTPU_TUNNEL","gtpu":{"src_addr":"10.0.0.1","dst_addr":"10.0.0.2","teid":7}}`, "gtpu_tunnel0 gtpu1 down"},
		{"gre1", `{"name":"gre1","type":"GRE_TUNNEL","enabled":true,"gre":{"tunnel_type":"TEB","src_addr":"10.0.0.1","dst_addr":"10.0.0.2"}}`, "gre0 gre1 up"},
		{"ipip1", `{"name":"ipip1","type":"IPIP_TUNNEL","ipip":{"src_addr":"FD00::1","dst_addr":"fd00::2"}}`, "ipip0 ipip1 down"},
		{"bond1", `{"name":"bond1","type":"BOND_INTERFACE","enabled":true,"bond":{"id":5,"mode":"ROUND_ROBIN","bonded_interfaces":[{"name":"memif1"}]}}`, "BondEthernet5 bond1 up"},
		{"afp1", `{"name":"afp1","type":"AF_PACKET","enabled":true,"afpacket":{"host_if_name":"lo"}}`, ""},
	}
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	var all []string
	for _, one := range types {
		all = append(all, base+one.name, one.value)
	}
	a.want(false, all...)
	for _, one := range types {
		if one.shows == "" {
			a.expectState(base+one.name, kvscheduler.ValueState_PENDING)
			continue
		}
		a.expectState(base+one.name, kvscheduler.ValueState_CONFIGURED)
		awaits(t, vpp, "show interface", one.shows)
	}

	vpp.Counts()
	a.want(true, all...)
	expectOnlyReads(t, vpp)

	a.want(true)
	awaits(t, vpp, "show interface", "addresses 0 local0 down 0")
	for _, one := range types {
		if _, there := a.sched.Status(base + one.name); there {
			t.Errorf("%s still stands", one.name)
		}
	}
}

// TestWhatOthersDeleteComesBack has somebody else set an interface down, and delete it.
func TestWhatOthersDeleteComesBack(t *testing.T) {
	sim, socket := startSim(t)
	a := startAgent(t, socket)
	awaitReady(t, a)
	a.want(false, network()...)
	awaits(t, sim, "show ip fib", "10.2.0.0/16 via 10.1.0.2 loop0 weight 1")
	a.awaitState("vpp/interface/loop1/link-state/UP", kvscheduler.ValueState_OBTAINED)

	other, err := conn.Dial(t.Context(), socket, "other")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- other.Run(context.Background()) }()
	defer func() { other.Close(errors.New("the test is over")); <-ended }()
	if err := other.Call(t.Context(), &vppif.SwInterfaceSetFlags{SwIfIndex: 1}, &vppif.SwInterfaceSetFlagsReply{}); err != nil {
		t.Fatal(err)
	}
	a.awaitState("vpp/interface/loop1/link-state/DOWN", kvscheduler.ValueState_OBTAINED)

	if err := other.Call(t.Context(), &vppif.DeleteLoopback{SwIfIndex: 1}, &vppif.DeleteLoopbackReply{}); err != nil {
		t.Fatal(err)
	}
	awaits(t, sim, "show interface", "1 loop0 loop1 up 5 10.1.0.1/24")
	awaits(t, sim, "show ip fib", "10.2.0.0/16 via 10.1.0.2 loop0 weight 1")
	a.awaitState("vpp/interface/loop1/link-state/UP", kvscheduler.ValueState_OBTAINED)
}
