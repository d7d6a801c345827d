package iface

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface/internal/kinds"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/vppsim"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// A rig is a scheduler with the descriptors of interfaces, on a VPP that has two loopbacks
// of somebody else.
type rig struct {
	*testing.T
	vpp   *simulated.VPP
	sched *scheduler.Scheduler
	stop  func()
}

func newRig(t *testing.T) *rig {
	t.Helper()
	vpp := simulated.StartWith(t, vppsim.Options{Release: simulated.Newest(), Hardware: []string{nic}})
	other := vpp.Dial()
	for range 2 {
		vpp.Loopback(other, "")
	}
	for _, ipv6 := range []bool{false, true} {
		vpp.Ask(other, &ip.IPTableAddDel{IsAdd: true, Table: ip.IPTable{TableID: 5, IsIP6: ipv6}}, &ip.IPTableAddDelReply{})
	}
	vpp.Watch()
	return startRig(t, vpp, time.Millisecond)
}

// startRig starts a scheduler on a VPP, which it looks for again after a time if it loses it.
func startRig(t *testing.T, vpp *simulated.VPP, again time.Duration) *rig {
	t.Helper()
	r := &rig{T: t, vpp: vpp, sched: scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler)})}
	group, err := r.sched.Connection("vpp")
	if err != nil {
		t.Fatal(err)
	}
	var events *Events
	manager := conn.NewManager(conn.Options{
		Socket: r.vpp.Socket, MinBackoff: again, MaxBackoff: max(again, time.Second), ProbeInterval: time.Minute,
		Log: slog.New(slog.DiscardHandler), Ready: func(conn.About) { group.Ready() }, Lost: group.Lost,
		Events: map[api.Message]func([]byte){&vppif.SwInterfaceEvent{}: func(m []byte) { events.Take(m) }},
		Begin:  func(ctx context.Context, c *conn.Conn) error { return events.Subscribe(ctx, c) },
	})
	_, events, err = Register(r.sched, Options{API: manager, Connection: "vpp"})
	if err != nil {
		t.Fatal(err)
	}
	r.stand("host", "linux/interface/host-name/", "linux/interface/host-name/lo")
	r.stand("table", "config/vpp/v2/vrf-table/", keys.VRFTable(5, false), keys.VRFTable(5, true))
	r.run(r.sched.Run, manager.Run, events.Run)
	return r
}

// stand has values of others stand, on which interfaces depend.
func (r *rig) stand(name, prefix string, all ...string) {
	r.Helper()
	if err := register(r.sched, scheduler.Descriptor[*emptypb.Empty, struct{}]{Name: name, Prefix: prefix}); err != nil {
		r.Fatal(err)
	}
	for _, key := range all {
		r.sched.Observe(scheduler.Observed{Key: key, Value: &emptypb.Empty{}})
	}
}

func (r *rig) run(tasks ...func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, len(tasks))
	for _, task := range tasks {
		go func() { ended <- task(ctx) }()
	}
	r.stop = sync.OnceFunc(func() {
		cancel()
		for range tasks {
			if err := <-ended; err != nil {
				r.Error(err)
			}
		}
	})
	r.Cleanup(r.stop)
}

// declare declares just these values, and waits until all is applied.
func (r *rig) declare(values ...*interfaces.Interface) {
	r.Helper()
	names := r.commit(values...)
	late := time.After(testkit.Patience)
	for _, key := range names {
		for st, _ := r.sched.Status(key); st.State != scheduler.Configured; st, _ = r.sched.Status(key) {
			select {
			case <-late:
				r.Fatalf("%s is %s: %v\n%s", key, st.State, st.Err, r.page())
			case <-time.After(time.Millisecond):
			}
		}
	}
	// The addresses come after the interface, in the same transaction.
	if err := r.sched.Sync(r.Context()); err != nil {
		r.Fatal(err)
	}
}

// commit declares just these values, and returns their keys.
func (r *rig) commit(values ...*interfaces.Interface) (names []string) {
	r.Helper()
	txn := scheduler.Txn{Replace: true}
	for _, v := range values {
		value, err := r.sched.Value("config/vpp/v2/interfaces/"+v.GetName(), v)
		if err != nil {
			r.Fatal(err)
		}
		txn.Changes = append(txn.Changes, value.Change())
		names = append(names, value.Key())
	}
	if _, err := r.sched.Commit(r.Context(), txn); err != nil && !errors.Is(err, conn.ErrLost) {
		r.Fatal(err)
	}
	return names
}

// expect waits until VPP shows these interfaces, whatever their indexes are.
func (r *rig) expect(want string) {
	r.Helper()
	late := time.After(testkit.Patience)
	for got := r.page(); got != want; got = r.page() {
		select {
		case <-late:
			r.Fatalf("VPP has\n%s\nwant\n%s", got, want)
		case <-time.After(time.Millisecond):
		}
	}
}

// page is what VPP shows of interfaces, without their indexes.
func (r *rig) page() string {
	var b strings.Builder
	for line := range strings.Lines(r.vpp.Show("show interface")) {
		b.WriteString(strings.Join(strings.Fields(line)[1:], " ") + "\n")
	}
	return b.String()
}

// messages is how many messages VPP gets while something is done.
func (r *rig) messages(do func()) (n int) {
	r.vpp.Counts()
	do()
	for _, count := range r.vpp.Counts() {
		n += count
	}
	return n
}

// TestConnectionBreaksAtAnyMessage has an interface of each type come and go, with the
// connection breaking at each message in turn, before VPP does what it asks for and after:
// the interface is there once, or not at all.
func TestConnectionBreaksAtAnyMessage(t *testing.T) {
	lives := lives()
	for kind := range kinds.All() {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			lives[kind].need(t, kind)
			v := lives[kind].suite(t, kind).Values[0].Value
			r := newRig(t)
			bare, made, messages := r.comeAndGo(v)
			for n := range 2 * messages {
				r.vpp.DropAt(n/2+1, n%2 == 1)
				r.declare(v)
				r.expect(made)
				r.vpp.DropAt(n/2+1, n%2 == 1)
				r.declare()
				r.expect(bare)
			}
		})
	}
}

// TestAgentEndsAtAnyMessage has an interface of each type come and go, with the agent ending at
// each message in turn, and another one in its place that remembers nothing: the interface is
// there once, or not at all.
func TestAgentEndsAtAnyMessage(t *testing.T) {
	lives := lives()
	for kind, k := range kinds.All() {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			lives[kind].need(t, kind)
			v := lives[kind].suite(t, kind).Values[0].Value
			r := newRig(t)
			bare, made, messages := r.comeAndGo(v)
			for n := range 2 * messages {
				r.endsAt(n/2+1, n%2 == 1, v)
				r.declare(v)
				r.expect(made)
				r.endsAt(n/2+1, n%2 == 1)
				if k.Hides {
					r.declare(v) // it may have no name: undeclared, it would be nobody's
				}
				r.declare()
				r.expect(bare)
			}
		})
	}
}

// comeAndGo has a value come and go: what VPP shows before and between, and by how many messages
// it comes or goes, whichever takes more.
func (r *rig) comeAndGo(v *interfaces.Interface) (bare, made string, messages int) {
	r.Helper()
	r.declare()
	bare = r.page()
	come := r.messages(func() { r.declare(v) })
	made = r.page()
	leave := r.messages(func() { r.declare(); r.expect(bare) })
	return bare, made, max(come, leave)
}

// endsAt has the agent end at the n-th message of what declares the values, if there are as many,
// before VPP does what it asks for or after; and starts another one.
func (r *rig) endsAt(n int, done bool, values ...*interfaces.Interface) {
	r.Helper()
	r.stop()
	*r = *startRig(r.T, r.vpp, time.Hour)
	r.ready()
	r.vpp.DropAt(n, done)
	r.commit(values...)
	r.stop()
	r.vpp.DropAt(0, false)
	*r = *startRig(r.T, r.vpp, time.Hour)
	r.ready()
}

// ready waits until what stands in VPP was read.
func (r *rig) ready() {
	for len(r.sched.History()) == 0 {
		<-time.After(time.Millisecond)
	}
}

// TestManyAreLostAtOnce has the connection break while interfaces of all types are made.
func TestManyAreLostAtOnce(t *testing.T) {
	r := newRig(t)
	r.declare()
	bare := r.page()
	var all []*interfaces.Interface
	real := r.vpp.Sim == nil
	for kind, life := range lives() {
		if life.lacks(t, kind) != "" {
			continue
		}
		v := life.suite(t, kind).Values[0].Value
		if v.GetName() == "if1" { // others have names that say more
			v.Name = strings.ReplaceAll(kind.String(), " ", "_")
		}
		all = append(all, v)
	}
	for i := range 10 {
		all = append(all, testkit.Parse[*interfaces.Interface](t, fmt.Sprintf(`name: "loop%d" type: SOFTWARE_LOOPBACK`, i)))
	}
	for n := 1; n < 2*len(all); n += 3 {
		r.vpp.DropAt(n, true)
		r.declare(all...)
		names := map[string]int{}
		for line := range strings.Lines(r.page()) {
			names[strings.Fields(line)[1]]++
		}
		for _, v := range all {
			if names[v.GetName()] != 1 {
				t.Errorf("%s is there %d times", v.GetName(), names[v.GetName()])
			}
		}
		made := len(all)
		if !real {
			made-- // hardware was there
		}
		if got, want := strings.Count(r.page(), "\n"), strings.Count(bare, "\n")+made; got != want {
			t.Errorf("VPP has %d lines, want %d:\n%s", got, want, r.page())
		}
		r.vpp.DropAt(0, false)
		r.declare()
		r.expect(bare)
	}
}
