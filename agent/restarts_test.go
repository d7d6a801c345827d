package agent

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/internal/fakeengine"
	"github.com/keyplane/keyplane/internal/scratch"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/testkit/detain"
	"github.com/keyplane/keyplane/internal/vppsim"
)

var restarts = flag.Int("agent.restarts", len(hosts()), "`number` of restarts by SIGTERM, and of those by SIGKILL")

// hosts are what an agent reads on its host. While one of them is held back, Linux is not known as a whole.
func hosts() []string {
	return []string{"chains", string(detain.Links), string(detain.Addresses), string(detain.Routes), string(detain.Neighbours), string(detain.Namespaces), "containers"}
}

// orders are the orders in which what an agent needs arrives: a store, VPP, and one part of the host. The first ones have
// each part, and each order of the three.
func orders() (all [][]string) {
	three := [][]string{
		{"host", "vpp", "etcd"}, {"vpp", "etcd", "host"}, {"etcd", "host", "vpp"},
		{"host", "etcd", "vpp"}, {"vpp", "host", "etcd"}, {"etcd", "vpp", "host"},
	}
	parts := hosts()
	for i := range len(three) * len(parts) { // the two numbers have no common factor
		order := slices.Clone(three[i%len(three)])
		order[slices.Index(order, "host")] = parts[i%len(parts)]
		all = append(all, order)
	}
	return all
}

// An agent that restarts beside a VPP that runs on, and whose values are the same as before, changes nothing: the kernel
// reports no event, and VPP gets no message but questions. That holds for each order in which the store, VPP, and
// each part of the host can be read: each is held back until those before it have been read.
func TestRestartChangesNothing(t *testing.T) {
	r := newRestartRig(t)
	r.start(nil)
	r.declare("testdata/restarts.yaml")
	r.declare("testdata/restarts_container.yaml")
	if hasVRF() {
		r.declare("testdata/restarts_vrf.yaml")
	}
	r.settled()
	r.sim.Counts()
	events := listen(t, "", "red", "blue", r.container)
	seen := map[string][]string{} // by event, the restarts that it followed
	longest := time.Duration(0)
	for i := range 2 * *restarts {
		order := orders()[i/2%len(orders())]
		how := []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL}[i%2]
		name := fmt.Sprintf("restart %d (%v, then %v)", i+1, how, order)
		begin := time.Now()
		r.stop(how)
		r.start(order)
		t.Logf("%s took %v", name, time.Since(begin))
		longest = max(longest, time.Since(begin))
		for _, e := range events() {
			seen[e] = append(seen[e], name)
		}
		if changes := changesIn(r.sim.Counts()); len(changes) > 0 {
			t.Errorf("%s: VPP got %v", name, changes)
		}
	}
	// What the kernel reports by itself in that time is not the agent's.
	<-time.After(longest)
	for _, e := range events() {
		delete(seen, e)
	}
	for _, e := range slices.Sorted(maps.Keys(seen)) {
		t.Errorf("%s after %d restarts, the first of which is %s", e, len(seen[e]), seen[e][0])
	}
	r.agrees()
	t.Logf("%d restarts by each signal; the longest took %v", *restarts, longest)
}

// What TestRestartChangesNothing counts as a change: a link that goes down for a moment, and each message that makes
// something. Questions are none.
func TestRestartWouldBeNoticed(t *testing.T) {
	testkit.Netns(t, "red")
	set := func(f func(netlink.Link) error) {
		err := scratch.InNetns("red", func() error {
			link, err := netlink.LinkByName("lo")
			if err != nil {
				return err
			}
			return f(link)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	set(netlink.LinkSetUp)
	events := listen(t, "red")
	if seen := events(); len(seen) > 0 {
		t.Errorf("before, there is %q", seen)
	}
	set(netlink.LinkSetDown)
	set(netlink.LinkSetUp)
	seen := strings.Join(events(), "\n")
	for _, want := range []string{"new or changed link lo, loopback\n", "new or changed link lo, up|"} {
		if !strings.Contains(seen, want) {
			t.Errorf("no %s in\n%s", want, seen)
		}
	}
	got := changesIn(map[string]int{"sw_interface_dump": 3, "create_loopback": 1, "control_ping": 9, "sw_interface_get_table": 2})
	if want := []string{"create_loopback (1 times)"}; !slices.Equal(got, want) {
		t.Errorf("%q are changes of VPP; want %q", got, want)
	}
}

// hasVRF reports whether this kernel has VRFs.
func hasVRF() bool {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "probe"
	link := &netlink.Vrf{LinkAttrs: attrs, Table: 99}
	return netlink.LinkAdd(link) == nil && netlink.LinkDel(link) == nil
}

// questions are the messages that change nothing in VPP.
var questions = regexp.MustCompile(`_dump$|_get$|_get_|^get_|^show_|_show_|_ping$|^want_|^sockclnt_|^cli_inband show$`)

// changesIn returns the messages that are no questions.
func changesIn(counts map[string]int) (changes []string) {
	for name, n := range counts {
		if !questions.MatchString(name) {
			changes = append(changes, fmt.Sprintf("%s (%d times)", name, n))
		}
	}
	slices.Sort(changes)
	return changes
}

// A restartRig is an agent between etcd, a simulated VPP and the kernel, each of which can be held back.
type restartRig struct {
	t      *testing.T
	bin    string
	dir    string
	sim    *vppsim.Sim
	etcd   *testkit.Etcd
	toEtcd *testkit.Proxy
	toVPP  *testkit.Proxy
	chains *os.File // while it is locked, nothing reads the kernel's chains

	toEngine  *testkit.Proxy // of the container engine
	container string         // path of the namespace of a container

	agent *exec.Cmd
	reads *detain.Program // of the agent
	log   string          // path of the log of the agent that runs
	runs  int
}

func newRestartRig(t *testing.T) *restartRig {
	t.Helper()
	testkit.Netns(t, "red", "blue")
	save, err := exec.LookPath("iptables-save")
	testkit.Need(t, "iptables", err == nil)
	r := &restartRig{t: t, bin: build(t), dir: t.TempDir()}
	r.sim, err = vppsim.New(vppsim.Options{Socket: filepath.Join(r.dir, "vpp.sock"), TAP: vppsim.LinuxTAP(slog.New(slog.DiscardHandler))})
	r.check(err)
	r.check(r.sim.Start())
	t.Cleanup(r.sim.Kill)
	r.etcd = testkit.StartEtcd(t, testkit.EtcdOptions{})
	r.toEtcd, r.toVPP = testkit.StartProxy(t, r.etcd.Addr), testkit.StartUnixProxy(t, filepath.Join(r.dir, "vpp.sock"))
	r.chains, err = os.Create(filepath.Join(r.dir, "chains"))
	r.check(err)
	t.Cleanup(func() { r.chains.Close() })
	r.startEngine()
	r.file("etcd.conf", "endpoints: ["+r.toEtcd.Addr+"]\n")
	r.file("govpp.conf", "binapi-socket-path: "+r.toVPP.Addr+"\n")
	r.file("kvscheduler.conf", "print-txn-summary: true\n")
	r.file("orchestrator.conf", "state-dir: "+filepath.Join(r.dir, "state")+"\n")
	for _, program := range []string{"iptables-save", "ip6tables-save"} {
		r.file(program, fmt.Sprintf("#!/bin/sh\nexec flock -s %s %s \"$@\"\n", r.chains.Name(), filepath.Join(filepath.Dir(save), program)))
	}
	t.Cleanup(func() {
		if r.agent != nil {
			r.stop(syscall.SIGKILL)
		}
	})
	return r
}

// startEngine starts a container engine that has a container.
func (r *restartRig) startEngine() {
	r.t.Helper()
	path := filepath.Join(r.dir, "engine.sock")
	engine, err := fakeengine.Start(path)
	r.check(err)
	r.t.Cleanup(engine.Close)
	id, err := engine.Run("MICROSERVICE_LABEL=web")
	r.check(err)
	r.container = fmt.Sprintf("/proc/%d/ns/net", engine.Pid(id))
	r.toEngine = testkit.StartUnixProxy(r.t, path)
	r.file("linux-nsplugin.conf", "docker: {host: \"unix://"+r.toEngine.Addr+"\"}\n")
}

func (r *restartRig) check(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// file writes a file, of the configuration or a program.
func (r *restartRig) file(name, text string) {
	r.t.Helper()
	r.check(os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o700))
}

// start starts the agent. Each part of order arrives when those before it have been read.
func (r *restartRig) start(order []string) {
	r.t.Helper()
	r.launch(order...)
	host := slices.IndexFunc(order, func(part string) bool { return slices.Contains(hosts(), part) })
	// The first transaction with the values of the store reads everything back, so it ends after the host has
	// arrived. Until then, the store and VPP have arrived when the agent says that they answer.
	came := map[string]string{"etcd": "store synced", "vpp": "VPP is connected", "containers": "containers: ready.*? took "}
	if len(order) > 0 && (order[0] == "vpp" || host < 2) {
		came["vpp"] = "vpp: ready.*? took "
	}
	for _, part := range order {
		r.release(part)
		r.said(cmp.Or(came[part], "linux: ready.*? took "))
	}
	for _, done := range []string{"linux: ready", "vpp: ready", "all sources are complete"} {
		r.said("Description: " + done + ".*? took ")
	}
	r.await("the agent is ready", r.ready)
}

// launch starts the agent with parts held back, and does not wait.
func (r *restartRig) launch(held ...string) {
	r.t.Helper()
	var reads []detain.Kind
	for _, part := range held {
		switch part {
		case "etcd":
			r.toEtcd.Set(testkit.BlackHole)
		case "vpp":
			r.toVPP.Set(testkit.BlackHole)
		case "containers":
			r.toEngine.Set(testkit.BlackHole)
		case "chains":
			r.check(unix.Flock(int(r.chains.Fd()), unix.LOCK_EX))
		default:
			reads = append(reads, detain.Kind(part))
		}
	}
	r.runs++
	r.log = filepath.Join(r.dir, fmt.Sprintf("log%d", r.runs))
	log, err := os.Create(r.log)
	r.check(err)
	defer log.Close()
	r.agent = exec.Command(filepath.Join(r.bin, "agent"), "-config-dir="+r.dir, "-socket="+r.socket())
	r.agent.Env = append(os.Environ(), "MICROSERVICE_LABEL=vpp1", "PATH="+r.dir+":"+os.Getenv("PATH"))
	r.agent.Stdout, r.agent.Stderr = log, log
	r.agent.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	r.reads, err = detain.Start(r.agent, filepath.Join(r.bin, "detained"), reads...)
	r.check(err)
}

// release lets a part arrive. A part of the host has been asked for.
func (r *restartRig) release(part string) {
	r.t.Helper()
	switch part {
	case "etcd":
		r.toEtcd.Set(testkit.Pass)
	case "vpp":
		r.toVPP.Set(testkit.Pass)
	case "containers":
		r.toEngine.Set(testkit.Pass)
	case "chains":
		r.check(unix.Flock(int(r.chains.Fd()), unix.LOCK_UN))
	default:
		kind := detain.Kind(part)
		r.await("the agent reads "+part, func() bool { return r.reads.Waiting(kind) > 0 })
		r.reads.Release(kind)
	}
}

// stop ends the agent by a signal.
func (r *restartRig) stop(how syscall.Signal) {
	r.t.Helper()
	r.check(r.agent.Process.Signal(how))
	_ = r.agent.Wait() // a killed program has no exit code
	r.agent = nil
}

func (r *restartRig) socket() string { return filepath.Join(r.dir, "agent.sock") }

// await waits until ok.
func (r *restartRig) await(what string, ok func() bool) {
	r.t.Helper()
	if !testkit.Until(ok) {
		text, _ := os.ReadFile(r.log)
		values, _ := r.ctl("values")
		r.t.Fatalf("waited for this: %s. The agent's log:\n%s\nIts values:\n%s", what, text, values)
	}
}

// said waits until the log of the agent has a match.
func (r *restartRig) said(re string) {
	r.t.Helper()
	pattern := regexp.MustCompile("(?s)" + re)
	r.await("the log has "+re, func() bool {
		text, err := os.ReadFile(r.log)
		return err == nil && pattern.Match(text)
	})
}

// ready asks the agent whether it is ready.
func (r *restartRig) ready() bool {
	code, _ := r.get("/readiness")
	return code == http.StatusOK
}

// get asks the agent for a path. The code is 0 if it does not answer.
func (r *restartRig) get(path string) (code int, text string) {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", r.socket())
	}
	client := http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	answer, err := client.Get("http://agent" + path)
	if err != nil {
		return 0, ""
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body) // a part is no match
	return answer.StatusCode, string(body)
}

// ctl runs agentctl.
func (r *restartRig) ctl(args ...string) (string, error) {
	out, err := exec.Command(filepath.Join(r.bin, "agentctl"), append([]string{"--socket", r.socket(), "--service-label=vpp1", "--etcd-endpoints", r.etcd.Addr}, args...)...).CombinedOutput()
	return string(out), err
}

// declare writes the values of a file into the store, and waits until all are applied.
func (r *restartRig) declare(file string) {
	r.t.Helper()
	out, err := r.ctl("apply", file, "--store", "etcd", "--wait", "--timeout", testkit.Patience.String())
	if err != nil {
		r.t.Fatalf("%s: %v\n%s", file, err, out)
	}
}

// agrees waits until the system is as declared, and the agent is ready.
func (r *restartRig) agrees() {
	r.t.Helper()
	r.await("the system is as declared", func() bool {
		_, err := r.ctl("drift")
		return err == nil && r.ready()
	})
}

// shows waits until agentctl prints a match.
func (r *restartRig) shows(re string, args ...string) {
	r.t.Helper()
	pattern, out := regexp.MustCompile(re), ""
	r.await("agentctl "+strings.Join(args, " ")+" prints "+re, func() bool {
		out, _ = r.ctl(args...)
		return pattern.MatchString(out)
	})
}

// settled waits until the kernel has checked that its addresses are unique, and so reports nothing more about them.
func (r *restartRig) settled() {
	r.t.Helper()
	tentative := func() bool {
		addrs, err := netlink.AddrList(nil, netlink.FAMILY_V6)
		return err != nil || slices.ContainsFunc(addrs, func(a netlink.Addr) bool { return a.Flags&unix.IFA_F_TENTATIVE != 0 })
	}
	for _, name := range []string{"", "red", "blue", r.container} {
		r.check(inNetns(name, func() error {
			r.await("addresses of "+name+" are checked", func() bool { return !tentative() })
			return nil
		}))
	}
}

// inNetns runs f in a named namespace, in that of a file in /proc, or in that of the test.
func inNetns(name string, f func() error) error {
	switch {
	case name == "":
		return f()
	case name[0] == '/':
		return scratch.InNetns(strings.Repeat("../", 3)+name[1:], f) // as seen from /run/netns
	}
	return scratch.InNetns(name, f)
}

// listen subscribes to all changes of links, addresses, routes, rules and neighbours in some namespaces. The kernel
// queues them, so that heard returns all that have happened since the last call.
func listen(t *testing.T, namespaces ...string) (heard func() []string) {
	t.Helper()
	sockets := map[string]int{}
	for _, name := range namespaces {
		err := inNetns(name, func() error {
			fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
			sockets[name] = fd
			// Without an address of its own, the socket has that of the kernel, and gets none of its messages.
			err = errors.Join(err, unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}))
			for _, group := range []int{
				unix.RTNLGRP_LINK, unix.RTNLGRP_NEIGH, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR,
				unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE, unix.RTNLGRP_IPV4_RULE, unix.RTNLGRP_IPV6_RULE,
			} {
				err = errors.Join(err, unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, group))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(sockets[name]) })
	}
	return func() (events []string) {
		for _, name := range namespaces {
			events = append(events, drain(t, name, sockets[name])...)
		}
		return events
	}
}

// drain returns the events of one namespace that are in the queue.
func drain(t *testing.T, namespace string, fd int) (events []string) {
	t.Helper()
	buf := make([]byte, 64<<10)
	for {
		n, _, err := unix.Recvfrom(fd, buf, 0)
		if errors.Is(err, unix.EAGAIN) {
			return events
		}
		if err != nil {
			t.Fatalf("events of the kernel are lost: %v", err)
		}
		messages, err := syscall.ParseNetlinkMessage(buf[:n])
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range messages {
			events = append(events, "the kernel reported in namespace "+fmt.Sprintf("%q: ", namespace)+eventText(m))
		}
	}
}

// eventText describes an event. Times and counters are no part of the text.
func eventText(m syscall.NetlinkMessage) string {
	names := map[uint16]string{
		unix.RTM_NEWLINK: "new or changed link", unix.RTM_DELLINK: "deleted link", unix.RTM_NEWADDR: "new or changed address", unix.RTM_DELADDR: "deleted address",
		unix.RTM_NEWROUTE: "new route", unix.RTM_DELROUTE: "deleted route", unix.RTM_NEWRULE: "new rule", unix.RTM_DELRULE: "deleted rule",
		unix.RTM_NEWNEIGH: "new or changed neighbour", unix.RTM_DELNEIGH: "deleted neighbour",
	}
	if m.Header.Type == unix.RTM_NEWLINK || m.Header.Type == unix.RTM_DELLINK {
		link, err := netlink.LinkDeserialize(nil, m.Data)
		if err == nil {
			return fmt.Sprintf("%s %s, %v", names[m.Header.Type], link.Attrs().Name, link.Attrs().Flags)
		}
	}
	return strings.TrimSpace(fmt.Sprintf("%s % x", names[m.Header.Type], m.Data[:min(len(m.Data), 24)]))
}
