package client_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/client"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/grpc"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/proto/ligato/kvscheduler"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/linux/l3"
	"github.com/keyplane/keyplane/scheduler"
)

type none = struct{}

// agent starts a scheduler and an orchestrator. Interfaces always succeed, and routes need
// their interface.
func agent(t *testing.T) (*scheduler.Scheduler, *orchestrator.Orchestrator) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	sched := scheduler.New(scheduler.Options{Log: log})
	_, err := scheduler.Register(sched, scheduler.Descriptor[*interfaces.Interface, none]{
		Name: "interface", Model: models.For[*interfaces.Interface](),
		Validate: func(_ string, v *interfaces.Interface) error {
			if v.GetMtu() > 9216 {
				return &models.FieldError{Field: "mtu", Value: v.GetMtu(), Expected: "at most 9216"}
			}
			return nil
		},
		Create: func(context.Context, string, *interfaces.Interface) (none, error) { return none{}, nil },
		Delete: func(context.Context, string, *interfaces.Interface, none) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = scheduler.Register(sched, scheduler.Descriptor[*l3.Route, none]{
		Name: "route", Model: models.For[*l3.Route](),
		Dependencies: func(_ string, v *l3.Route) []scheduler.Dependency {
			return []scheduler.Dependency{{Label: "outgoing-interface", Key: keyOf(t, link(v.GetOutgoingInterface()))}}
		},
		Create: func(context.Context, string, *l3.Route) (none, error) { return none{}, nil },
		Delete: func(context.Context, string, *l3.Route, none) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	orch := orchestrator.New(sched, orchestrator.Options{Log: log})
	run(t, sched.Run, orch.Run)
	return sched, orch
}

// run runs parts until the test ends.
func run(t *testing.T, parts ...func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	var running errgroup.Group
	for _, part := range parts {
		running.Go(func() error { return part(ctx) })
	}
	t.Cleanup(func() {
		cancel()
		if err := running.Wait(); err != nil {
			t.Error(err)
		}
	})
}

// A user has a client of an agent.
type user struct {
	client.Client
	sched *scheduler.Scheduler
}

// clients returns a client of each kind, each of an agent of its own.
func clients(t *testing.T) map[string]user {
	t.Helper()
	sched, orch := agent(t)
	out := map[string]user{"local": {client.NewLocal(sched, orch, client.Options{}), sched}}

	sched, orch = agent(t)
	config := grpc.Config{Network: "unix", Endpoint: filepath.Join(t.TempDir(), "grpc.sock")}
	if err := config.Complete(); err != nil {
		t.Fatal(err)
	}
	ready := make(chan net.Addr, 1)
	server := grpc.Server{Config: config, Options: grpc.Options{Scheduler: sched, Layers: orch, Log: slog.New(slog.DiscardHandler)}, Ready: ready}
	run(t, server.Run)
	conn, err := client.Dial(t.Context(), client.Agent{Address: "unix:" + (<-ready).String()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	out["remote"] = user{client.NewRemote(conn, client.Options{}), sched}
	return out
}

func link(name string) *interfaces.Interface { return &interfaces.Interface{Name: name} }

func route(dst, via string) *l3.Route { return &l3.Route{DstNetwork: dst, OutgoingInterface: via} }

func keyOf(t *testing.T, v proto.Message) string {
	m, _ := models.BuiltIn().ForMessage(v)
	key, err := m.Key(v)
	if err != nil {
		t.Error(err)
	}
	return key
}

// Both clients live through the same story.
func TestStory(t *testing.T) {
	for name, c := range clients(t) {
		t.Run(name, func(t *testing.T) { story(t, c) })
	}
}

// Values that are together larger than an answer of gRPC may be, and whose states are asked for at once.
func TestManyValues(t *testing.T) {
	for name, c := range clients(t) {
		t.Run(name, func(t *testing.T) {
			const n = 4000
			values, ctx := make([]proto.Message, n), t.Context()
			for i := range values {
				values[i] = link(fmt.Sprint(i, strings.Repeat("x", 600)))
			}
			if err := errors.Join(c.Put(ctx, values[:n/2]...), c.Put(ctx, values[n/2:]...), c.Put(ctx, link("other")), c.Wait(ctx, values...)); err != nil {
				t.Fatal(err)
			}
			got, err := c.Get(ctx)
			if err != nil || len(got) != n+1 {
				t.Errorf("it gets %d values: %v", len(got), err)
			}
			states, err := c.Status(ctx, values...)
			if err != nil || len(states) != n || slices.ContainsFunc(states, func(s client.Status) bool { return s.State != kvscheduler.ValueState_CONFIGURED }) {
				t.Errorf("it gets %d states: %v", len(states), err)
			}
		})
	}
}

// A value that was refused has a state and a reason, and one that nobody declared has neither.
func TestStatusOfRefusedValue(t *testing.T) {
	for name, c := range clients(t) {
		t.Run(name, func(t *testing.T) {
			bad := link("bad")
			bad.Mtu = 10_000
			if err := c.Put(t.Context(), bad); err == nil {
				t.Error("it is accepted")
			}
			got, err := c.Status(t.Context(), bad, link("none"))
			if err != nil || len(got) != 2 || got[0].State != kvscheduler.ValueState_INVALID || !strings.Contains(got[0].Reason, "at most 9216") ||
				got[1] != (client.Status{Key: keyOf(t, link("none"))}) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

func story(t *testing.T, c user) {
	ctx := t.Context()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	shown := func(values []client.Value, err error) (keys []string) {
		t.Helper()
		check(err)
		for _, v := range values {
			keys = append(keys, v.Key)
		}
		return keys
	}
	a, b, toB := link("a"), link("b"), route("10.0.0.0/8", "b")

	// The route waits for b; then both are applied.
	check(c.Put(ctx, a, toB))
	check(c.Wait(ctx, a))
	states, err := c.Status(ctx, toB, a, b)
	check(err)
	want := []client.Status{
		{Key: keyOf(t, toB), State: kvscheduler.ValueState_PENDING, Reason: "outgoing-interface"},
		{Key: keyOf(t, a), State: kvscheduler.ValueState_CONFIGURED}, {Key: keyOf(t, b)},
	}
	if !slices.Equal(states, want) {
		t.Errorf("statuses %v, want %v", states, want)
	}
	impatient, cancel := context.WithCancel(ctx)
	cancel()
	if err := c.Wait(impatient, toB); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting with an ended context: %v", err)
	}
	waited := make(chan error, 1)
	go func() { waited <- c.Wait(ctx, toB) }()
	check(c.Put(ctx, b))
	check(<-waited)

	// What is declared, and what is applied.
	all := []string{keyOf(t, a), keyOf(t, b), keyOf(t, toB)}
	if got := shown(c.Get(ctx)); !slices.Equal(got, all) {
		t.Errorf("declared %q", got)
	}
	if got := shown(c.Dump(ctx)); !slices.Equal(got, all) {
		t.Errorf("applied %q", got)
	}
	if got := shown(c.Dump(ctx, b)); !slices.Equal(got, all[1:2]) {
		t.Errorf("applied, of b: %q", got)
	}
	routes, err := client.All[*l3.Route](ctx, c)
	if check(err); len(routes) != 1 || !proto.Equal(routes[0], toB) {
		t.Errorf("routes %v", routes)
	}

	// A refused value names its field, and stays as it was.
	err = c.Put(ctx, &interfaces.Interface{Name: "a", Mtu: 10000})
	refused, ok := errors.AsType[*client.Error](err)
	if !ok || len(refused.Failed) != 1 || refused.Failed[0].Key != all[0] || refused.Failed[0].State != kvscheduler.ValueState_INVALID ||
		!slices.Equal(refused.Failed[0].Fields, []string{"mtu"}) {
		t.Errorf("refused: %#v", err)
	}
	if err := c.Wait(ctx, a); err == nil {
		t.Error("waiting for an invalid value ended well")
	}
	if err := c.Put(ctx, &interfaces.Interface{}); err == nil || !slices.Equal(models.Fields(err), []string{"name"}) {
		t.Errorf("without a name: %v", err)
	}

	// One transaction moves the route from b to c, and removes b, which it needs no more. The last
	// change of a key counts.
	onC, before := route("10.0.0.0/8", "c"), len(c.sched.History())
	check(c.Commit(ctx, client.Delete(toB, b), client.Put(link("c"), onC), client.Delete(onC), client.Put(onC)))
	moved := []string{keyOf(t, a), keyOf(t, link("c")), keyOf(t, onC)}
	if got := shown(c.Get(ctx)); !slices.Equal(got, moved) {
		t.Errorf("declared after a move: %q", got)
	}
	if n := len(c.sched.History()) - before; n != 1 {
		t.Errorf("the move is %d transactions", n)
	}
	if got := shown(c.Dump(ctx)); !slices.Equal(got, moved) {
		t.Errorf("applied after a move: %q", got)
	}
	// A change without a key refuses all changes.
	if err := c.Commit(ctx, client.Delete(a), client.Put(&interfaces.Interface{})); err == nil || !slices.Equal(models.Fields(err), []string{"name"}) {
		t.Errorf("with a change without a name: %v", err)
	}
	// A refused value leaves the others of its transaction alone.
	err = c.Commit(ctx, client.Delete(onC), client.Put(&interfaces.Interface{Name: "d", Mtu: 10000}, b, toB))
	if refused, ok := errors.AsType[*client.Error](err); !ok || len(refused.Failed) != 1 || refused.Failed[0].Key != keyOf(t, link("d")) {
		t.Errorf("refused: %v", err)
	}
	check(c.Commit(ctx, client.Delete(link("c"), link("d"))))
	if got := shown(c.Get(ctx)); !slices.Equal(got, all) {
		t.Errorf("declared after the way back: %q", got)
	}
	check(c.Commit(ctx))

	// Delete and Replace withdraw values; a watch reports that.
	check(c.Delete(ctx, toB))
	check(c.Replace(ctx, b))
	if got := shown(c.Get(ctx)); !slices.Equal(got, all[1:2]) {
		t.Errorf("declared in the end: %q", got)
	}
	for st, err := range c.Watch(ctx, b) {
		check(err)
		if st.State == kvscheduler.ValueState_REMOVED {
			break
		}
		check(c.Delete(ctx, b))
	}
}
