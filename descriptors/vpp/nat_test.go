package vpp_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat44_ei"
	"go.fd.io/govpp/binapi/nat_types"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/scheduler"
)

const (
	natLoopKey = "config/vpp/nat/v2/nat44-interface/loop1"
	natLoop    = `{"name":"loop1","nat_inside":true,"nat_outside":true}`
	natPoolKey = "config/vpp/nat/v2/nat44-pool/a"
	natPool    = `{"name":"a","first_ip":"10.6.0.1","last_ip":"10.6.0.3"}`
	twiceKey   = "config/vpp/nat/v2/nat44-pool/vrf/0/address/10.6.1.1"
	twicePool  = `{"first_ip":"10.6.1.1","twice_nat":true}`
)

// TestNAT declares NAT44 last, changes its kind, has another client remove items and disable it,
// restarts VPP and the agent, and removes all.
func TestNAT(t *testing.T) { onEachVPP(t, natStory) }

func natStory(t *testing.T, vpp *simulated.VPP) {
	items := []string{natLoopKey, natPoolKey, twiceKey}
	all := []string{natLoopKey, natLoop, natPoolKey, natPool, twiceKey, twicePool, loopKey, loop, keys.NAT44Global, `{"forwarding":true}`}
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	a.want(true, all[:8]...)
	for _, key := range items {
		a.expectState(key, scheduler.Pending)
	}
	a.want(false, all[8:]...)
	for _, key := range append(items, keys.NAT44Global) {
		a.expectState(key, scheduler.Configured)
	}
	a.awaitApplied()
	a.resyncsInSync(vpp)

	// The other plugin has no twice-NAT.
	a.want(false, keys.NAT44Global, `{"endpoint_independent":true}`)
	a.expectState(natLoopKey, scheduler.Configured)
	a.expectState(natPoolKey, scheduler.Configured)
	a.expectState(twiceKey, scheduler.Pending)
	a.resyncsInSync(vpp)
	a.want(false, all[8:]...)
	for _, key := range items {
		a.expectState(key, scheduler.Configured)
	}

	// Another client removes one item of each kind, and then disables the plugin.
	c := vpp.Dial()
	vpp.Ask(c, &nat44_ed.Nat44InterfaceAddDelFeature{SwIfIndex: 1, Flags: nat_types.NAT_IS_INSIDE}, &nat44_ed.Nat44InterfaceAddDelFeatureReply{})
	gone := &nat44_ed.Nat44AddDelAddressRange{FirstIPAddress: [4]byte{10, 6, 0, 2}, LastIPAddress: [4]byte{10, 6, 0, 2}}
	vpp.Ask(c, gone, &nat44_ed.Nat44AddDelAddressRangeReply{})
	a.refreshes()
	a.resyncsInSync(vpp)
	if n := natAddresses(t, c); n != 4 {
		t.Errorf("VPP has %d addresses", n)
	}
	vpp.Ask(c, &nat44_ed.Nat44EdPluginEnableDisable{}, &nat44_ed.Nat44EdPluginEnableDisableReply{})
	a.refreshes()
	for _, key := range append(items, keys.NAT44Global) {
		a.expectState(key, scheduler.Configured)
	}
	a.resyncsInSync(vpp)
	if n := natAddresses(t, c); n != 4 {
		t.Errorf("VPP has %d addresses", n)
	}

	if err := vpp.Restart(); err != nil {
		t.Fatal(err)
	}
	c = vpp.Dial()
	until(t, func() bool { return natAddresses(t, c) == 4 }, func() string { return "the addresses are not back" })
	a.awaitApplied()
	expectRestartReads(t, vpp, a, all...)

	again := startAgent(t, vpp.Socket)
	awaitReady(t, again)
	again.want(true, all...)
	again.unwant(append(items, keys.NAT44Global)...)
	var now nat44_ed.Nat44ShowRunningConfigReply
	vpp.Ask(c, &nat44_ed.Nat44ShowRunningConfig{}, &now)
	if n := natAddresses(t, c); now.Sessions != 0 || n != 0 {
		t.Errorf("left behind is %+v with %d addresses", now, n)
	}
}

// TestNATChangesInPlace changes pools and the sides of an interface. VPP is asked only for what comes and
// goes: with an address, it forgets all translations to it.
func TestNATChangesInPlace(t *testing.T) { onEachVPP(t, natChangesInPlace) }

func natChangesInPlace(t *testing.T, vpp *simulated.VPP) {
	for _, kind := range []struct{ global, addresses, sides string }{
		{`{}`, "nat44_add_del_address_range", "nat44_interface_add_del_feature"},
		{`{"endpoint_independent":true}`, "nat44_ei_add_del_address_range", "nat44_ei_interface_add_del_feature"},
	} {
		a := startAgent(t, vpp.Socket)
		awaitReady(t, a)
		a.want(true, loopKey, loop, keys.NAT44Global, kind.global, natPoolKey, natPool, natLoopKey, natLoop)
		a.awaitApplied()
		for _, to := range []struct {
			key, value, message string
			requests            int
		}{
			{natPoolKey, `{"name":"a","first_ip":"10.6.0.1","last_ip":"10.6.0.9"}`, kind.addresses, 1},
			{natPoolKey, `{"name":"a","first_ip":"10.6.0.3","last_ip":"10.6.0.4"}`, kind.addresses, 2},
			{natPoolKey, `{"name":"a","first_ip":"10.6.0.4","last_ip":"10.6.0.5"}`, kind.addresses, 2},
			{natLoopKey, `{"name":"loop1","nat_inside":true}`, kind.sides, 1},
			{natLoopKey, `{"name":"loop1","nat_outside":true}`, kind.sides, 2},
			{natLoopKey, natLoop, kind.sides, 1},
		} {
			vpp.Counts()
			record := a.want(false, to.key, to.value)
			if n := vpp.Counts()[to.message]; n != to.requests {
				t.Errorf("%s with %s: %d times %s, want %d", kind.global, to.value, n, to.message, to.requests)
			}
			for _, op := range record.Executed.All() {
				if op.Key == to.key && op.Verb != scheduler.Update {
					t.Errorf("%s with %s: executed %s, want UPDATE", kind.global, to.value, op.Verb)
				}
			}
			a.resyncsInSync(vpp)
		}
		a.stop()
	}
}

// A mapping that both kinds of NAT44 have.
const (
	pooledKey  = "config/vpp/nat/v2/dnat44/pooled"
	pooledDNAT = `{"label":"pooled","st_mappings":[{"external_ip":"10.6.0.2","external_port":80,"local_ips":[{"local_ip":"10.1.0.2","local_port":8080}]}],` +
		`"id_mappings":[{"ip_address":"10.6.0.2","port":22}]}`
)

// TestPooledDNAT has a mapping of the endpoint-independent NAT44 follow a pool with its address: it
// waits for one, and goes before the address, which VPP would otherwise keep.
func TestPooledDNAT(t *testing.T) { onEachVPP(t, pooledStory) }

func pooledStory(t *testing.T, vpp *simulated.VPP) {
	const independent = `{"endpoint_independent":true}`
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	a.want(true, pooledKey, pooledDNAT)
	a.expectState(pooledKey, scheduler.Pending)
	a.want(false, keys.NAT44Global, independent)
	a.expectState(pooledKey, scheduler.Pending)
	a.want(false, natPoolKey, natPool)
	for _, key := range []string{keys.NAT44Global, natPoolKey, pooledKey} {
		a.expectState(key, scheduler.Configured)
	}
	a.resyncsInSync(vpp)

	// A pool that changes keeps the mapping, if it has the address afterwards, too.
	a.want(false, natPoolKey, `{"name":"a","first_ip":"10.6.0.2"}`)
	a.expectState(natPoolKey, scheduler.Configured)
	a.expectState(pooledKey, scheduler.Configured)
	a.want(false, natPoolKey, `{"name":"a","first_ip":"10.6.0.1"}`)
	a.expectState(natPoolKey, scheduler.Configured)
	a.expectState(pooledKey, scheduler.Pending)
	a.want(false, keys.NAT44Global, `{}`)
	a.expectState(pooledKey, scheduler.Configured)
	a.want(false, keys.NAT44Global, independent, natPoolKey, natPool)
	a.expectState(pooledKey, scheduler.Configured)
	a.resyncsInSync(vpp)

	// Another client removes a mapping.
	c := vpp.Dial()
	vpp.Ask(c, &nat44_ei.Nat44EiAddDelStaticMapping{
		ExternalIPAddress: [4]byte{10, 6, 0, 2}, ExternalPort: 80, Protocol: 6, LocalIPAddress: [4]byte{10, 1, 0, 2}, LocalPort: 8080, ExternalSwIfIndex: ^interface_types.InterfaceIndex(0),
	}, &nat44_ei.Nat44EiAddDelStaticMappingReply{})
	a.refreshes()
	a.resyncsInSync(vpp)
	if n := eiMappings(t, c); n != 1 {
		t.Errorf("VPP has %d mappings", n)
	}
	if err := vpp.Restart(); err != nil {
		t.Fatal(err)
	}
	c = vpp.Dial()
	until(t, func() bool { return eiMappings(t, c) == 1 }, func() string { return "the mapping is not back" })
	a.awaitApplied()
	expectRestartReads(t, vpp, a, keys.NAT44Global, independent, natPoolKey, natPool, pooledKey, pooledDNAT)
}

// TestMappingsOfOthers has other programs make mappings of the endpoint-independent NAT44. They stay.
// One with a declared label and no owner, as earlier releases wrote it, is this agent's.
func TestMappingsOfOthers(t *testing.T) { onEachVPP(t, mappingsOfOthers) }

func mappingsOfOthers(t *testing.T, vpp *simulated.VPP) {
	a := startAgentKnowing(t, vpp.Socket, memories{label: "vpp1"})
	awaitReady(t, a)
	values := []string{keys.NAT44Global, `{"endpoint_independent":true}`, natPoolKey, natPool}
	a.want(true, values...)
	c := vpp.Dial()
	for i, tag := range []string{"pooled", "other", "vpp2." + installation + "@pooled"} {
		vpp.Ask(c, &nat44_ei.Nat44EiAddDelStaticMapping{
			IsAdd: true, Tag: tag, ExternalIPAddress: [4]byte{10, 6, 0, 2}, ExternalPort: uint16(80 + i), Protocol: 6,
			LocalIPAddress: [4]byte{10, 1, 0, 2}, LocalPort: uint16(8080 + i), ExternalSwIfIndex: ^interface_types.InterfaceIndex(0),
		}, &nat44_ei.Nat44EiAddDelStaticMappingReply{})
		vpp.Ask(c, &nat44_ei.Nat44EiAddDelIdentityMapping{
			IsAdd: true, Tag: tag, IPAddress: [4]byte{10, 6, 0, 2}, Port: uint16(22 + i), Protocol: 6, SwIfIndex: ^interface_types.InterfaceIndex(0),
		}, &nat44_ei.Nat44EiAddDelIdentityMappingReply{})
	}
	values = append(values, pooledKey, pooledDNAT, webDNATKey,
		`{"label":"web","st_mappings":[{"external_ip":"10.6.0.3","external_port":80,"local_ips":[{"local_ip":"10.1.0.3","local_port":80}]}],"id_mappings":[{"ip_address":"10.6.0.3","port":22}]}`)
	for range 2 {
		a.want(true, values...)
		var tags []string
		for _, d := range listed[nat44_ei.Nat44EiStaticMappingDetails](t, c, &nat44_ei.Nat44EiStaticMappingDump{}) {
			tags = append(tags, d.Tag)
		}
		for _, d := range listed[nat44_ei.Nat44EiIdentityMappingDetails](t, c, &nat44_ei.Nat44EiIdentityMappingDump{}) {
			tags = append(tags, d.Tag)
		}
		slices.Sort(tags)
		ours, others := "vpp1."+installation+"@web", "vpp2."+installation+"@pooled"
		if want := []string{"other", "other", "pooled", "pooled", ours, ours, others, others}; !slices.Equal(tags, want) {
			t.Fatalf("VPP has the tags %q, want %q", tags, want)
		}
	}
	a.resyncsInSync(vpp)
	a.unwant(pooledKey, webDNATKey)
	if n := eiMappings(t, c); n != 2 {
		t.Errorf("VPP has %d mappings, want the two of others", n)
	}
}

// eiMappings returns the number of static mappings of the endpoint-independent NAT44.
func eiMappings(t *testing.T, c *conn.Conn) int {
	t.Helper()
	all, err := conn.Dump[nat44_ei.Nat44EiStaticMappingDetails](t.Context(), c, &nat44_ei.Nat44EiStaticMappingDump{})
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

const (
	webDNATKey = "config/vpp/nat/v2/dnat44/web"
	webDNAT    = `{"label":"web","st_mappings":[{"external_ip":"10.6.2.1","external_port":80,"local_ips":[{"local_ip":"10.1.0.2","local_port":8080}]},` +
		`{"external_interface":"loop1","external_port":81,"twice_nat":"ENABLED","twice_nat_pool_ip":"10.6.1.1","local_ips":[{"local_ip":"10.1.0.2","local_port":81}]},` +
		`{"external_ip":"10.6.2.1","external_port":82,"session_affinity":30,"local_ips":[{"local_ip":"10.1.0.2","local_port":82},{"local_ip":"10.1.0.3","local_port":82}]}],` +
		`"id_mappings":[{"ip_address":"10.6.2.2"}]}`
)

// TestMappings declares mappings before their pool, has another client remove one, restarts VPP
// and the agent, and removes all.
func TestMappings(t *testing.T) { onEachVPP(t, mappingsStory) }

func mappingsStory(t *testing.T, vpp *simulated.VPP) {
	all := []string{webDNATKey, webDNAT, loopKey, `{"name":"loop1","type":"SOFTWARE_LOOPBACK","enabled":true,"ip_addresses":["10.1.0.1/24"]}`, keys.NAT44Global, `{}`, twiceKey, twicePool}
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	a.want(true, all[:6]...)
	a.expectState(webDNATKey, scheduler.Pending)
	a.want(false, all[6:]...)
	a.expectState(webDNATKey, scheduler.Configured)
	a.awaitApplied()
	a.resyncsInSync(vpp)

	// One of two values has an external side.
	const other = "config/vpp/nat/v2/dnat44/other"
	_, err := a.declare(false, other, `{"label":"other","st_mappings":[{"external_ip":"10.6.2.1","external_port":80,"local_ips":[{"local_ip":"10.1.0.9","local_port":1}]}]}`)
	if !errors.Is(err, scheduler.ErrInvalid) {
		t.Errorf("the error is %v", err)
	}
	a.expectState(other, scheduler.Invalid)
	a.unwant(other)

	c := vpp.Dial()
	gone := &nat44_ed.Nat44AddDelStaticMapping{
		Flags: nat_types.NAT_IS_OUT2IN_ONLY, ExternalIPAddress: [4]byte{10, 6, 2, 1}, ExternalPort: 80, Protocol: 6, LocalIPAddress: [4]byte{10, 1, 0, 2},
		LocalPort: 8080, ExternalSwIfIndex: ^(nat44_ed.Nat44AddDelStaticMapping{}.ExternalSwIfIndex),
	}
	vpp.Ask(c, gone, &nat44_ed.Nat44AddDelStaticMappingReply{})
	vpp.Counts()
	a.refreshes()
	if n := vpp.Counts()["nat44_add_del_static_mapping"]; n != 1 {
		t.Errorf("VPP was asked %d times for static mappings; expected one", n)
	}
	a.resyncsInSync(vpp)
	if n := natMappings(t, c); n != 3 {
		t.Errorf("VPP has %d static mappings", n)
	}

	if err := vpp.Restart(); err != nil {
		t.Fatal(err)
	}
	c = vpp.Dial()
	until(t, func() bool { return natMappings(t, c) == 3 }, func() string { return "the mappings are not back" })
	a.awaitApplied()
	expectRestartReads(t, vpp, a, all...)

	again := startAgent(t, vpp.Socket)
	awaitReady(t, again)
	again.want(true, all[2:]...)
	if n := natMappings(t, c); n != 0 {
		t.Errorf("left behind are %d static mappings", n)
	}
}

// natMappings returns the number of static mappings: one of an interface's address counts twice.
func natMappings(t *testing.T, c *conn.Conn) int {
	t.Helper()
	all, err := conn.Dump[nat44_ed.Nat44StaticMappingDetails](t.Context(), c, &nat44_ed.Nat44StaticMappingDump{})
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// natAddresses returns the number of addresses of endpoint-dependent NAT44.
func natAddresses(t *testing.T, c *conn.Conn) int {
	t.Helper()
	all, err := conn.Dump[nat44_ed.Nat44AddressDetails](t.Context(), c, &nat44_ed.Nat44AddressDump{})
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// refreshes reads VPP back, and restores what another client has changed.
func (a *agent) refreshes() {
	a.Helper()
	if _, err := a.sched.Commit(a.Context(), scheduler.Txn{Refresh: true}); err != nil {
		a.Fatal(err)
	}
}

// TestOneOfTwoTranslates declares pairs of which VPP can have one: it is asked for that alone, and
// for the other as soon as that goes.
func TestOneOfTwoTranslates(t *testing.T) {
	onEachVPP(t, func(t *testing.T, vpp *simulated.VPP) {
		a := startAgent(t, vpp.Socket)
		awaitReady(t, a)
		a.want(true, loopKey, loop, keys.NAT44Global, `{"nat_interfaces":[{"name":"loop1"}],"address_pool":[{"address":"10.6.0.2"}]}`)
		listed, address := keys.NATInterface("loop1", false), keys.NATAddress("10.6.0.2", false)
		a.expectState(listed, scheduler.Configured)
		_, err := a.declare(false, natLoopKey, `{"name":"loop1","output_feature":true}`, natPoolKey, natPool)
		if !errors.Is(err, scheduler.ErrInvalid) {
			t.Errorf("the error is %v", err)
		}
		a.awaitState(natLoopKey, scheduler.Configured) // a value of its own wins
		a.expectState(listed, scheduler.Invalid)
		a.expectState(natPoolKey, scheduler.Invalid)
		a.expectState(address, scheduler.Configured)
		a.unwant(natLoopKey)
		a.awaitState(listed, scheduler.Configured)
		a.want(false, keys.NAT44Global, `{}`)
		a.awaitState(natPoolKey, scheduler.Configured)
		a.awaitApplied()
		a.resyncsInSync(vpp)
	})
}

// TestAddressMovesBetweenLists has an address of the endpoint-independent NAT44 declared in the value
// of NAT44 and in pools of their own, with a mapping that needs it. A resync follows each of them
// by each other one: in the same agent, in one that remembers what it has applied, and in one that
// does not.
func TestAddressMovesBetweenLists(t *testing.T) { onEachVPP(t, addressMoves) }

func addressMoves(t *testing.T, vpp *simulated.VPP) {
	const independent = `{"endpoint_independent":true}`
	listed := func(addresses ...string) string {
		return `{"endpoint_independent":true,"address_pool":[{"address":"` + strings.Join(addresses, `"},{"address":"`) + `"}]}`
	}
	configs := []configuration{
		{keys.NAT44Global, listed("10.6.0.2"), pooledKey, pooledDNAT},
		{keys.NAT44Global, listed("10.6.0.1", "10.6.0.2", "10.6.0.3"), pooledKey, pooledDNAT},
		{keys.NAT44Global, independent, natPoolKey, natPool, pooledKey, pooledDNAT},
		{keys.NAT44Global, independent, natPoolKey, `{"name":"a","first_ip":"10.6.0.2"}`, pooledKey, pooledDNAT},
		{keys.NAT44Global, listed("10.6.0.9"), natPoolKey, natPool, pooledKey, pooledDNAT},
	}
	known := memories{deaths: notebook{}, applied: notebook{}, settings: notebook{}}
	a := startAgentKnowing(t, vpp.Socket, known)
	awaitReady(t, a)
	follow := func(what string, from, to configuration) {
		t.Helper()
		if record, err := a.declare(true, to...); err != nil {
			t.Errorf("%s: %q follow %q: %v: %q", what, to, from, err, operations(record.Executed))
		}
		a.allConfigured(to)
		resync, err := a.sched.Commit(t.Context(), scheduler.Txn{Refresh: true})
		if err != nil || resync.Executed.Len() > 0 {
			t.Errorf("%s: %q follow %q: then a resync does %q, %v", what, to, from, operations(resync.Executed), err)
		}
		if n := eiMappings(t, vpp.Dial()); n != 1 {
			t.Errorf("%s: %q follow %q: VPP has %d mappings", what, to, from, n)
		}
	}
	// A way by which each of them follows each, itself too.
	var way []configuration
	for i, one := range configs {
		way = append(way, one, one)
		for _, later := range configs[i+1:] {
			way = append(way, later, one)
		}
	}
	from := configuration(nil)
	for _, next := range []struct {
		what  string
		anew  bool // another agent each time
		knows memories
	}{
		{what: "the same agent"},
		{"an agent that remembers", true, known},
		{"an agent that does not remember", true, memories{}},
	} {
		for _, to := range way {
			if next.anew {
				a.stop()
				a = startAgentKnowing(t, vpp.Socket, next.knows)
				awaitReady(t, a)
			}
			follow(next.what, from, to)
			from = to
		}
	}
}
