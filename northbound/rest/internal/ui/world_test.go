package ui_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest"
	"github.com/keyplane/keyplane/northbound/rest/health"
	"github.com/keyplane/keyplane/northbound/rest/internal/auth"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/linux/l3"
	"github.com/keyplane/keyplane/scheduler"
)

const (
	interfacePrefix = "config/linux/interfaces/v2/interface/"
	routePrefix     = "config/linux/l3/v2/route/"
	manyPrefix      = "many/"
	farPrefix       = "far/"
)

// A world is a scheduler over a system in memory, and a server that shows it.
type world struct {
	t        *testing.T
	sched    *scheduler.Scheduler
	server   *httptest.Server
	requests atomic.Int64 // that the server has got
	sources  *sources
	engine   *scheduler.Connection // of which the health says nothing

	mu     sync.Mutex
	actual map[string]proto.Message
	broken map[string]bool // keys whose verbs fail
	fault  string          // the error of these verbs
}

// newWorld starts a world that ends with the test.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, sched: scheduler.New(scheduler.Options{Simulate: true}), actual: map[string]proto.Message{}, broken: map[string]bool{}, fault: "no buffer space available"}
	w.register()
	w.sources = &sources{keys: 2}
	h := rest.Handler(w.options())
	w.server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.requests.Add(1)
		h.ServeHTTP(rw, r)
	}))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.sched.Run(ctx) }()
	t.Cleanup(func() {
		w.server.CloseClientConnections()
		w.server.Close()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return w
}

// options are those of a server that shows the world.
func (w *world) options() rest.Options {
	version := wire.Version{App: "agent", Version: "v1.2.3"}
	return rest.Options{
		Scheduler: w.sched, Label: "edge-7", Version: version, Sources: w.sources,
		Health: &health.Health{Scheduler: w.sched, Sources: w.sources, Version: version, Started: time.Now(), Southbounds: unreached},
	}
}

// protected serves the world once more, for the user ann with the password pass and these
// permissions. It returns the address.
func (w *world) protected(permissions ...string) string {
	w.t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte("pass"), bcrypt.MinCost)
	w.must(err)
	config := rest.Config{
		Endpoint: "127.0.0.1:0", EnableTokenAuth: true, SignKey: strings.Repeat("k", auth.MinSignKey), HashCost: bcrypt.MinCost,
		Users: []auth.User{{Name: "ann", Password: string(hash), Permissions: permissions}},
	}
	w.must(config.Complete())
	ready := make(chan net.Addr, 1)
	server := rest.Server{Config: config, Options: w.options(), Ready: ready}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
	})
	return "http://" + (<-ready).String()
}

// verb changes the system, or fails.
func (w *world) verb(key string, value proto.Message) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken[key] {
		return errors.New(w.fault)
	}
	if value == nil {
		delete(w.actual, key)
	} else {
		w.actual[key] = value
	}
	return nil
}

// set changes the system behind the agent's back.
func (w *world) set(key string, value proto.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.actual[key] = value
}

// breaks makes the verbs of a key fail.
func (w *world) breaks(key string, broken bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken[key] = broken
}

// register makes descriptors of interfaces with a derived property, of routes that depend on
// it, and of values of which there may be many.
func (w *world) register() {
	type none = struct{}
	_, err := scheduler.Register(w.sched, scheduler.Descriptor[*interfaces.Interface, none]{
		Name: "interface", Model: models.For[*interfaces.Interface](),
		Validate: func(_ string, v *interfaces.Interface) error {
			if v.Mtu > 9216 {
				return &models.FieldError{Field: "mtu", Value: v.Mtu, Expected: "at most 9216"}
			}
			return nil
		},
		Derived: func(_ string, v *interfaces.Interface) []scheduler.KeyValue {
			return []scheduler.KeyValue{{Key: "linux/interface/state/" + v.Name + "/UP", Value: &emptypb.Empty{}}}
		},
		Create: func(_ context.Context, key string, v *interfaces.Interface) (none, error) {
			return none{}, w.verb(key, v)
		},
		Update: func(_ context.Context, key string, _, v *interfaces.Interface, _ none) (none, error) {
			return none{}, w.verb(key, v)
		},
		Delete: func(_ context.Context, key string, _ *interfaces.Interface, _ none) error { return w.verb(key, nil) },
		Retrieve: func(context.Context, []scheduler.Desired[*interfaces.Interface]) scheduler.Retrieved[*interfaces.Interface, none] {
			return func(yield func(scheduler.Found[*interfaces.Interface, none], error) bool) {
				w.mu.Lock()
				defer w.mu.Unlock()
				for _, key := range slices.Sorted(maps.Keys(w.actual)) {
					v, ok := w.actual[key].(*interfaces.Interface)
					if ok && !yield(scheduler.Found[*interfaces.Interface, none]{Key: key, Value: v}, nil) {
						return
					}
				}
			}
		},
	})
	w.must(err)
	_, err = scheduler.Register(w.sched, scheduler.Descriptor[*l3.Route, none]{
		Name: "route", Model: models.For[*l3.Route](),
		Dependencies: func(_ string, r *l3.Route) []scheduler.Dependency {
			return []scheduler.Dependency{{Label: "interface-is-up", Key: "linux/interface/state/" + r.OutgoingInterface + "/UP"}}
		},
		Create: func(_ context.Context, key string, r *l3.Route) (none, error) { return none{}, w.verb(key, r) },
		Delete: func(_ context.Context, key string, _ *l3.Route, _ none) error { return w.verb(key, nil) },
	})
	w.must(err)
	_, err = scheduler.Register(w.sched, scheduler.Descriptor[*emptypb.Empty, none]{
		Name: "many", Prefix: manyPrefix,
		Create: func(context.Context, string, *emptypb.Empty) (none, error) { return none{}, nil },
		Delete: func(context.Context, string, *emptypb.Empty, none) error { return nil },
	})
	w.must(err)
	w.engine, err = w.sched.Connection("containers")
	w.must(err)
	_, err = w.sched.Connection("vpp")
	w.must(err)
	for name, prefix := range map[string]string{"vpp": farPrefix, "containers": "containers/"} {
		_, err = scheduler.Register(w.sched.OnConnection(name), scheduler.Descriptor[*emptypb.Empty, none]{
			Name: name, Prefix: prefix,
			Create: func(context.Context, string, *emptypb.Empty) (none, error) { return none{}, nil },
			Delete: func(context.Context, string, *emptypb.Empty, none) error { return nil },
		})
		w.must(err)
	}
}

// unreached says that the connection of the values under farPrefix was never there.
func unreached() []health.Southbound {
	return []health.Southbound{{Name: "vpp", Err: errors.New("no such socket")}}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// commit declares values; their keys are those that they make. Values may be invalid or fail.
func (w *world) commit(description string, values ...proto.Message) {
	w.t.Helper()
	txn := scheduler.Txn{Description: description, Retry: scheduler.RetryPolicy{Never: true}}
	for _, m := range values {
		model, _ := models.BuiltIn().ForMessage(m)
		key, err := model.Key(m)
		w.must(err)
		v, err := w.sched.Value(key, m)
		if err != nil {
			txn.Changes = append(txn.Changes, scheduler.Change{Key: key, Err: err, Refused: m})
			continue
		}
		txn.Changes = append(txn.Changes, v.Change())
	}
	_, err := w.sched.Commit(w.t.Context(), txn)
	var failed *scheduler.TxnError
	if err != nil && !errors.As(err, &failed) {
		w.t.Fatal(err)
	}
}

// many declares so many values at once.
func (w *world) many(n int) {
	w.t.Helper()
	keys := make([]string, n)
	for i := range keys {
		keys[i] = manyKey(i)
	}
	w.declare(keys...)
}

// declare declares empty values.
func (w *world) declare(keys ...string) {
	w.t.Helper()
	txn := scheduler.Txn{Description: "many"}
	for _, key := range keys {
		v, err := w.sched.Value(key, &emptypb.Empty{})
		w.must(err)
		txn.Changes = append(txn.Changes, v.Change())
	}
	_, err := w.sched.Commit(w.t.Context(), txn)
	w.must(err)
}

// manyKey is the key of one of many values. Their order is that of their numbers.
func manyKey(i int) string { return fmt.Sprintf("%svalue/%06d", manyPrefix, i) }

// dummy is an interface.
func dummy(name string, mtu uint32) *interfaces.Interface {
	return &interfaces.Interface{Name: name, Type: interfaces.Interface_DUMMY, Enabled: true, Mtu: mtu, IpAddresses: []string{"10.1.0.1/24"}}
}

// route is a route over an interface.
func route(network, over string) *l3.Route {
	return &l3.Route{DstNetwork: network, OutgoingInterface: over, GwAddr: "10.1.0.2"}
}

// sources are two sources, of which one declares everything.
type sources struct {
	mu   sync.Mutex
	keys int
}

// set changes the number of keys.
func (s *sources) set(keys int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = keys
}

func (s *sources) Health() []orchestrator.Health {
	s.mu.Lock()
	defer s.mu.Unlock()
	since := time.Now().Add(-time.Minute).Truncate(time.Hour)
	return []orchestrator.Health{
		{Health: kvdbsync.Health{Source: "filedb", State: kvdbsync.Synced, Since: since, Keys: s.keys, Problems: 1}, Priority: 20, Complete: true, Faults: []string{"lan.yaml:3: no mapping"}},
		{Health: kvdbsync.Health{Source: "etcd", State: kvdbsync.Lost, Since: since, Rev: 712, Keys: 2, Err: errors.New("connection refused")}, Priority: 10, Complete: true},
	}
}

func (*sources) Relist() {}

func (*sources) Forget(_ context.Context, name string) (*scheduler.Record, error) {
	return nil, fmt.Errorf("%w: %q", orchestrator.ErrNoSource, name)
}

func (s *sources) Declarations(ctx context.Context, key string) ([]orchestrator.Declaration, error) {
	return s.DeclarationsUnder(ctx, key)
}

func (s *sources) DeclarationsUnder(_ context.Context, prefix string) ([]orchestrator.Declaration, error) {
	if !strings.HasPrefix(prefix, "config/") {
		return nil, nil
	}
	return []orchestrator.Declaration{{Key: prefix, Source: "filedb", Priority: 20, Effective: true}}, nil
}
