package walk

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.fd.io/govpp"
	binif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/core"
	"google.golang.org/protobuf/proto"

	_ "github.com/keyplane/keyplane/agent"
	"github.com/keyplane/keyplane/client"
	"github.com/keyplane/keyplane/internal/scratch"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/vppsim"
	"github.com/keyplane/keyplane/proto/ligato/kvscheduler"
	linuxif "github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	vppif "github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	vppl3 "github.com/keyplane/keyplane/proto/ligato/vpp/l3"
)

var (
	table = flag.String("walk.table", "", "write the table of figures into this `file`, between its marks")
	lists = flag.String("walk.lists", "", "write the functions of each event into a file of this `folder`")
)

func TestMain(m *testing.M) { os.Exit(scratch.Main(m.Run)) }

// checkVariable has the figures compared with those of docs/walk.md. go test keeps no result of a test with flags of its own.
const checkVariable = "KEYPLANE_WALK"

// runs is how often each event is measured. The smallest counts: other work of the agent falls into some.
const runs = 5

// TestWalk compares what events run with the figures of docs/walk.md.
func TestWalk(t *testing.T) {
	if os.Getenv(checkVariable) == "" && *table == "" {
		t.Skip("SKIPPED: make walk runs this test; it builds the agent with counters, which takes minutes")
	}
	// go test keeps the result while what the test imports and opens is the same, so it imports the agent that it builds.
	_, err := os.Stat("walked/main.go")
	must(t, err)
	testkit.Need(t, "scratch namespaces (run as root, or allow user namespaces)", scratch.Inside())
	r := begin(t)
	<-time.After(5 * time.Second) // the end of the beginning
	idle := r.agent.executed(t, func() { <-time.After(6 * time.Second) })
	text := "| one event | functions | files | packages | of the functions: scheduler | orchestrator |\n|---|---|---|---|---|---|\n"
	for _, journey := range r.journeys() {
		var events []map[function]bool
		for i := range runs {
			journey.prepare(i)
			<-time.After(rest)
			events = append(events, r.agent.executed(t, func() { journey.event(i) }))
		}
		functions, s := least(idle, events)
		if *lists != "" {
			if err := list(filepath.Join(*lists, journey.name+".txt"), functions); err != nil {
				t.Fatal(err)
			}
		}
		text += fmt.Sprintf("| %s | %d | %d | %d | %d | %d |\n", journey.name, s.functions, s.files, s.packages, s.scheduler, s.orchestrator)
	}
	t.Log("\n" + text)
	if *table != "" {
		write(t, *table, text)
		return
	}
	compare(t, "../../docs/walk.md", text)
}

// A journey is an event, and what must be there before it.
type journey struct {
	name    string
	prepare func(i int)
	event   func(i int) // returns when the event has had its effect
}

func (r *rig) journeys() []journey {
	nothing := func(int) {}
	network := func(i int) string { return fmt.Sprintf("10.2.%d.0/24", i) }
	return []journey{
		{"a put into etcd, to a route of Linux", nothing, func(i int) {
			r.put("config/linux/l3/v2/route/"+network(i)+"/veth1", fmt.Sprintf(`{"outgoing_interface":"veth1","dst_network":%q}`, network(i)))
			r.until("the route", func() bool { return r.hasRoute(network(i)) })
		}},
		{"a change by gRPC, to a route of VPP", nothing, func(i int) {
			route := &vppl3.Route{DstNetwork: network(i), NextHopAddr: "10.1.0.9", OutgoingInterface: "loop1"}
			if err := r.client.Put(r.t.Context(), route); err != nil {
				r.t.Fatal(err)
			}
		}},
		{"a loopback of VPP that somebody deleted, back with all that was on it", nothing, func(int) {
			r.deleteLoopback("loop1")
			r.until("the loopback", func() bool { return r.loopback("loop1") != 0 && r.settled() })
		}},
		{"a route of Linux that somebody deleted, back", nothing, func(int) {
			if err := netlink.RouteDel(r.route(network(0))); err != nil {
				r.t.Fatal(err)
			}
			r.until("the route", func() bool { return r.hasRoute(network(0)) })
		}},
	}
}

// A rig is an agent, with an etcd, a simulated VPP and the kernel of a network namespace.
type rig struct {
	t      *testing.T
	agent  *counters
	etcd   *clientv3.Client
	client client.Client
	vpp    *core.Connection
}

// declared is the network that stands before all events.
func declared() []proto.Message {
	const loop, neighbour = "loop1", "10.1.0.2"
	return []proto.Message{
		&linuxif.Interface{
			Name: "veth1", Type: linuxif.Interface_VETH, Enabled: true, IpAddresses: []string{"10.10.0.1/24"},
			Link: &linuxif.Interface_Veth{Veth: &linuxif.VethLink{PeerIfName: "veth2"}},
		},
		&linuxif.Interface{Name: "veth2", Type: linuxif.Interface_VETH, Enabled: true, Link: &linuxif.Interface_Veth{Veth: &linuxif.VethLink{PeerIfName: "veth1"}}},
		&vppif.Interface{Name: loop, Type: vppif.Interface_SOFTWARE_LOOPBACK, Enabled: true, IpAddresses: []string{"10.1.0.1/24"}},
		&vppl3.Route{DstNetwork: "10.3.0.0/16", NextHopAddr: neighbour, OutgoingInterface: loop},
		&vppl3.ARPEntry{Interface: loop, IpAddress: neighbour, PhysAddress: "02:00:00:00:02:02", Static: true},
	}
}

// begin starts an agent until the test ends, and waits until all that is declared is there.
func begin(t *testing.T) *rig {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	server := testkit.StartEtcd(t, testkit.EtcdOptions{})
	sim, err := vppsim.New(vppsim.Options{Socket: in("api.sock")})
	must(t, err)
	must(t, sim.Start())
	t.Cleanup(sim.Kill)
	for name, text := range map[string]string{
		"govpp.conf": "binapi-socket-path: " + in("api.sock"), "etcd.conf": "endpoints: [" + server.Addr + "]",
		"orchestrator.conf": "state-dir: " + in("state"),
	} {
		must(t, os.WriteFile(in(name), []byte(text+"\n"), 0o600))
	}
	r := &rig{t: t, agent: start(t, "-config-dir="+dir, "-http-port=0", "-grpc-port=0", "-socket="+in("socket"))}
	r.etcd, err = clientv3.New(clientv3.Config{Endpoints: []string{server.Endpoint}})
	must(t, err)
	t.Cleanup(func() { must(t, r.etcd.Close()) })
	conn, err := client.Dial(t.Context(), client.Agent{Socket: in("socket")})
	must(t, err)
	t.Cleanup(func() { must(t, conn.Close()) })
	r.client = client.NewRemote(conn, client.Options{})
	r.vpp, err = govpp.Connect(in("api.sock"))
	must(t, err)
	t.Cleanup(r.vpp.Disconnect)
	r.until("the agent", func() bool { return r.client.Put(t.Context(), declared()...) == nil })
	must(t, r.client.Wait(t.Context(), declared()...))
	return r
}

// module is the pattern of the packages whose functions are counted.
const module = "github.com/keyplane/keyplane/..."

// start runs the program with counters until the test ends.
func start(t *testing.T, args ...string) *counters {
	bin := testkit.Build(t, []string{
		"-cover", "-covermode=atomic", "-coverpkg=" + module,
		// The compiler needs less time, and the counters are the same.
		"-gcflags=" + module + "=-N -l -dwarf=false",
	}, "./walked")
	commands, tell, err := os.Pipe()
	must(t, err)
	answer, answers, err := os.Pipe()
	must(t, err)
	cmd := exec.Command(filepath.Join(bin, "walked"), args...)
	cmd.Env = append(os.Environ(), "GOCOVERDIR="+t.TempDir())
	cmd.ExtraFiles, cmd.Stderr = []*os.File{commands, answers}, testkit.Log(t)
	must(t, cmd.Start())
	must(t, errors.Join(commands.Close(), answers.Close()))
	t.Cleanup(func() {
		must(t, cmd.Process.Signal(syscall.SIGTERM))
		must(t, cmd.Wait())
		must(t, errors.Join(tell.Close(), answer.Close()))
	})
	return &counters{tell, bufio.NewReader(answer)}
}

// settled reports that all that is declared is configured.
func (r *rig) settled() bool {
	all, err := r.client.Status(r.t.Context(), declared()...)
	must(r.t, err)
	return !slices.ContainsFunc(all, func(s client.Status) bool { return s.State != kvscheduler.ValueState_CONFIGURED })
}

// until waits until ok.
func (r *rig) until(what string, ok func() bool) {
	r.t.Helper()
	if !testkit.Until(ok) {
		r.t.Fatalf("%s is not there", what)
	}
}

func (r *rig) put(key, value string) {
	_, err := r.etcd.Put(r.t.Context(), "/vnf-agent/vpp1/"+key, value)
	must(r.t, err)
}

// route returns the route of the kernel, or nil.
func (r *rig) route(network string) *netlink.Route {
	all, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	must(r.t, err)
	for _, route := range all {
		if route.Dst != nil && route.Dst.String() == network {
			return &route
		}
	}
	return nil
}

func (r *rig) hasRoute(network string) bool { return r.route(network) != nil }

// loopback returns the index of the interface of the agent with this name; 0: there is none.
func (r *rig) loopback(name string) interface_types.InterfaceIndex {
	dump, err := binif.NewServiceClient(r.vpp).SwInterfaceDump(r.t.Context(), &binif.SwInterfaceDump{SwIfIndex: ^interface_types.InterfaceIndex(0)})
	must(r.t, err)
	var index interface_types.InterfaceIndex
	for {
		details, err := dump.Recv()
		if err == io.EOF {
			return index
		}
		must(r.t, err)
		if _, of, _ := strings.Cut(details.Tag, "@"); of == name {
			index = details.SwIfIndex
		}
	}
}

func (r *rig) deleteLoopback(name string) {
	_, err := binif.NewServiceClient(r.vpp).DeleteLoopback(r.t.Context(), &binif.DeleteLoopback{SwIfIndex: r.loopback(name)})
	must(r.t, err)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var marks = regexp.MustCompile(`(?s)(<!-- walk: written by make walk -->\n)(.*?)(<!-- end -->)`)

// write replaces the table in the file.
func write(t *testing.T, path, text string) {
	content, err := os.ReadFile(path)
	must(t, err)
	if !marks.Match(content) {
		t.Fatalf("%s has no marks of the table", path)
	}
	must(t, os.WriteFile(path, marks.ReplaceAll(content, []byte("${1}"+text+"${3}")), 0o644))
}

// compare fails for a figure that is larger than in the file by more than two in a hundred.
func compare(t *testing.T, path, text string) {
	content, err := os.ReadFile(path)
	must(t, err)
	parts := marks.FindSubmatch(content)
	if parts == nil {
		t.Fatalf("%s has no marks of the table", path)
	}
	committed := strings.Split(string(parts[2]), "\n")
	for i, row := range strings.Split(text, "\n") {
		if i >= len(committed) {
			t.Fatalf("%s lacks the row %s; make walk writes it", path, row)
		}
		now, before := strings.Split(row, "|"), strings.Split(committed[i], "|")
		if len(now) != len(before) || len(now) > 1 && now[1] != before[1] {
			t.Fatalf("%s has the row %q, expected one like %q; make walk writes it", path, committed[i], row)
		}
		for c := 2; c < len(now); c++ {
			n, err := strconv.Atoi(strings.TrimSpace(now[c]))
			if err != nil {
				continue // the head
			}
			most, err := strconv.Atoi(strings.TrimSpace(before[c]))
			must(t, err)
			if n > most+most/50 {
				t.Errorf("%s: column %d is %d, and was %d; if that is right, make walk writes the new figures", strings.TrimSpace(now[1]), c, n, most)
			}
		}
	}
}
