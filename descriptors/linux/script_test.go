package linux_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/linux"
	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/keys"
	"github.com/keyplane/keyplane/internal/fakeengine"
	"github.com/keyplane/keyplane/internal/scratch"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/limits"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/drift"
	"github.com/keyplane/keyplane/scheduler/explain"
	"github.com/keyplane/keyplane/scheduler/inspect"
)

func TestMain(m *testing.M) { os.Exit(scratch.Main(m.Run)) }

// TestScripts runs the stories in testdata through a scheduler that runs, on the
// real kernel. They say, besides what testscript knows:
//
//	netns NAME...            makes network namespaces, which go with the script, and waits until
//	                         the agent has noticed them
//	put KEY JSON             wants a value, in one transaction with the puts around it
//	del KEY                  wants it no more, likewise
//	commit                   ends the transaction
//	explain KEY REGEXP       expects that in the explanation of a value
//	invalid KEY JSON FIELD   expects that the value is refused for that field
//	state KEY STATE [TEXT]   waits for the state, with that text in error or details
//	stays KEY STATE          expects the state now
//	soon COMMAND REGEXP      runs the command until its output matches
//	reach NS ADDR [NS2]      sends a datagram from NS to ADDR, which is in NS2
//	engine start|stop        starts or stops the container engine; containers go on
//	container NAME ENV...    runs a container with this environment
//	gone NAME...             ends containers
//	in NAME COMMAND REGEXP   is soon, in the network namespace of a container
//	rename LINK NAME [NS]    renames a link as somebody else; kernels before 6.2 want it down for that
//	ethtool NS LINK RX TX    sets checksum offloading as somebody else: true or false
//	offloads NS LINK RX TX   waits for that
//	halt, start              ends the scheduler; begins anew, with nothing known
//	restart                  ends the scheduler and begins anew, with nothing known
//	insync                   expects that a resync does, records and publishes nothing
//	resync                   has everything read back, and what was put is all that is wanted
//	look                     compares with drift, and dumps all kinds, as people do who only look
//	counted NAME LINK        expects that the interface has sent packets, by that link
//	unchanged                expects that the last resync called no verb
func TestScripts(t *testing.T) {
	testkit.Netns(t)
	_, err := exec.LookPath("ip")
	testkit.Need(t, "ip (iproute2)", err == nil)
	scripts, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range scripts { // one by one: the kernel is the same for all
		t.Run("", func(t *testing.T) {
			if filepath.Base(script) == "rules.txtar" {
				needIPTables(t)
			}
			testscript.Run(t, params(script))
		})
	}
}

func needIPTables(t *testing.T) {
	t.Helper()
	// Only this variant sends notifications of changes.
	version, err := exec.Command("iptables", "--version").Output()
	testkit.Need(t, "iptables-nft as iptables (iptables)", err == nil && strings.Contains(string(version), "nf_tables"))
}

func params(script string) testscript.Params {
	return testscript.Params{
		Files: []string{script},
		Setup: func(env *testscript.Env) error {
			a := newAgent()
			a.wait = filepath.Base(script) != "made.txtar" // the other scripts make the namespaces
			a.socket = filepath.Join(env.WorkDir, "docker.sock")
			env.Values[agentKey{}] = a
			env.Defer(a.end)
			return a.start()
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"engine": command((*agent).runEngine), "container": command((*agent).container), "gone": command((*agent).gone), "in": inContainer,
			"start": command(func(a *agent, _ []string) error { return a.start() }), "halt": command(func(a *agent, _ []string) error { a.stop(); return nil }),
			"netns": command((*agent).netns), "put": command((*agent).put), "del": command((*agent).del),
			"commit": command((*agent).commit), "invalid": command((*agent).invalid), "explain": command((*agent).explain), "state": command((*agent).state),
			"stays": command((*agent).stays), "reach": command((*agent).reach), "restart": command((*agent).restart),
			"rename": command(rename), "ethtool": command(ethtool), "offloads": command(offloads),
			"resync": command((*agent).resync), "insync": command((*agent).insync), "look": command((*agent).look), "unchanged": command((*agent).unchanged), "counted": command((*agent).counted), "soon": command((*agent).soon),
		},
		Condition: canMake,
	}
}

type agentKey struct{}

// agent is the scheduler of one script, and what the script wants.
type agent struct {
	s       *scheduler.Scheduler
	plugin  *linux.Plugin
	stop    func()
	wanted  map[string]proto.Message
	changes []scheduler.Change

	resynced *scheduler.Record                                // of the last resync
	known    testkit.Memory                                   // of the links, across restarts
	names    testkit.Memory                                   // of the namespaces that were made, across restarts
	wait     bool                                             // values wait for namespaces, as a setting demands
	with     func(*scheduler.Scheduler, *linux.Options) error // adds more before each start; nil: nothing
	log      *slog.Logger                                     // of the scheduler
	insisted warnings

	socket      string // of the container engine
	startEngine func(path string) (engineOfContainers, error)
	engine      engineOfContainers
	containers  map[string]string // ids, by name
}

// engineOfContainers is the fake one or a real one.
type engineOfContainers interface {
	Run(env ...string) (id string, err error)
	Kill(id string) error
	Pid(id string) int
	Stop() // containers go on
	Listen() error
	Close()
}

func newAgent() *agent {
	fake := func(path string) (engineOfContainers, error) { return fakeengine.Start(path) }
	return &agent{known: testkit.Memory{}, names: testkit.Memory{}, wanted: map[string]proto.Message{}, containers: map[string]string{}, startEngine: fake, log: slog.New(slog.DiscardHandler), insisted: warnings{keys: map[string]bool{}}}
}

func command(f func(*agent, []string) error) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		err := f(ts.Value(agentKey{}).(*agent), args)
		switch {
		case neg && err == nil:
			ts.Fatalf("unexpected success")
		case neg:
			ts.Logf("%v", err)
		default:
			ts.Check(err)
		}
	}
}

func (a *agent) start() error {
	a.s = scheduler.New(scheduler.Options{FieldChecks: limits.Validation, Log: a.log})
	o := linux.Options{Label: "test", Log: slog.New(slog.DiscardHandler), Known: a.known, KnownNamespaces: a.names}
	o.Namespaces.Wait = a.wait
	if a.socket != "" {
		o.Namespaces.Docker.Host = "unix://" + a.socket
	}
	if a.with != nil {
		if err := a.with(a.s, &o); err != nil {
			return err
		}
	}
	plugin, err := linux.Register(a.s, o)
	if err != nil {
		return err
	}
	a.plugin = plugin
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- a.s.Run(ctx) }()
	go func() { ended <- plugin.Run(ctx) }()
	a.stop = sync.OnceFunc(func() { // again at the end of a script that fails while it is down
		cancel()
		if err := errors.Join(<-ended, <-ended); err != nil {
			panic(err)
		}
	})
	return nil
}

// end stops the agent and leaves the kernel as it was.
func (a *agent) end() {
	a.changes = nil
	for key := range a.wanted {
		a.changes = append(a.changes, scheduler.Unwant(key))
	}
	_ = a.commit(nil)
	a.stop()
	if a.engine != nil {
		a.engine.Close()
	}
	_ = exec.Command("ip", "-all", "netns", "delete").Run()
}

func (a *agent) restart([]string) error {
	a.stop()
	return a.start()
}

func (a *agent) runEngine(args []string) (err error) {
	switch {
	case args[0] == "stop":
		a.engine.Stop()
	case a.engine == nil:
		a.engine, err = a.startEngine(a.socket)
	default:
		err = a.engine.Listen()
	}
	return err
}

func (a *agent) container(args []string) (err error) {
	a.containers[args[0]], err = a.engine.Run(args[1:]...)
	return err
}

func (a *agent) gone(names []string) (err error) {
	for _, name := range names {
		err = errors.Join(err, a.engine.Kill(a.containers[name]))
	}
	return err
}

func inContainer(ts *testscript.TestScript, _ bool, args []string) {
	a := ts.Value(agentKey{}).(*agent)
	pid := strconv.Itoa(a.engine.Pid(a.containers[args[0]]))
	ts.Check(eventually(func() error {
		out, err := exec.Command("nsenter", append([]string{"-t", pid, "-n"}, strings.Fields(args[1])...)...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		if !regexp.MustCompile(args[2]).Match(out) {
			return fmt.Errorf("no match for %s in\n%s", args[2], out)
		}
		return nil
	}))
}

func (a *agent) netns(names []string) error {
	for _, name := range names {
		if out, err := exec.Command("ip", "netns", "add", name).CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		if err := a.state([]string{keys.Namespace(name), "OBTAINED"}); err != nil {
			return err
		}
	}
	return nil
}

func (a *agent) put(args []string) error {
	v, err := a.value(args[0], args[1])
	if err != nil {
		return err
	}
	a.wanted[v.Key()] = v.Message()
	a.changes = append(a.changes, v.Change())
	return nil
}

func (a *agent) value(key, json string) (scheduler.Value, error) {
	m, err := models.BuiltIn().Decode(key, []byte(json))
	if err != nil {
		return scheduler.Value{}, err
	}
	return a.s.Value(key, m)
}

func (a *agent) del(args []string) error {
	delete(a.wanted, args[0])
	a.changes = append(a.changes, scheduler.Unwant(args[0]))
	return nil
}

func (a *agent) commit([]string) error {
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	if err := eventually(a.isReady); err != nil { // before that, changes wait, and a commit does not
		return err
	}
	_, err := a.s.Commit(ctx, scheduler.Txn{Changes: a.changes})
	a.changes = nil
	if _, ok := errors.AsType[*scheduler.TxnError](err); ok {
		return nil // its states say so
	}
	return err
}

// isReady returns an error until what is there is known for the first time.
func (a *agent) isReady() error {
	for _, c := range a.s.Connections() {
		if c.Name == linux.ConnectionName && c.State != scheduler.ConnectionReady {
			return fmt.Errorf("linux is %v", c.State)
		}
	}
	return nil
}

func (a *agent) resync([]string) error {
	txn := scheduler.Txn{Refresh: true, Replace: true}
	for key, m := range a.wanted {
		v, err := a.s.Value(key, m)
		if err != nil {
			return err
		}
		txn.Changes = append(txn.Changes, v.Change())
	}
	var err error
	a.resynced, err = a.s.Commit(context.Background(), txn)
	return err
}

func (a *agent) look([]string) error {
	_, err := drift.Check(context.Background(), a.s)
	for _, d := range inspect.Descriptors(a.s) {
		if d.Retrieves {
			_, _ = inspect.Dump(context.Background(), a.s, d.Name) // a script may have no container engine
		}
	}
	return err
}

func (a *agent) counted(args []string) error {
	all, err := a.plugin.Counters(context.Background())
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(c linux.Counters) bool { return c.Name == args[0] && c.HostName == args[1] })
	if i < 0 || all[i].TxPackets == 0 || all[i].TxBytes == 0 {
		return fmt.Errorf("the counters are %+v", all)
	}
	return nil
}

func (a *agent) unchanged([]string) error {
	for _, op := range a.resynced.Executed.All() {
		if !op.Noop {
			return fmt.Errorf("the resync did: %v %s", op.Verb, op.Key)
		}
	}
	return nil
}

// insync checks that a read-back finds nothing to do and nothing new. What the kernel has reported about the steps before may still be
// on its way: without the word now, a read-back that has only noticed something is repeated.
func (a *agent) insync(args []string) error {
	if len(args) > 0 && args[0] == "now" {
		_, err := a.readBack()
		return err
	}
	var repaired error
	err := eventually(func() error {
		changed, err := a.readBack()
		if changed {
			repaired = err
			return nil
		}
		return err
	})
	return errors.Join(repaired, err)
}

// readBack returns an error with all that a read-back of everything has done, noticed or published, and whether it has called a verb.
func (a *agent) readBack() (changed bool, err error) {
	w := a.s.Watch("")
	defer w.Close()
	w.Take() // the present statuses
	record, err := a.s.Commit(context.Background(), scheduler.Txn{Refresh: true})
	if err != nil {
		return true, err
	}
	for _, op := range record.Executed.All() {
		changed = changed || !op.Noop
		err = errors.Join(err, fmt.Errorf("%s %s: %s -> %s", op.Verb, op.Key, op.OldState, op.NewState))
	}
	for _, st := range w.Take() {
		err = errors.Join(err, fmt.Errorf("published %s %s", st.Key, st.State))
	}
	return changed, err
}

func (a *agent) invalid(args []string) error {
	_, err := a.value(args[0], args[1])
	if got := strings.Join(models.Fields(err), " "); got != args[2] {
		return fmt.Errorf("invalid are %q, not %q: %w", got, args[2], err)
	}
	return nil
}

func (a *agent) explain(args []string) error {
	if got := explain.Key(a.s, args[0]).String(); !regexp.MustCompile(args[1]).MatchString(got) {
		return fmt.Errorf("no match for %s in\n%s", args[1], got)
	}
	return nil
}

func (a *agent) state(args []string) error {
	return eventually(func() error { return a.stays(args) })
}

func (a *agent) soon(args []string) error {
	want, err := regexp.Compile(args[1])
	if err != nil {
		return err
	}
	words := strings.Fields(args[0])
	return eventually(func() error {
		out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
		if err == nil && !want.Match(out) {
			err = errors.New("no match")
		}
		if err != nil {
			return fmt.Errorf("%s: %w for %s in\n%s", args[0], err, want, out)
		}
		return nil
	})
}

// rename sets the link down only if it must: without that, nothing but the name changes. The agent may set it up in
// between.
func rename(_ *agent, args []string) error {
	link, name, ns := args[0], args[1], []string(nil)
	if len(args) > 2 {
		ns = []string{"-n", args[2]}
	}
	ip := func(lines string) error {
		cmd := exec.Command("ip", append(slices.Clone(ns), "-batch", "-")...)
		cmd.Stdin = strings.NewReader(lines)
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}
	set := fmt.Sprintf("link set %s name %s\n", link, name)
	if ip(set) == nil {
		return nil
	}
	return eventually(func() error {
		return ip(fmt.Sprintf("link set %s down\n%slink set %s up\n", link, set, name))
	})
}

func ethtool(_ *agent, args []string) error {
	return offloading(args, func(ns kernel.Kernel, want kernel.Offload) error { return ns.SetOffload(args[1], want) })
}

func offloads(_ *agent, args []string) error {
	return offloading(args, func(ns kernel.Kernel, want kernel.Offload) error {
		return eventually(func() error {
			have, err := ns.Offload(args[1])
			if err == nil && have != want {
				err = fmt.Errorf("%s has %+v, want %+v", args[1], have, want)
			}
			return err
		})
	})
}

func offloading(args []string, do func(kernel.Kernel, kernel.Offload) error) error {
	ns, _, err := kernel.This{}.Open("/run/netns/" + args[0])
	if err != nil {
		return err
	}
	defer ns.Close()
	return do(ns, kernel.Offload{RX: args[2] == "true", TX: args[3] == "true"})
}

// eventually tries until what is expected is so.
func eventually(try func() error) (err error) {
	testkit.Until(func() bool {
		err = try()
		return err == nil
	})
	return err
}

// canMake tells whether the kernel has links of a kind.
func canMake(kind string) (bool, error) {
	args := []string{"link", "add", "canmake", "type", kind}
	if kind == "vrf" {
		args = append(args, "table", "1")
	}
	if exec.Command("ip", args...).Run() != nil {
		return false, nil
	}
	return true, exec.Command("ip", "link", "del", "canmake").Run()
}

func (a *agent) stays(args []string) error {
	st, ok := a.s.Status(args[0])
	if !ok {
		if args[1] == "NONEXISTENT" {
			return nil
		}
		return fmt.Errorf("%s is not there", args[0])
	}
	text := fmt.Sprint(st.State, " ", st.Details, " ", st.Err)
	for _, want := range args[1:] {
		if !strings.Contains(text, want) {
			return fmt.Errorf("%s is %s, want %q", args[0], text, args[1:])
		}
	}
	return nil
}

// reach sends datagrams until one arrives.
func (a *agent) reach(args []string) error {
	from, to := args[0], args[1]
	at := from
	if len(args) > 2 {
		at = args[2]
	}
	var server net.PacketConn
	var client net.Conn
	listen := func() (err error) { server, err = net.ListenPacket("udp", net.JoinHostPort(to, "0")); return err }
	if err := scratch.InNetns(at, listen); err != nil {
		return err
	}
	defer server.Close()
	dial := func() (err error) { client, err = net.Dial("udp", server.LocalAddr().String()); return err }
	if err := scratch.InNetns(from, dial); err != nil {
		return err
	}
	defer client.Close()
	buffer, deadline := make([]byte, 16), time.Now().Add(testkit.Patience)
	for time.Now().Before(deadline) {
		if _, err := client.Write([]byte("hello")); err != nil {
			return err
		}
		if err := server.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
			return err
		}
		if _, _, err := server.ReadFrom(buffer); err == nil {
			return nil
		}
	}
	return fmt.Errorf("nothing from %s reached %s in %s", from, to, at)
}
