package vpp_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/descriptors/netalloc"
	"github.com/keyplane/keyplane/descriptors/vpp"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/descriptors/vpp/punt"
	"github.com/keyplane/keyplane/internal/scratch"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/vppsim"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/limits"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/txnlog"
)

// TestMain gives a real VPP a network of its own.
func TestMain(m *testing.M) { os.Exit(scratch.Main(m.Run)) }

// an agent is a scheduler with the VPP descriptors, on a simulated VPP.
type agent struct {
	*testing.T
	sched  *scheduler.Scheduler
	states *vpp.States

	sockets *punt.Sockets
	stop    func()
}

func startSim(t *testing.T) (*vppsim.Sim, string) {
	t.Helper()
	return startRelease(t, "")
}

func startRelease(t *testing.T, release string) (*vppsim.Sim, string) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "api.sock")
	sim, err := vppsim.New(vppsim.Options{Socket: socket, Release: release})
	if err == nil {
		err = sim.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Kill)
	return sim, socket
}

// onEachRelease tells a story to a simulated VPP of each release.
func onEachRelease(t *testing.T, story func(t *testing.T, sim *vppsim.Sim, socket string)) {
	for _, release := range simulated.Releases() {
		t.Run(release, func(t *testing.T) {
			vpp := simulated.Start(t, release)
			testkit.Need(t, "a simulated VPP, which can be told what to do", vpp.Sim != nil)
			story(t, vpp.Sim, vpp.Socket)
		})
	}
}

// onEachVPP tells a story to a simulated VPP of each release, or to the real one.
func onEachVPP(t *testing.T, story func(t *testing.T, vpp *simulated.VPP)) {
	for _, release := range simulated.Releases() {
		t.Run(release, func(t *testing.T) {
			vpp := simulated.Start(t, release)
			vpp.Watch()
			story(t, vpp)
		})
	}
}

// A shown VPP tells what it has.
type shown interface {
	Show(page string) string
	Counts() map[string]int
}

func startAgent(t *testing.T, socket string) *agent {
	t.Helper()
	return startAgentWith(t, socket, nil, nil)
}

// startAgentWith starts an agent that remembers what VPP has died of, and what it has applied.
func startAgentWith(t *testing.T, socket string, deaths, applied scheduler.Memory) *agent {
	t.Helper()
	return startAgentKnowing(t, socket, memories{deaths: deaths, applied: applied})
}

// installation is that of agents that sign their tags.
const installation = "0123456789abcdef"

// memories are those of an agent; nil: none.
type memories struct {
	deaths, applied, settings scheduler.Memory
	quiet                     bool   // no log of transactions, which grows with a long test
	label                     string // of an agent that signs its tags
}

// quiet are empty memories of an agent that logs no transactions.
func quiet() memories {
	return memories{deaths: notebook{}, applied: notebook{}, settings: notebook{}, quiet: true}
}

func startAgentKnowing(t *testing.T, socket string, known memories) *agent {
	t.Helper()
	o := scheduler.Options{
		FieldChecks: limits.Validation, TransactionLog: txnlog.New(txnlog.Options{Out: testkit.Log(t), Full: true}),
		Log: slog.New(slog.NewTextHandler(testkit.Log(t), nil)), Memory: known.applied,
	}
	if known.quiet {
		o.TransactionLog, o.Log = nil, slog.New(slog.DiscardHandler)
	}
	s := scheduler.New(o)
	book, err := netalloc.Register(s)
	if err != nil {
		t.Fatal(err)
	}
	plugin, err := vpp.Register(s, vpp.Options{
		Log: o.Log, Label: known.label, Installation: installation,
		// A VPP that answers late, because the machine is busy, is not one that hangs.
		Connection: vpp.Config{Socket: socket, StatsSocket: filepath.Join(filepath.Dir(socket), "stats.sock"), ProbeTimeout: testkit.Patience}, Memory: known.deaths, Settings: known.settings, Allocations: book,
	})
	if err != nil {
		t.Fatal(err)
	}
	a := &agent{T: t, sched: s, states: plugin.States(), sockets: plugin.Sockets()}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- s.Run(ctx) }()
	go func() { ended <- plugin.Run(ctx) }()
	a.stop = func() {
		cancel()
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		a.stop = func() {}
	}
	t.Cleanup(func() { a.stop() })
	return a
}

// want declares values, as keys and JSON by turns.
func (a *agent) want(replace bool, keysAndValues ...string) *scheduler.Record {
	a.Helper()
	record, err := a.declare(replace, keysAndValues...)
	if err != nil {
		a.Fatal(err)
	}
	return record
}

// declare is want where verbs may fail.
func (a *agent) declare(replace bool, keysAndValues ...string) (*scheduler.Record, error) {
	a.Helper()
	return a.sched.Commit(a.Context(), a.txn(replace, keysAndValues...))
}

// txn is the transaction that declares values.
func (a *agent) txn(replace bool, keysAndValues ...string) scheduler.Txn {
	a.Helper()
	txn := scheduler.Txn{Replace: replace, Refresh: replace} // as at the start of the agent
	for i := 0; i < len(keysAndValues); i += 2 {
		key := keysAndValues[i]
		message, err := models.BuiltIn().Decode(key, []byte(keysAndValues[i+1]))
		if err != nil {
			a.Fatal(err)
		}
		v, err := a.sched.Value(key, message)
		if err != nil {
			a.Fatal(err)
		}
		txn.Changes = append(txn.Changes, v.Change())
	}
	return txn
}

// awaits waits until a page of the simulated VPP has all these lines.
func awaits(t *testing.T, sim shown, page string, lines ...string) {
	t.Helper()
	missing := ""
	until(t, func() bool {
		text := strings.Join(strings.Fields(sim.Show(page)), " ")
		for _, missing = range lines {
			if !strings.Contains(text, missing) {
				return false
			}
		}
		return true
	}, func() string { return page + " has no " + missing + ":\n" + sim.Show(page) })
}

// until waits for a condition that nobody tells of.
func until(t *testing.T, holds func() bool, otherwise func() string) {
	t.Helper()
	if !testkit.Until(holds) {
		t.Fatal(otherwise())
	}
}

func network() []string {
	return []string{
		"config/vpp/v2/interfaces/loop1", `{"name":"loop1","type":"SOFTWARE_LOOPBACK","enabled":true,"vrf":5,"ip_addresses":["10.1.0.1/24"],"mtu":1500}`,
		"config/vpp/v2/arp/loop1/10.1.0.9", `{"interface":"loop1","ip_address":"10.1.0.9","phys_address":"02:00:00:00:00:09","static":true}`,
		"config/vpp/v2/teib/loop1/peer/10.1.0.7", `{"interface":"loop1","peer_addr":"10.1.0.7","next_hop_addr":"10.9.0.7"}`,
		"config/vpp/v2/l3xconnect/loop1/protocol/IPV4", `{"interface":"loop1","paths":[{"outgoing_interface":"loop1","next_hop_addr":"10.1.0.3"}]}`,
		"config/vpp/v2/proxyarp-global", `{"interfaces":[{"name":"loop1"}],"ranges":[{"first_ip_addr":"10.1.0.10","last_ip_addr":"10.1.0.20","vrf_id":5}]}`,
		"config/vpp/v2/vrrp/loop1/vrid/7", `{"interface":"loop1","vr_id":7,"priority":100,"interval":1000,"ip_addresses":["10.1.0.5"],"enabled":true}`,
		"config/vpp/v2/dhcp-proxy/IPv4/rx-vrf/5", `{"source_ip_address":"10.1.0.1","rx_vrf_id":5,"servers":[{"vrf_id":5,"ip_address":"10.1.0.8"}]}`,
		"config/vpp/v2/vrf-table/id/5/protocol/IPV4", `{"id":5,"label":"blue"}`,
		"config/vpp/v2/route/if/loop1/vrf/5/dst/10.2.0.0/16/gw/10.1.0.2", `{"vrf_id":5,"dst_network":"10.2.0.0/16","next_hop_addr":"10.1.0.2","outgoing_interface":"loop1"}`,
		webKey, webList, hostsKey, hosts,
		"config/vpp/stn/v2/rule/loop1/ip/10.1.0.1", `{"interface":"loop1","ip_address":"10.1.0.1"}`,
		"config/vpp/srv6/v2/srv6-global", `{"encap_source_address":"fd01::1"}`,
		"config/vpp/srv6/v2/localsid/fd01::2", `{"sid":"fd01::2","end_function_dx4":{"outgoing_interface":"loop1","next_hop":"10.1.0.4"}}`,
		"config/vpp/srv6/v2/localsid/fd01::3", `{"sid":"fd01::3","end_function_ad":{"outgoing_interface":"loop1","incoming_interface":"loop1","l3_service_address":"10.1.0.6"}}`,
		"config/vpp/v2/ipredirect/l3/IPV4/tx/loop1", `{"l3_protocol":"IPV4","tx_interface":"loop1","next_hop":"10.1.0.5"}`,
		"config/vpp/ipfix/v2/ipfix", `{"collector":{"address":"10.1.0.6"},"source_address":"10.1.0.1","vrf_id":5}`,
		"config/vpp/ipfix/v2/flowprobe-params", `{"active_timer":10,"passive_timer":60,"record_l3":true}`,
		"config/vpp/ipfix/v2/flowprobe-feature/loop1", `{"interface":"loop1","ip4":true}`,
		interfacesPrefix + "natsub", `{"name":"natsub","type":"SUB_INTERFACE","enabled":true,"sub":{"parent_name":"loop1","sub_id":99}}`,
		"config/vpp/nat/v2/nat44-global", `{"forwarding":true,"virtual_reassembly":{"timeout":2},"nat_interfaces":[{"name":"loop1","is_inside":true},{"name":"loop1"}],"address_pool":[{"address":"10.6.0.1","vrf_id":5}]}`,
		"config/vpp/nat/v2/nat44-interface/natsub", `{"name":"natsub","output_feature":true}`,
		"config/vpp/nat/v2/dnat44/web", `{"label":"web","st_mappings":[{"external_ip":"10.6.2.1","external_port":80,"local_ips":[{"vrf_id":5,"local_ip":"10.1.0.2","local_port":8080}],"twice_nat":"ENABLED","twice_nat_pool_ip":"10.6.1.2"},{"external_interface":"loop1","external_port":81,"local_ips":[{"local_ip":"10.1.0.2","local_port":81}]},{"external_ip":"10.6.2.1","external_port":82,"session_affinity":30,"local_ips":[{"local_ip":"10.1.0.2","local_port":82},{"local_ip":"10.1.0.3","local_port":82}]}],"id_mappings":[{"ip_address":"10.6.2.2"}]}`,
		"config/vpp/nat/v2/nat44-pool/plain", `{"name":"plain","first_ip":"10.6.0.2","last_ip":"10.6.0.4"}`,
		"config/vpp/nat/v2/nat44-pool/twice", `{"name":"twice","first_ip":"10.6.1.1","last_ip":"10.6.1.9","twice_nat":true}`,
		"config/vpp/srv6/v2/policy/fd01::4", `{"bsid":"fd01::4","srh_encapsulation":true,"segment_lists":[{"weight":2,"segments":["fd01::5","fd01::6"]},{"segments":["fd01::7"]}]}`,
		"config/vpp/srv6/v2/steering/blue", `{"name":"blue","policy_bsid":"FD01:0::4","l3_traffic":{"installation_vrf_id":5,"prefix_address":"10.6.0.0/16"}}`,
		"config/vpp/abfs/v2/abf/1", `{"index":1,"acl_name":"web","attached_interfaces":[{"input_interface":"loop1"}],"forwarding_paths":[{"interface_name":"loop1","next_hop_ip":"10.1.0.4"}]}`,
		"config/vpp/ipsec/v2/sa/1", association(1),
		"config/vpp/v2/interfaces/ipip1", `{"name":"ipip1","type":"IPIP_TUNNEL","enabled":true,"ipip":{"src_addr":"10.9.0.1","dst_addr":"10.9.0.2"}}`,
		"config/vpp/ipsec/v2/tun-protect/ipip1", `{"interface":"ipip1","sa_out":[1],"sa_in":[2]}`,
		"config/vpp/ipsec/v2/sa/2", association(2),
		"config/vpp/ipsec/v2/spd/7", `{"index":7,"interfaces":[{"name":"loop1"}]}`,
		"config/vpp/ipsec/v2/sp/spd/7/sa/1/outbound/local-addresses/10.1.0.0-10.1.0.255/remote-addresses/10.3.0.0-",
		`{"spd_index":7,"sa_index":1,"is_outbound":true,"local_addr_start":"10.1.0.0","local_addr_stop":"10.1.0.255","remote_addr_start":"10.3.0.0","action":"PROTECT"}`,
	}
}

// association is a security association in transport mode.
func association(number int) string {
	return fmt.Sprintf(`{"index":%d,"spi":%d,"protocol":"ESP","crypto_alg":"AES_GCM_128","crypto_key":"000102030405060708090a0b0c0d0e0f","crypto_salt":7}`, number, 1000+number)
}

func TestAllComesAndComesBack(t *testing.T) { onEachVPP(t, allComesAndComesBack) }

func allComesAndComesBack(t *testing.T, vpp *simulated.VPP) {
	a := startAgent(t, vpp.Socket)
	a.want(false, network()...)
	awaits(t, vpp, "show interface", "loop0 loop1 up 5 10.1.0.1/24")
	awaits(t, vpp, "show ip fib", "10.2.0.0/16 via 10.1.0.2 loop0 weight 1")

	for i := 0; i < len(network()); i += 2 {
		a.awaitState(network()[i], scheduler.Configured)
	}

	if err := vpp.Restart(); err != nil {
		t.Fatal(err)
	}
	awaits(t, vpp, "show interface", "loop0 loop1 up 5 10.1.0.1/24")
	awaits(t, vpp, "show ip fib", "10.2.0.0/16 via 10.1.0.2 loop0 weight 1")

	a.want(true)
	if text := vpp.Show("show interface"); strings.Contains(text, "loop1") {
		t.Errorf("what nobody declares stands:\n%s", text)
	}
}

func TestRestartOfTheAgentDoesNothing(t *testing.T) { onEachVPP(t, restartOfTheAgentDoesNothing) }

func restartOfTheAgentDoesNothing(t *testing.T, vpp *simulated.VPP) {
	a := startAgent(t, vpp.Socket)
	a.want(true, network()...)
	awaits(t, vpp, "show ip fib", "10.2.0.0/16 via 10.1.0.2 loop0 weight 1")
	a.awaitApplied()
	a.stop()
	vpp.Counts()
	again := startAgent(t, vpp.Socket)
	awaitReady(t, again) // before, nothing could be done
	again.want(true, network()...)
	awaits(t, vpp, "show ip fib", "10.2.0.0/16 via 10.1.0.2 loop0 weight 1")
	expectOnlyReads(t, vpp)
}

// awaitApplied waits until every value and part is applied. Some wait for events of VPP, which come
// after the transaction that declared them. A transaction that is running may not have come to
// all parts yet, so awaitApplied commits one that waits for all others.
func (a *agent) awaitApplied() {
	a.Helper()
	if _, err := a.sched.Commit(a.Context(), scheduler.Txn{Refresh: true}); err != nil {
		a.Fatal(err)
	}
	waits := ""
	until(a.T, func() bool {
		for _, st := range a.sched.Statuses("") {
			if st.State != scheduler.Configured && st.State != scheduler.Obtained {
				waits = fmt.Sprintf("%s is %s: %v %v", st.Key, st.State, st.Details, st.Err)
				return false
			}
		}
		return true
	}, func() string { return waits })
}

// expectOnlyReads checks that nothing was asked of a VPP since its counts
// were last taken that changes it. Something must have been asked.
func expectOnlyReads(t *testing.T, sim shown) {
	t.Helper()
	counts := sim.Counts()
	if len(counts) == 0 {
		t.Error("nothing was asked for, so nothing was read back")
	}
	expectNoWrites(t, counts)
}

// expectNoWrites checks that none of the messages that were counted changes a VPP.
func expectNoWrites(t *testing.T, counts map[string]int) {
	t.Helper()
	for name := range counts {
		if !onlyReads(name) {
			t.Errorf("%s was asked for", name)
		}
	}
}

// onlyReads reports whether a message, as counted, changes nothing in a VPP. Descriptors use the
// command line to show only.
func onlyReads(name string) bool {
	switch name {
	case "control_ping", "show_version", "show_threads", "want_interface_events", "want_wireguard_peer_events", "cli_inband show":
		return true
	}
	return strings.HasSuffix(name, "_dump") || strings.HasSuffix(name, "_get") || strings.Contains(name, "_get_") || strings.HasSuffix(name, "_show_running_config")
}

// expectRestartReads fails if an agent in a's place, with the same declared, does anything but read.
func expectRestartReads(t *testing.T, vpp *simulated.VPP, a *agent, all ...string) {
	t.Helper()
	a.stop()
	vpp.Counts()
	again := startAgent(t, vpp.Socket)
	awaitReady(t, again)
	again.want(true, all...)
	expectOnlyReads(t, vpp)
}

// awaitReady waits until what stands in VPP was read.
func awaitReady(t *testing.T, a *agent) {
	t.Helper()
	until(t, func() bool { return len(a.sched.History()) > 0 }, func() string { return "VPP is not connected" })
}
