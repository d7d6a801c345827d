package grpc_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
	rpc "google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/grpc"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/linux/l3"
	"github.com/keyplane/keyplane/proto/ligato/vpp/ipsec"
	"github.com/keyplane/keyplane/scheduler"
)

const (
	ifPrefix    = "config/linux/interfaces/v2/interface/"
	routePrefix = "config/linux/l3/v2/route/"
)

// A world is an agent whose southbound is a map: interfaces, routes that need their
// interface, and IPsec associations, which have secrets.
type world struct {
	sched *scheduler.Scheduler
	orch  *orchestrator.Orchestrator
	log   *slog.Logger

	mu      sync.Mutex
	stands  map[string]proto.Message // by key
	foreign map[string]bool          // keys of stands that the agent did not make
	fails   map[string]error         // by key

	beforeRead func() // called by Retrieve; nil: nothing

	more grpc.Options // added to those of the server
	stop func()
}

// A kind registers one model in the world.
func kind[V proto.Message](tb testing.TB, w *world, name string, validate func(string, V) error, needs func(string, V) []scheduler.Dependency) {
	type none = struct{}
	prefix := models.For[V]().Prefix()
	_, err := scheduler.Register(w.sched, scheduler.Descriptor[V, none]{
		Name: name, Model: models.For[V](), Validate: validate, Dependencies: needs,
		Create: func(_ context.Context, key string, v V) (none, error) { return none{}, w.set(key, v) },
		Update: func(_ context.Context, key string, _, v V, _ none) (none, error) { return none{}, w.set(key, v) },
		Delete: func(_ context.Context, key string, _ V, _ none) error { return w.set(key, nil) },
		Retrieve: func(context.Context, []scheduler.Desired[V]) scheduler.Retrieved[V, none] {
			return func(yield func(scheduler.Found[V, none], error) bool) {
				if w.beforeRead != nil {
					w.beforeRead()
				}
				for key, v := range w.standing() {
					if strings.HasPrefix(key, prefix) && !yield(scheduler.Found[V, none]{Key: key, Value: v.(V), Foreign: w.isForeign(key)}, nil) {
						return
					}
				}
			}
		},
	})
	if err != nil {
		tb.Fatal(err)
	}
}

// newWorld starts an agent with the memory of an earlier one; nil: none.
func newWorld(tb testing.TB, memory orchestrator.Memory) *world {
	w := &world{stands: map[string]proto.Message{}, foreign: map[string]bool{}, fails: map[string]error{}, log: slog.New(slog.DiscardHandler)}
	w.sched = scheduler.New(scheduler.Options{Log: w.log})
	kind(tb, w, "interface", func(_ string, v *interfaces.Interface) error {
		if v.Mtu > 9216 {
			return &models.FieldError{Field: "mtu", Value: v.Mtu, Expected: "at most 9216"}
		}
		return nil
	}, nil)
	kind(tb, w, "route", nil, func(_ string, v *l3.Route) []scheduler.Dependency {
		return []scheduler.Dependency{{Label: "outgoing-interface-is-up", Key: ifPrefix + v.OutgoingInterface}}
	})
	kind[*ipsec.SecurityAssociation](tb, w, "sa", nil, nil)
	w.orch = orchestrator.New(w.sched, orchestrator.Options{Log: w.log, Memory: memory})
	ctx, cancel := context.WithCancel(context.Background())
	var running errgroup.Group
	running.Go(func() error { return w.sched.Run(ctx) })
	running.Go(func() error { return w.orch.Run(ctx) })
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := running.Wait(); err != nil {
			tb.Error(err)
		}
	})
	tb.Cleanup(w.stop)
	return w
}

func (w *world) set(key string, v proto.Message) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.fails[key] != nil:
		return w.fails[key]
	case v == nil:
		delete(w.stands, key)
	default:
		w.stands[key] = v
	}
	return nil
}

// appear makes a value stand that the agent did not make, and keeps.
func (w *world) appear(key string, v proto.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stands[key], w.foreign[key] = v, true
}

func (w *world) isForeign(key string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.foreign[key]
}

var errFull = errors.New("no space left")

// fail makes the verbs of a key fail, or work again.
func (w *world) fail(key string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fails[key] = err
}

func (w *world) standing() map[string]proto.Message {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.stands)
}

// names lists what stands, by the last parts of the keys: "if1 10.1.0.0/16/if1".
func (w *world) names() string {
	var out []string
	for key := range w.standing() {
		out = append(out, strings.TrimPrefix(strings.TrimPrefix(key, ifPrefix), routePrefix))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// serve starts a server with a configuration, and returns its address.
func (w *world) serve(tb testing.TB, config grpc.Config) net.Addr {
	tb.Helper()
	if err := config.Complete(); err != nil {
		tb.Fatal(err)
	}
	ready := make(chan net.Addr, 1)
	options := w.more
	options.Scheduler, options.Layers, options.Log = w.sched, w.orch, w.log
	s := grpc.Server{Config: config, Options: options, Ready: ready}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	tb.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			tb.Error(err)
		}
	})
	select {
	case addr := <-ready:
		return addr
	case err := <-ended:
		ended <- nil
		tb.Fatal(err)
		return nil
	}
}

// dial returns a connection to a server on a free port of the loopback.
func (w *world) dial(tb testing.TB) *rpc.ClientConn {
	addr := w.serve(tb, grpc.Config{Endpoint: "127.0.0.1:0"})
	return connect(tb, addr.String(), rpc.WithTransportCredentials(insecure.NewCredentials()))
}

func connect(tb testing.TB, target string, options ...rpc.DialOption) *rpc.ClientConn {
	tb.Helper()
	c, err := rpc.NewClient("passthrough:///"+target, options...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { c.Close() })
	return c
}

// eventually waits for a condition that depends on the states of values.
func (w *world) eventually(tb testing.TB, what string, is func() bool) {
	tb.Helper()
	watch := w.sched.Watch("")
	defer watch.Close()
	for !is() {
		if _, err := watch.Next(tb.Context()); err != nil {
			tb.Fatalf("%s: %v", what, err)
		}
	}
}

func iface(name string) *interfaces.Interface { return &interfaces.Interface{Name: name} }

func route(to, via string) *l3.Route { return &l3.Route{DstNetwork: to, OutgoingInterface: via} }
