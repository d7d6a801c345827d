package vpp_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/vppsim"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/inspect"
	"github.com/keyplane/keyplane/scheduler/txnlog"
)

// TestResyncInSync reads back values of every descriptor, with parts that wait, while they are in
// sync: nothing is done, recorded or published.
func TestResyncInSync(t *testing.T) { onEachVPP(t, resyncInSync) }

func resyncInSync(t *testing.T, vpp *simulated.VPP) {
	all := supported(vpp)
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	a.want(true, all...)
	var base, part bool
	for _, st := range a.sched.Statuses("") {
		base = base || st.State == scheduler.Pending && st.Base == ""
		part = part || st.State == scheduler.Pending && st.Base != ""
	}
	if !base || !part {
		t.Fatalf("values wait: %v, parts wait: %v; want both", base, part)
	}
	a.resyncsInSync(vpp)
}

// TestRestartReads starts an agent again beside a VPP that has run on: it sends nothing but questions, also where VPP
// does not report a setting, such as autoconfiguration, a flow hash, and the ages of neighbours before 23.10.
func TestRestartReads(t *testing.T) { onEachVPP(t, restartReads) }

func restartReads(t *testing.T, vpp *simulated.VPP) {
	all, notes := alike(supported(vpp)), quiet()
	start := func() *agent {
		a := startAgentKnowing(t, vpp.Socket, notes)
		awaitReady(t, a)
		a.want(true, all...)
		return a
	}
	a := start()
	before := pages(vpp)
	for range 2 {
		a.stop()
		vpp.Counts()
		a = start()
		expectOnlyReads(t, vpp)
	}
	// The next run of VPP has none of that, so it gets everything again.
	a.stop()
	if err := vpp.Restart(); err != nil {
		t.Fatal(err)
	}
	a = start()
	if after := pages(vpp); after != before {
		t.Errorf("after a restart of VPP it has\n%s\nand had\n%s", after, before)
	}
	a.resyncsInSync(vpp)
}

// supported are values of all descriptors that this VPP has messages for, with parts that wait.
func supported(vpp *simulated.VPP) []string {
	all := append(network(), waiting()...)
	if vpp.Sim == nil || vpp.Sim.Release() != "22.02" {
		all = append(all, tablesOfNAT()...)
		all = append(all, wireguardKey, wireguardLink, peerKey, peerValue(peerAt))
	}
	return all
}

// tablesOfNAT are values that VPP has no messages for before 22.06.
func tablesOfNAT() []string {
	return []string{
		"config/vpp/nat/v2/nat44-vrf/vrfid/5", `{"src_vrf_id":5,"dest_vrf_ids":[0]}`,
		"config/vpp/nat/v2/nat44-vrf-route/vrfid/5/destvrfid/5", `{"src_vrf_id":5,"dest_vrf_id":5}`,
	}
}

// TestTablesOfNATWaitForVRFs checks that VPP never makes a table by itself: it would have another
// name than the declared one, and VPP cannot rename it.
func TestTablesOfNATWaitForVRFs(t *testing.T) {
	vpp := simulated.Start(t, "")
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	global := []string{"config/vpp/nat/v2/nat44-global", `{}`}
	a.want(true, append(global, tablesOfNAT()...)...)
	for _, st := range a.sched.Statuses("config/vpp/nat/v2/nat44-vrf") {
		if st.State != scheduler.Pending || !slices.Contains(st.Details, "vrf-table-exists") {
			t.Errorf("%s is %v %q without VRF 5", st.Key, st.State, st.Details)
		}
	}
	if asked := vpp.Counts(); asked["nat44_ed_add_del_vrf_table"] > 0 {
		t.Errorf("VPP was asked for a table of NAT without VRF 5")
	}
}

// waiting are values that stand while parts of them wait, and others that wait.
func waiting() []string {
	const ifs = "config/vpp/v2/interfaces/"
	tap := `{"name":"tap1","type":"TAP","enabled":true,"tap":{"version":2,"host_if_name":"resync1"}}`
	if !simulated.HasTAPs() {
		tap = `{"name":"tap1","type":"MEMIF","enabled":true,"memif":{"id":8}}`
	}
	return []string{
		ifs + "loop2", `{"name":"loop2","type":"SOFTWARE_LOOPBACK","enabled":true}`,
		ifs + "tap1", tap,
		ifs + "nowhere", `{"name":"nowhere","type":"SOFTWARE_LOOPBACK","vrf":77,"ip_addresses":["10.7.0.1/24"]}`,
		ifs + "borrower", `{"name":"borrower","type":"SOFTWARE_LOOPBACK","unnumbered":{"interface_with_ip":"absent"}}`,
		ifs + "borrows", `{"name":"borrows","type":"SOFTWARE_LOOPBACK","unnumbered":{"interface_with_ip":"loop1"}}`,
		ifs + "sub1", `{"name":"sub1","type":"SUB_INTERFACE","enabled":true,"sub":{"parent_name":"loop2","sub_id":7}}`,
		ifs + "subwaits", `{"name":"subwaits","type":"SUB_INTERFACE","sub":{"parent_name":"absent","sub_id":7}}`,
		ifs + "bond1", `{"name":"bond1","type":"BOND_INTERFACE","bond":{"id":5,"mode":"ROUND_ROBIN","bonded_interfaces":[{"name":"absent"}]}}`,
		ifs + "leased", `{"name":"leased","type":"SOFTWARE_LOOPBACK","enabled":true,"vrf":77,"set_dhcp_client":true}`,
		ifs + "auto", `{"name":"auto","type":"SOFTWARE_LOOPBACK","enabled":true,"ip_addresses":["fd01::1/64"],"ip6_nd":{"address_autoconfig":true}}`,
		ifs + "rx", `{"name":"rx","type":"MEMIF","memif":{"id":9},"rx_modes":[{"default_mode":true,"mode":"INTERRUPT"},{"queue":7,"mode":"POLLING"}],"rx_placements":[{"queue":0,"worker":1}]}`,
		"config/netalloc/v1/ip/network/net1/interface/alloc", `{"network_name":"net1","interface_name":"alloc","address":"10.8.0.1/24","gw":"10.8.0.254"}`,
		ifs + "alloc", `{"name":"alloc","type":"SOFTWARE_LOOPBACK","ip_addresses":["alloc:net1","alloc:net2"]}`,
		"config/vpp/l2/v2/bridge-domain/bd1", `{"name":"bd1","forward":true,"learn":true,"interfaces":[{"name":"loop2","bridged_virtual_interface":true},{"name":"absent"}],"arp_termination_table":[{"ip_address":"10.1.0.9","phys_address":"02:00:00:00:00:09"}]}`,
		"config/vpp/l2/v2/fib/bd1/mac/02:00:00:00:00:0a", `{"bridge_domain":"bd1","phys_address":"02:00:00:00:00:0a","outgoing_interface":"loop2","static_config":true}`,
		"config/vpp/l2/v2/fib/bd1/mac/02:00:00:00:00:0b", `{"bridge_domain":"bd1","phys_address":"02:00:00:00:00:0b","outgoing_interface":"absent"}`,
		"config/vpp/l2/v2/xconnect/tap1", `{"receive_interface":"tap1","transmit_interface":"absent"}`,
		"config/vpp/v2/span/loop1/to/tap1", `{"interface_from":"loop1","interface_to":"tap1","direction":"BOTH"}`,
		"config/vpp/v2/vrf-table/id/9/protocol/IPV6", `{"id":9,"protocol":"IPV6","flow_hash_settings":{"use_src_ip":true}}`,
		"config/vpp/v2/route/vrf/5/dst/10.3.0.0/16/gw/10.1.0.3", `{"vrf_id":5,"dst_network":"10.3.0.0/16","next_hop_addr":"10.1.0.3"}`,
		"config/vpp/v2/route/if/absent/vrf/0/dst/10.4.0.0/16/gw/10.1.0.4", `{"dst_network":"10.4.0.0/16","next_hop_addr":"10.1.0.4","outgoing_interface":"absent"}`,
		"config/vpp/v2/ipscanneigh-global", `{"mode":"BOTH","scan_interval":1}`,
		"config/vpp/dns/v1/dnscache", `{"upstream_dns_servers":["10.0.0.53"]}`,
	}
}

// resyncsInSync fails if a resync does, records or publishes anything.
func (a *agent) resyncsInSync(vpp *simulated.VPP) {
	a.Helper()
	// The first one also finds what VPP tells by itself, such as link states.
	if _, err := a.sched.Commit(a.Context(), scheduler.Txn{Refresh: true}); err != nil {
		a.Fatal(err)
	}
	w := a.sched.Watch("")
	defer w.Close()
	w.Take() // the present statuses
	vpp.Counts()
	record, err := a.sched.Commit(a.Context(), scheduler.Txn{Refresh: true})
	if err != nil {
		a.Fatal(err)
	}
	for _, op := range record.Executed.All() {
		a.Errorf("resync: %s %s %v %s -> %s", op.Verb, op.Key, txnlog.Flags(&op), op.OldState, op.NewState)
	}
	if len(record.RefreshErrors) > 0 {
		a.Errorf("not read back: %v", record.RefreshErrors)
	}
	for _, st := range w.Take() {
		a.Errorf("resync: published %s %s", st.Key, st.State)
	}
	expectOnlyReads(a.T, vpp)
}

// TestResyncKeepsVRFsOfWaitingAddresses has interfaces of which some or all addresses wait, or which
// borrow one that waits: what they have stays as it is, also when the agent is started again.
func TestResyncKeepsVRFsOfWaitingAddresses(t *testing.T) {
	onEachVPP(t, resyncKeepsVRFsOfWaitingAddresses)
}

func resyncKeepsVRFsOfWaitingAddresses(t *testing.T, vpp *simulated.VPP) {
	const ifs = "config/vpp/v2/interfaces/"
	all := []string{
		"config/vpp/v2/vrf-table/id/5/protocol/IPV4", `{"id":5}`,
		"config/vpp/v2/vrf-table/id/5/protocol/IPV6", `{"id":5,"protocol":"IPV6"}`,
		ifs + "borrower", `{"name":"borrower","type":"SOFTWARE_LOOPBACK","unnumbered":{"interface_with_ip":"ref-vrf5"}}`,
		ifs + "lo7", `{"name":"lo7","type":"SOFTWARE_LOOPBACK","vrf":7,"ip_addresses":["10.8.7.1/24"]}`,
	}
	if vpp.Sim != nil { // a real one may lack the plugin
		all = append(all, ifs+"gtp7", `{"name":"gtp7","type":"GTPU_TUNNEL","vrf":7,"ip_addresses":["10.8.0.1/24"],"gtpu":{"src_addr":"10.1.0.1","dst_addr":"10.1.0.2","teid":8}}`)
	}
	addresses := map[string]string{
		"ref": `"alloc:net9"`, "v4": `"10.%d.0.1/24"`, "v6": `"fd0%d::1/64"`, "ref-v4": `"alloc:net9","10.%d.1.1/24"`,
		"ref-v6": `"fd1%d::1/64","alloc:net9"`, "both": `"10.%d.2.1/24","fd2%d::1/64"`, "none": ``,
	}
	expected := map[string][]string{}
	for kind, text := range addresses {
		for _, vrf := range []int{0, 5} {
			name := fmt.Sprint(kind, "-vrf", vrf)
			list := strings.ReplaceAll(text, "%d", fmt.Sprint(vrf))
			all = append(all, ifs+name, fmt.Sprintf(`{"name":%q,"type":"SOFTWARE_LOOPBACK","enabled":true,"vrf":%d,"ip_addresses":[%s]}`, name, vrf, list))
			version := map[string]string{"v4": "v4", "v6": "v6", "none": ""}[kind]
			if version == "" && kind != "none" {
				version = "both"
			}
			if kind != "none" {
				expected[name] = []string{fmt.Sprintf("vpp/interface/%s/vrf/%d/ip-version/%s", name, vrf, version)}
			}
		}
	}
	notes := notebook{}
	a := startAgentWith(t, vpp.Socket, nil, notes)
	awaitReady(t, a)
	a.want(true, all...)
	for range 2 {
		for name, vrfs := range expected {
			var stand []string
			for _, st := range a.sched.Statuses(keys.Interface(name).VRFs()) {
				if st.State == scheduler.Configured {
					stand = append(stand, st.Key)
				}
			}
			if !slices.Equal(stand, vrfs) {
				t.Errorf("%s is in %q, want %q", name, stand, vrfs)
			}
		}
		for range 3 {
			a.resyncsInSync(vpp)
		}
		a.stop()
		vpp.Counts()
		a = startAgentWith(t, vpp.Socket, nil, notes)
		awaitReady(t, a)
		a.want(true, all...)
		if n := vpp.Counts(); n["sw_interface_add_del_address"]+n["sw_interface_set_table"]+n["sw_interface_set_unnumbered"] > 0 {
			t.Errorf("the agent that was started again has asked VPP for %v", n)
		}
	}
}

// TestResyncFindsOtherVRFs has somebody else bind interfaces to other tables: a resync puts them back.
func TestResyncFindsOtherVRFs(t *testing.T) {
	vpp := simulated.Start(t, "")
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	const ifs = "config/vpp/v2/interfaces/"
	a.want(true,
		"config/vpp/v2/vrf-table/id/5/protocol/IPV4", `{"id":5}`,
		"config/vpp/v2/vrf-table/id/6/protocol/IPV4", `{"id":6}`,
		"config/vpp/v2/vrf-table/id/6/protocol/IPV6", `{"id":6,"protocol":"IPV6"}`,
		ifs+"lo1", `{"name":"lo1","type":"SOFTWARE_LOOPBACK","vrf":5,"ip_addresses":["10.1.0.1/24"]}`,
		ifs+"lo2", `{"name":"lo2","type":"SOFTWARE_LOOPBACK"}`,
		ifs+"lo3", `{"name":"lo3","type":"SOFTWARE_LOOPBACK","vrf":5,"ip_addresses":["10.3.0.1/24"]}`,
	)
	hands := vpp.Dial()
	indexOf := func(name string) interface_types.InterfaceIndex {
		all, err := conn.Dump[vppif.SwInterfaceDetails](t.Context(), hands, &vppif.SwInterfaceDump{SwIfIndex: ^interface_types.InterfaceIndex(0)})
		i := slices.IndexFunc(all, func(d vppif.SwInterfaceDetails) bool { return d.Tag == name })
		if err != nil || i < 0 {
			t.Fatalf("%s does not stand: %v", name, err)
		}
		return all[i].SwIfIndex
	}
	lo1, lo2, lo3 := indexOf("lo1"), indexOf("lo2"), indexOf("lo3")
	bind := func(index interface_types.InterfaceIndex, ipv6 bool, id uint32) {
		vpp.Ask(hands, &vppif.SwInterfaceSetTable{SwIfIndex: index, IsIPv6: ipv6, VrfID: id}, &vppif.SwInterfaceSetTableReply{})
	}
	bind(lo1, true, 6)
	bind(lo2, false, 6)
	bind(lo2, true, 6)
	vpp.Ask(hands, &vppif.SwInterfaceAddDelAddress{SwIfIndex: lo3, DelAll: true}, &vppif.SwInterfaceAddDelAddressReply{})
	bind(lo3, false, 6)
	if _, err := a.sched.Commit(t.Context(), scheduler.Txn{Refresh: true}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		of     interface_types.InterfaceIndex
		v4, v6 uint32
	}{{lo1, 5, 0}, {lo2, 0, 0}, {lo3, 5, 0}} {
		for ipv6, id := range map[bool]uint32{false: want.v4, true: want.v6} {
			its := &vppif.SwInterfaceGetTableReply{}
			if vpp.Ask(hands, &vppif.SwInterfaceGetTable{SwIfIndex: want.of, IsIPv6: ipv6}, its); its.VrfID != id {
				t.Errorf("interface %d, IPv6 %v: in table %d, want %d", want.of, ipv6, its.VrfID, id)
			}
		}
	}
	a.resyncsInSync(vpp)
}

// TestResyncCoversEveryDescriptor keeps the values of TestResyncInSync complete.
func TestResyncCoversEveryDescriptor(t *testing.T) {
	_, socket := startSim(t)
	a := startAgent(t, socket)
	awaitReady(t, a)
	peer := []string{wireguardKey, wireguardLink, peerKey, peerValue(peerAt)}
	a.want(true, slices.Concat(network(), waiting(), tablesOfNAT(), peer, shownAt(t, "punt/README.md", 1))...)
	a.awaitState(keys.WireguardPeerState(peerName, keys.WireguardHandshake), scheduler.Obtained) // VPP tells it afterwards
	has := map[string]bool{}
	for _, st := range a.sched.Statuses("") {
		has[st.Descriptor] = true
	}
	for _, d := range inspect.Descriptors(a.sched) {
		if !has[d.Name] && d.Name != "vpp-dhcp-lease" { // that needs a server
			t.Errorf("there is no value of %s", d.Name)
		}
	}
}

// TestFailureReadsItsOwn has one interface fail beside many: VPP is not asked for the addresses of
// the others.
func TestFailureReadsItsOwn(t *testing.T) {
	vpp := simulated.StartWith(t, vppsim.Options{Release: "24.10", Without: []string{"gtpu"}})
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	var all []string
	for i := range 50 {
		name := fmt.Sprint("many", i)
		all = append(all, interfacesPrefix+name, `{"name":"`+name+`","type":"SOFTWARE_LOOPBACK","ip_addresses":["10.5.`+fmt.Sprint(i)+`.1/24"]}`)
	}
	a.want(true, all...)
	vpp.Counts()
	if _, err := a.declare(false, interfacesPrefix+"gtp1", `{"name":"gtp1","type":"GTPU_TUNNEL","gtpu":{"src_addr":"10.0.0.1","dst_addr":"10.0.0.2","teid":7}}`); err == nil {
		t.Fatal("it was done")
	}
	counts := vpp.Counts()
	if counts["sw_interface_dump"] == 0 || counts["ip_address_dump"] > 2 {
		t.Errorf("VPP was asked %v", counts)
	}
}
