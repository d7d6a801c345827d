package vpp_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/sr"
	"go.fd.io/govpp/binapi/sr_types"
	"go.fd.io/govpp/binapi/vlib"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/descriptors/vpp/l3"
	"github.com/keyplane/keyplane/internal/vppsim"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/scheduler"
)

const (
	sidPrefix      = "config/vpp/srv6/v2/localsid/"
	globalKey      = "config/vpp/srv6/v2/srv6-global"
	policyPrefix   = "config/vpp/srv6/v2/policy/"
	steeringPrefix = "config/vpp/srv6/v2/steering/"
	secondKey      = "config/vpp/v2/interfaces/loop2"
	loop2          = `{"name":"loop2","type":"SOFTWARE_LOOPBACK","enabled":true}`
)

// sidValue returns the key and the value of a local SID.
func sidValue(address, more string) []string {
	return []string{sidPrefix + address, fmt.Sprintf(`{"sid":%q,%s}`, address, more)}
}

// policyValue returns the key and the value of a policy.
func policyValue(bsid, more string, lists ...string) []string {
	return []string{policyPrefix + bsid, fmt.Sprintf(`{"bsid":%q,%s,"segment_lists":[%s]}`, bsid, more, strings.Join(lists, ","))}
}

// steeringValue returns the key and the value of steering.
func steeringValue(name, bsid, traffic string) []string {
	return []string{steeringPrefix + name, fmt.Sprintf(`{"name":%q,"policy_bsid":%q,%s}`, name, bsid, traffic)}
}

// segmentBase are the values that those of segmentRouting need.
func segmentBase() []string {
	return []string{
		loopKey, loop, secondKey, loop2,
		"config/vpp/v2/vrf-table/id/20/protocol/IPV4", `{"id":20}`,
		"config/vpp/v2/vrf-table/id/20/protocol/IPV6", `{"id":20,"protocol":"IPV6"}`,
	}
}

// segmentRouting has a value of every kind.
func segmentRouting() []string {
	return slices.Concat(
		[]string{globalKey, `{"encap_source_address":"fd01::1"}`},
		sidValue("fd02::1", `"base_end_function":{"psp":true}`),
		sidValue("fd02::2", `"installation_vrf_id":20,"end_function_x":{"outgoing_interface":"loop1","next_hop":"fd00::9"}`),
		sidValue("fd02::3", `"end_function_t":{"vrf_id":20}`),
		sidValue("fd02::4", `"end_function_dx2":{"outgoing_interface":"loop1"}`),
		sidValue("fd02::5", `"end_function_dx4":{"outgoing_interface":"loop2","next_hop":"10.0.0.9"}`),
		sidValue("fd02::6", `"end_function_dx6":{"outgoing_interface":"loop2","next_hop":"fd00::9"}`),
		sidValue("fd02::7", `"end_function_dt4":{"vrf_id":20}`),
		sidValue("FD02:0::8", `"end_function_dt6":{"vrf_id":20}`),
		sidValue("fd02::9", `"installation_vrf_id":20,"end_function_ad":{"outgoing_interface":"loop1","incoming_interface":"loop2","l3_service_address":"10.0.0.8"}`),
		sidValue("fd02::a", `"end_function_ad":{"outgoing_interface":"loop1","incoming_interface":"loop2","l3_service_address":"fd00::8"}`),
		sidValue("fd02::b", `"end_function_ad":{"outgoing_interface":"loop1","incoming_interface":"loop2"}`),
		policyValue("fd03::1", `"srh_encapsulation":true`, `{"weight":2,"segments":["fd02::1","fd02::2"]}`, `{"segments":["fd02::3"]}`),
		policyValue("FD03:0::2", `"installation_vrf_id":20`, `{"segments":["fd02::1"]}`),
		policyValue("fd03::3", `"srh_encapsulation":true,"spray_behaviour":true`, `{"segments":["fd02::1"]}`, `{"segments":["fd02::2"]}`),
		steeringValue("v4", "fd03:0::1", `"l3_traffic":{"prefix_address":"10.9.0.0/16"}`),
		steeringValue("v6", "fd03::2", `"l3_traffic":{"installation_vrf_id":20,"prefix_address":"::/0"}`),
		steeringValue("l2", "fd03::3", `"l2_traffic":{"interface_name":"loop1"}`),
	)
}

// TestSegmentRouting declares all kinds of values before what they need, restarts VPP and the
// agent, and has another client delete everything.
func TestSegmentRouting(t *testing.T) { onEachVPP(t, segmentRoutingStory) }

func segmentRoutingStory(t *testing.T, vpp *simulated.VPP) {
	values, base := segmentRouting(), segmentBase()
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	a.want(false, values...)
	a.expectState(sidPrefix+"fd02::1", scheduler.Configured)
	a.expectState(sidPrefix+"fd02::9", scheduler.Pending)
	a.want(false, base...)
	a.allConfigured(values)
	a.awaitState("vpp/interface/loop2/link-state/UP", scheduler.Obtained)
	made := segmentsIn(t, vpp)
	a.resyncsInSync(vpp)

	deleteSegments(t, vpp)
	a.want(true, append(values, base...)...)
	a.allConfigured(values)
	for _, bad := range unlike(segmentsIn(t, vpp), made) {
		t.Errorf("after a resync: %s", bad)
	}
	// Without their interface, the values wait, and VPP has none of them.
	a.unwant(secondKey)
	a.expectState(sidPrefix+"fd02::9", scheduler.Pending)
	a.want(false, secondKey, loop2)
	a.allConfigured(values)

	if err := vpp.Restart(); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { return maps.Equal(segmentsIn(t, vpp), made) }, func() string { return fmt.Sprint("VPP has ", segmentsIn(t, vpp)) })
	a.awaitApplied()
	expectRestartReads(t, vpp, a, append(values, base...)...)
}

// TestSegmentRoutingGoes declares everything, and nothing.
func TestSegmentRoutingGoes(t *testing.T) {
	onEachVPP(t, func(t *testing.T, vpp *simulated.VPP) {
		a := startAgent(t, vpp.Socket)
		awaitReady(t, a)
		a.want(true, append(segmentBase(), segmentRouting()...)...)
		a.want(true)
		if left := segmentsIn(t, vpp); len(left) > 1 || left["source"] != "::" {
			t.Errorf("left behind: %v", left)
		}
	})
}

// TestPolicyChanges changes the lists of a policy, which traffic is steered into, and its source
// address: nothing but lists changes in VPP.
func TestPolicyChanges(t *testing.T) {
	onEachVPP(t, func(t *testing.T, vpp *simulated.VPP) {
		a := startAgent(t, vpp.Socket)
		awaitReady(t, a)
		a.want(true, append(segmentBase(), segmentRouting()...)...)
		vpp.Counts()
		counted := func(what string, want map[string]int) {
			t.Helper()
			got := vpp.Counts()
			maps.DeleteFunc(got, func(name string, _ int) bool {
				return !strings.HasPrefix(name, "sr_") || strings.HasSuffix(name, "_dump")
			})
			if !maps.Equal(got, want) {
				t.Errorf("%s: VPP was asked %v; expected %v", what, got, want)
			}
		}
		a.want(false, policyValue("fd03::1", `"srh_encapsulation":true`, `{"weight":3,"segments":["fd02::1","fd02::2"]}`, `{"segments":["fd02::4"]}`)...)
		counted("one weight, one new list, one list less", map[string]int{"sr_policy_mod": 3})
		a.want(false, globalKey, `{"encap_source_address":"fd01::2"}`)
		counted("two lists of each of two policies", map[string]int{"sr_set_encap_source": 1, "sr_policy_mod": 8})
		for key, value := range segmentsIn(t, vpp) {
			if strings.HasPrefix(key, "source of ") && value != "fd01::2" && key != "source of fd03::2" {
				t.Errorf("the %s is %s", key, value)
			}
		}
		_, err := a.declare(false, policyValue("fd03::1", `"spray_behaviour":true`, `{"segments":["fd02::1"]}`)...)
		if err == nil || !strings.Contains(err.Error(), "expected one with srh_encapsulation") {
			t.Errorf("the error is %v", err)
		}
		a.want(false, policyValue("fd03::1", `"srh_encapsulation":true`, `{"segments":["fd02::1"]}`)...)
		a.awaitState(steeringPrefix+"v4", scheduler.Configured)
	})
}

// TestSteeringOfDeletedInterfaces has somebody else delete an interface whose frames are steered.
// The next interface with its index keeps its frames.
func TestSteeringOfDeletedInterfaces(t *testing.T) {
	onEachVPP(t, func(t *testing.T, vpp *simulated.VPP) {
		a := startAgent(t, vpp.Socket)
		awaitReady(t, a)
		values := slices.Concat([]string{loopKey, loop}, policyValue("fd03::1", `"srh_encapsulation":true`, `{"segments":["fd02::1"]}`),
			steeringValue("l2", "fd03::1", `"l2_traffic":{"interface_name":"loop1"}`))
		a.want(true, values...)
		vpp.Ask(vpp.Dial(), &vppif.DeleteLoopback{SwIfIndex: 1}, &vppif.DeleteLoopbackReply{})
		a.want(true, slices.Concat([]string{secondKey, loop2}, values[2:])...)
		a.expectState(steeringPrefix+"l2", scheduler.Pending)
		if has := segmentsIn(t, vpp); has["steering loop2"] != "" {
			t.Errorf("VPP has %v", has)
		}
		a.want(true, values...)
		a.expectState(steeringPrefix+"l2", scheduler.Configured)
	})
}

// TestSegmentsOfEarlierAgents starts an agent with other values, which remembers those of the
// earlier one: VPP is left with the new ones, although it knows neither names nor owners.
func TestSegmentsOfEarlierAgents(t *testing.T) {
	onEachVPP(t, func(t *testing.T, vpp *simulated.VPP) {
		notes := notebook{}
		a := startAgentWith(t, vpp.Socket, nil, notes)
		awaitReady(t, a)
		a.want(true, append(segmentBase(), segmentRouting()...)...)
		a.stop()
		a = startAgentWith(t, vpp.Socket, nil, notes)
		awaitReady(t, a)
		a.want(true, segmentBase()...)
		if left := segmentsIn(t, vpp); len(left) > 1 || left["source"] != "::" {
			t.Errorf("left behind: %v", left)
		}
	})
}

// TestSegmentsOfOthers leaves alone what another client made, and takes over what is declared.
func TestSegmentsOfOthers(t *testing.T) {
	onEachVPP(t, func(t *testing.T, vpp *simulated.VPP) {
		c := vpp.Dial()
		vpp.Loopback(c, "")
		for _, line := range []string{"sr localsid address fd02::1 behavior end.ad oif loop0 iif loop0", "sr localsid prefix fd02::2/128 behavior end.ad oif loop0 iif loop0"} {
			vpp.Ask(c, &vlib.CliInband{Cmd: line}, &vlib.CliInbandReply{})
		}
		a := startAgent(t, vpp.Socket)
		awaitReady(t, a)
		before := segmentsIn(t, vpp)
		a.want(true, sidValue("fd02::3", `"base_end_function":{}`)...)
		a.want(true)
		for _, bad := range unlike(segmentsIn(t, vpp), before) {
			t.Error(bad)
		}
		a.want(true, slices.Concat(sidValue("fd02::1", `"base_end_function":{}`), sidValue("fd02::2", `"base_end_function":{}`))...)
		a.expectState(sidPrefix+"fd02::1", scheduler.Configured)
		a.expectState(sidPrefix+"fd02::2", scheduler.Configured)
		a.want(true)
		if left := segmentsIn(t, vpp); len(left) > 1 {
			t.Errorf("left behind: %v", left)
		}
	})
}

// TestNoEndAD has a VPP without the plugin: a value that needs it is UNIMPLEMENTED, and VPP does
// not make another function of it.
func TestNoEndAD(t *testing.T) {
	sim := simulated.StartWith(t, vppsim.Options{Without: []string{"sr_ad"}})
	a := startAgent(t, sim.Socket)
	awaitReady(t, a)
	a.want(true, segmentBase()...)
	_, err := a.declare(false, sidValue("fd02::9", `"end_function_ad":{"outgoing_interface":"loop1","incoming_interface":"loop2"}`)...)
	if !errors.Is(err, scheduler.ErrUnimplemented) {
		t.Errorf("the error is %v", err)
	}
	a.expectState(sidPrefix+"fd02::9", scheduler.Unimplemented)
	if has := segmentsIn(t, sim); len(has) != 1 {
		t.Errorf("VPP has %v", has)
	}
}

// TestTablesOfSegments has VPP make two tables of its own, which have no number. They are no VRF of anybody.
func TestTablesOfSegments(t *testing.T) {
	onEachVPP(t, func(t *testing.T, vpp *simulated.VPP) {
		a := startAgent(t, vpp.Socket)
		awaitReady(t, a)
		a.want(true, "config/vpp/srv6/v2/policy/fd12::1", `{"bsid": "fd12::1", "segment_lists": [{"weight": 1, "segments": ["fd11::9"]}]}`)
		if _, err := a.sched.Commit(t.Context(), scheduler.Txn{Refresh: true}); err != nil {
			t.Fatal(err)
		}
		has := func(key string) {
			if strings.Contains(key, "4294967295") {
				t.Errorf("there is %s", key)
			}
		}
		for _, st := range a.sched.Statuses("") {
			has(st.Key)
		}
		for _, of := range []string{l3.VRFName, l3.RouteName} {
			for key := range a.details(of) {
				has(key)
			}
		}
	})
}

// TestNoFramesOfTunnels asks for the frames of an interface that has none. VPP would die.
func TestNoFramesOfTunnels(t *testing.T) {
	onEachVPP(t, func(t *testing.T, vpp *simulated.VPP) {
		a := startAgent(t, vpp.Socket)
		awaitReady(t, a)
		a.want(true, segmentBase()...)
		values := slices.Concat([]string{"config/vpp/v2/interfaces/tunnel", `{"name":"tunnel","type":"IPIP_TUNNEL","enabled":true,"ipip":{"src_addr":"10.0.0.1","dst_addr":"10.0.0.2"}}`},
			sidValue("fd02::1", `"end_function_ad":{"outgoing_interface":"loop1","incoming_interface":"tunnel"}`))
		if _, err := a.declare(false, values...); err == nil || !strings.Contains(err.Error(), "an Ethernet interface") {
			t.Errorf("the error is %v", err)
		}
		a.expectState(values[0], scheduler.Configured)
		if has := segmentsIn(t, vpp); len(has) != 1 {
			t.Errorf("VPP has %v", has)
		}
	})
}

// TestOneSIDPerAddress declares pairs of values that VPP cannot have both. The second one is
// INVALID until the first one goes.
func TestOneSIDPerAddress(t *testing.T) {
	const ad = `"end_function_ad":{"outgoing_interface":"loop1","incoming_interface":"loop2"%s}`
	service := func(address string) string {
		return fmt.Sprintf(ad, `,"l3_service_address":"`+address+`"`)
	}
	pairs := map[string][2][]string{
		"spelling":   {sidValue("fd02::1", `"base_end_function":{}`), sidValue("fd02:0::1", `"base_end_function":{}`)},
		"table":      {sidValue("fd02::1", `"base_end_function":{}`), sidValue("FD02::1", `"installation_vrf_id":20,"base_end_function":{}`)},
		"BSIDs":      {policyValue("fd03::1", `"spray_behaviour":true`, `{"segments":["fd02::1"]}`), policyValue("fd03:0::1", `"installation_vrf_id":20`, `{"segments":["fd02::1"]}`)},
		"SID, BSID":  {sidValue("fd02::1", `"base_end_function":{}`), policyValue("fd02::1", `"spray_behaviour":true`, `{"segments":["fd02::2"]}`)},
		"traffic":    {steeringValue("a", "fd03::9", `"l3_traffic":{"prefix_address":"10.9.0.0/16"}`), steeringValue("b", "fd03::9", `"l3_traffic":{"prefix_address":"10.9.0.1/16"}`)},
		"address":    {sidValue("fd02::1", `"base_end_function":{}`), steeringValue("b", "fd03::9", `"l3_traffic":{"prefix_address":"fd02::1/128"}`)},
		"L2 traffic": {steeringValue("a", "fd03::9", `"l2_traffic":{"interface_name":"loop2"}`), sidValue("fd02::1", fmt.Sprintf(ad, ""))},
		"services":   {sidValue("fd02::1", service("10.0.0.1")), sidValue("fd02::2", service("10.0.0.2"))},
		"frames":     {sidValue("fd02::1", fmt.Sprintf(ad, "")), sidValue("fd02::2", fmt.Sprintf(ad, ""))},
		"to bridge":  {sidValue("fd02::1", fmt.Sprintf(ad, "")), {"config/vpp/l2/v2/xconnect/loop2", `{"receive_interface":"loop2","transmit_interface":"loop1"}`}},
	}
	onEachVPP(t, func(t *testing.T, vpp *simulated.VPP) {
		a := startAgent(t, vpp.Socket)
		awaitReady(t, a)
		for name, pair := range pairs {
			a.want(true, append(segmentBase(), policyValue("fd03::9", `"srh_encapsulation":true`, `{"segments":["fd02::9"]}`)...)...)
			a.want(false, pair[0]...)
			if _, err := a.declare(false, pair[1]...); !errors.Is(err, scheduler.ErrInvalid) {
				t.Errorf("%s: the error is %v", name, err)
			}
			for _, st := range a.sched.Statuses("") {
				if st.State == scheduler.Invalid {
					continue
				}
				if st.State != scheduler.Configured && st.State != scheduler.Obtained && st.Key != pair[1][0] {
					t.Errorf("%s: %s is %s: %v", name, st.Key, st.State, st.Err)
				}
			}
			a.unwant(pair[0][0])
			a.awaitState(pair[1][0], scheduler.Configured)
		}
	})
}

// segmentConfigurations are what an operator may declare one after the other.
func segmentConfigurations() map[string][]string {
	swapped := segmentRouting()
	for i := 1; i < len(swapped); i += 2 {
		swapped[i] = strings.NewReplacer("loop1", "loop2", "loop2", "loop1", "fd00::9", "fd00::7", "10.0.0", "10.0.1", `"weight":2`, `"weight":5`, `["fd02::2"]`, `["fd02::4"]`, "fd01::1", "fd01::7", "::/0", "fd09::/64", `"srh_encapsulation":true,"spray`, `"srh_encapsulation":true,"installation_vrf_id":20,"spray`).Replace(swapped[i])
	}
	return map[string][]string{
		"nothing":      nil,
		"base":         segmentBase(),
		"all":          slices.Concat(segmentBase(), segmentRouting()),
		"swapped":      slices.Concat(segmentBase(), swapped),
		"without base": segmentRouting(),
		"functions": slices.Concat(segmentBase(), sidValue("fd02::1", `"end_function_dx2":{"outgoing_interface":"loop1"}`),
			sidValue("fd02::2", `"base_end_function":{}`), sidValue("fd02::4", `"installation_vrf_id":20,"end_function_dt4":{}`),
			sidValue("fd02::9", `"base_end_function":{}`), sidValue("fd02::7", `"end_function_ad":{"outgoing_interface":"loop2","incoming_interface":"loop1"}`)),
		"other kinds": slices.Concat(segmentBase(), policyValue("fd03::1", `"spray_behaviour":true`, `{"segments":["fd02::1"]}`), sidValue("fd03::2", `"base_end_function":{}`),
			policyValue("fd02::1", `"srh_encapsulation":true`, `{"segments":["fd02::5","fd02::6"]}`), steeringValue("v4", "fd02::1", `"l2_traffic":{"interface_name":"loop2"}`),
			steeringValue("l2", "fd02::1", `"l3_traffic":{"prefix_address":"10.9.0.0/16"}`), steeringValue("v6", "fd03::1", `"l3_traffic":{"prefix_address":"fd08::/64"}`)),
		"less": slices.Concat(segmentBase(), policyValue("fd03::1", `"srh_encapsulation":true`, `{"segments":["fd02::3"]}`), policyValue("fd03::3", `"srh_encapsulation":true`, `{"segments":["fd02::3"]}`),
			steeringValue("l2", "fd03::1", `"l2_traffic":{"interface_name":"loop1"}`)),
	}
}

// TestSegmentConfigurations goes from each configuration to each other one, and back. The plan
// names the operations that are then done, and VPP has the same as if it had nothing before.
func TestSegmentConfigurations(t *testing.T) {
	onEachVPP(t, func(t *testing.T, vpp *simulated.VPP) {
		a := startAgent(t, vpp.Socket)
		awaitReady(t, a)
		all := segmentConfigurations()
		names := slices.Sorted(maps.Keys(all))
		alone := map[string]map[string]string{}
		for _, name := range names {
			a.want(true)
			a.want(true, all[name]...)
			alone[name] = segmentsIn(t, vpp)
		}
		to := func(from, name string) {
			plan, err := a.sched.Plan(t.Context(), a.replacement(all[name]...))
			if err != nil {
				t.Fatal(err)
			}
			done := a.want(true, all[name]...)
			for _, bad := range unlike(verbsOf(done.Executed), verbsOf(plan.Planned)) {
				t.Errorf("from %s to %s: done, not planned: %s", from, name, bad)
			}
			for _, bad := range unlike(segmentsIn(t, vpp), alone[name]) {
				t.Errorf("from %s to %s: %s", from, name, bad)
			}
		}
		for _, from := range names {
			for _, name := range names {
				if from != name {
					a.want(true, all[from]...)
					to(from, name)
					to(name, from)
				}
			}
		}
	})
}

// unlike returns the entries that two maps do not share.
func unlike(got, want map[string]string) (out []string) {
	all := maps.Clone(got)
	maps.Copy(all, want)
	for key := range all {
		if got[key] != want[key] {
			out = append(out, fmt.Sprintf("%s: %q; expected %q", key, got[key], want[key]))
		}
	}
	return out
}

// verbsOf returns the operations on segment routing that call a verb, by key.
func verbsOf(ops scheduler.Operations) map[string]string {
	out := map[string]string{}
	for _, op := range ops.All() {
		if strings.HasPrefix(op.Key, "config/vpp/srv6/") && !op.Noop {
			out[op.Key] += op.Verb.String() + " "
		}
	}
	return out
}

// replacement is the transaction of want with replace.
func (a *agent) replacement(keysAndValues ...string) scheduler.Txn {
	a.Helper()
	txn := scheduler.Txn{Replace: true, Refresh: true}
	for i := 0; i < len(keysAndValues); i += 2 {
		message, err := models.BuiltIn().Decode(keysAndValues[i], []byte(keysAndValues[i+1]))
		if err != nil {
			a.Fatal(err)
		}
		v, err := a.sched.Value(keysAndValues[i], message)
		if err != nil {
			a.Fatal(err)
		}
		txn.Changes = append(txn.Changes, v.Change())
	}
	return txn
}

// allConfigured checks the states of values.
func (a *agent) allConfigured(keysAndValues []string) {
	a.Helper()
	for i := 0; i < len(keysAndValues); i += 2 {
		a.expectState(keysAndValues[i], scheduler.Configured)
	}
}

// segmentsIn returns VPP's segment routing, by kind and address.
func segmentsIn(t *testing.T, vpp *simulated.VPP) map[string]string {
	t.Helper()
	c, out := vpp.Dial(), map[string]string{}
	var page vlib.CliInbandReply
	vpp.Ask(c, &vlib.CliInband{Cmd: "show sr encaps source addr"}, &page)
	_, out["source"], _ = strings.Cut(strings.TrimSpace(page.Reply), "= ")
	sids, err := conn.Dump[sr.SrLocalsidsDetails](t.Context(), c, &sr.SrLocalsidsDump{})
	if err != nil {
		t.Fatal(err)
	}
	links, err := conn.Dump[vppif.SwInterfaceDetails](t.Context(), c, &vppif.SwInterfaceDump{SwIfIndex: ^(vppif.SwInterfaceDump{}.SwIfIndex)})
	if err != nil {
		t.Fatal(err)
	}
	names := map[uint32]string{}
	for _, d := range links {
		names[uint32(d.SwIfIndex)] = d.Tag
	}
	policies, err := conn.Dump[sr.SrPoliciesWithSlIndexDetails](t.Context(), c, &sr.SrPoliciesWithSlIndexDump{})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range policies {
		var lists []string
		for _, l := range d.SidLists {
			lists = append(lists, fmt.Sprint(l.Weight, l.Sids[:l.NumSids]))
		}
		slices.Sort(lists)
		out["policy "+d.Bsid.String()] = fmt.Sprint(d.FibTable, d.IsEncap, d.IsSpray, lists)
	}
	if c.Has(&sr.SrPoliciesV2Dump{}) {
		told, err := conn.Dump[sr.SrPoliciesV2Details](t.Context(), c, &sr.SrPoliciesV2Dump{})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range told {
			out["source of "+d.Bsid.String()] = d.EncapSrc.String()
		}
	}
	steered, err := conn.Dump[sr.SrSteeringPolDetails](t.Context(), c, &sr.SrSteeringPolDump{})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range steered {
		what := fmt.Sprint("steering ", d.FibTable, " ", d.Prefix)
		if d.TrafficType == sr_types.SR_STEER_API_L2 {
			what = "steering " + names[uint32(d.SwIfIndex)]
		}
		out[what] = d.Bsid.String()
	}
	for _, d := range sids {
		// The number is that of a table or of an interface. Those of interfaces change.
		name := names[d.XconnectIfaceOrVrfTable]
		if name != "" {
			d.XconnectIfaceOrVrfTable = 0
		}
		out["SID "+d.Addr.String()] = fmt.Sprintf("%+v %s", d, name)
	}
	return out
}

// deleteSegments deletes all segment routing as another client of VPP.
func deleteSegments(t *testing.T, vpp *simulated.VPP) {
	t.Helper()
	c := vpp.Dial()
	sids, err := conn.Dump[sr.SrLocalsidsDetails](t.Context(), c, &sr.SrLocalsidsDump{})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range sids {
		vpp.Ask(c, &sr.SrLocalsidAddDel{IsDel: true, Localsid: d.Addr, FibTable: d.FibTable}, &sr.SrLocalsidAddDelReply{})
	}
	steered, err := conn.Dump[sr.SrSteeringPolDetails](t.Context(), c, &sr.SrSteeringPolDump{})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range steered {
		if d.TrafficType == sr_types.SR_STEER_API_IPV6 {
			d.Prefix.Address.Af = ip_types.ADDRESS_IP6 // VPP has taken ::/0 for an IPv4 network
		}
		q := &sr.SrSteeringAddDel{IsDel: true, TrafficType: d.TrafficType, TableID: d.FibTable, Prefix: d.Prefix, SwIfIndex: d.SwIfIndex}
		vpp.Ask(c, q, &sr.SrSteeringAddDelReply{})
	}
	policies, err := conn.Dump[sr.SrPoliciesWithSlIndexDetails](t.Context(), c, &sr.SrPoliciesWithSlIndexDump{})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range policies {
		vpp.Ask(c, &sr.SrPolicyDel{BsidAddr: d.Bsid}, &sr.SrPolicyDelReply{})
	}
	vpp.Ask(c, &sr.SrSetEncapSource{}, &sr.SrSetEncapSourceReply{})
}
