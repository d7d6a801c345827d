package cli_test

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/keyplane/keyplane/connectors/bolt"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/kvdb"
	"github.com/keyplane/keyplane/northbound/rest"
	"github.com/keyplane/keyplane/northbound/rest/health"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/linux/l3"
	"github.com/keyplane/keyplane/scheduler"
)

// memory is a southbound whose interface "broken" cannot be made.
type memory struct {
	mu         sync.Mutex
	stands     map[string]proto.Message
	connection string // of the interfaces
}

func (m *memory) put(key string, v proto.Message) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if strings.HasSuffix(key, "/broken") {
		return scheduler.Terminal(errors.New("the kernel lacks it"))
	}
	m.stands[key] = v
	return nil
}

func (m *memory) drop(key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.stands, key)
	return nil
}

func retrieve[V proto.Message, M any](m *memory, prefix string, meta M) func(context.Context, []scheduler.Desired[V]) scheduler.Retrieved[V, M] {
	return func(context.Context, []scheduler.Desired[V]) scheduler.Retrieved[V, M] {
		return func(yield func(scheduler.Found[V, M], error) bool) {
			m.mu.Lock()
			defer m.mu.Unlock()
			for _, key := range slices.Sorted(maps.Keys(m.stands)) {
				if strings.HasPrefix(key, prefix) && !yield(scheduler.Found[V, M]{Key: key, Value: m.stands[key].(V), Meta: meta, Foreign: strings.HasSuffix(key, "/foreign")}, nil) {
					return
				}
			}
		}
	}
}

func (m *memory) register(s *scheduler.Scheduler) error {
	type none = struct{}
	type index struct{ Index int }
	ifs, routes := models.For[*interfaces.Interface](), models.For[*l3.Route]()
	_, err := scheduler.Register(s, scheduler.Descriptor[*interfaces.Interface, index]{
		Name: "interface", Model: ifs, Connection: m.connection,
		Validate: func(_ string, v *interfaces.Interface) error {
			if v.Mtu > 9216 {
				return &models.FieldError{Field: "mtu", Value: v.Mtu, Expected: "at most 9216"}
			}
			return nil
		},
		Derived: func(_ string, v *interfaces.Interface) []scheduler.KeyValue {
			return []scheduler.KeyValue{{Key: "linux/interface/state/" + v.Name + "/UP", Value: &emptypb.Empty{}}}
		},
		Create: func(_ context.Context, key string, v *interfaces.Interface) (index, error) {
			return index{1}, m.put(key, v)
		},
		Update: func(_ context.Context, key string, _, v *interfaces.Interface, i index) (index, error) {
			return i, m.put(key, v)
		},
		Delete:   func(_ context.Context, key string, _ *interfaces.Interface, _ index) error { return m.drop(key) },
		Retrieve: retrieve[*interfaces.Interface](m, ifs.Prefix(), index{1}),
	})
	if err != nil {
		return err
	}
	_, err = scheduler.Register(s, scheduler.Descriptor[*l3.Route, none]{
		Name: "route", Model: routes,
		Dependencies: func(_ string, r *l3.Route) []scheduler.Dependency {
			return []scheduler.Dependency{{Label: "interface-is-up", Key: "linux/interface/state/" + r.OutgoingInterface + "/UP"}}
		},
		Create:   func(_ context.Context, key string, r *l3.Route) (none, error) { return none{}, m.put(key, r) },
		Delete:   func(_ context.Context, key string, _ *l3.Route, _ none) error { return m.drop(key) },
		Retrieve: retrieve[*l3.Route](m, routes.Prefix(), none{}),
	})
	return err
}

// declared are the values of the scripts: one that stands with what needs it, one
// that waits, one that fails.
func declared() []proto.Message {
	return []proto.Message{
		&interfaces.Interface{Name: "veth1", Type: interfaces.Interface_VETH, Enabled: true},
		&l3.Route{OutgoingInterface: "veth1", DstNetwork: "10.1.0.0/16"},
		&l3.Route{OutgoingInterface: "veth9", DstNetwork: "10.9.0.0/16"},
		&interfaces.Interface{Name: "broken", Type: interfaces.Interface_VRF_DEVICE},
	}
}

// network: runs a scheduler over a southbound in memory, with values declared and a
// foreign interface, behind its HTTP server at PORT and its socket at SOCKET, where it has a
// store, too. At SECURED it speaks TLS with the certificate in ca.pem, and knows only
// anna, password "s:1". At EARLIER is an agent of an earlier release, at STRANGER something else.
func network(ts *testscript.TestScript, _ bool, _ []string) {
	m := &memory{stands: map[string]proto.Message{}}
	m.stands["config/linux/interfaces/v2/interface/foreign"] = &interfaces.Interface{Name: "foreign", Type: interfaces.Interface_DUMMY}
	s := scheduler.New(scheduler.Options{})
	ts.Check(m.register(s))
	ready := make(chan net.Addr, 1)
	web := rest.Server{Config: rest.Config{Endpoint: "127.0.0.1:0"}, Options: rest.Options{Scheduler: s, Sources: twoSources{}, Label: "vpp1", VPP: oldVPP, Logs: loggers{"etcd": "info", "kvscheduler": "warn"}}, Ready: ready}
	ts.Check(web.Config.Complete())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- s.Run(ctx) }()
	go func() { ended <- web.Run(ctx) }()
	ts.Defer(func() {
		cancel()
		ts.Check(errors.Join(<-ended, <-ended))
	})
	declare(ts, s)
	ts.Setenv("PORT", portOf(ts, (<-ready).String()))
	db, err := bolt.New(bolt.Config{Path: ts.MkAbs("keys.db")})
	ts.Check(err)
	ts.Defer(func() { ts.Check(db.Close()) })
	serve(ts, kvdb.Server{Stores: map[string]kvdbsync.Store{"bolt": db}, Beside: rest.Handler(web.Options)})
	secured(ts, rest.Handler(web.Options))
	earlier(ts, rest.Handler(web.Options))
	stranger(ts)
}

// unplugged: runs at PORT a scheduler whose interfaces are behind the connection net, which was lost after they and
// their routes had been made.
func unplugged(ts *testscript.TestScript, _ bool, _ []string) {
	m := &memory{stands: map[string]proto.Message{}, connection: "net"}
	s := scheduler.New(scheduler.Options{})
	link, err := s.Connection("net")
	ts.Check(err)
	ts.Check(m.register(s))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	ready := &health.Health{Scheduler: s}
	ready.Complete()
	web := httptest.NewServer(rest.Handler(rest.Options{Scheduler: s, Label: "vpp1", Health: ready}))
	ts.Defer(func() {
		web.Close()
		cancel()
		ts.Check(<-ended)
	})
	link.Ready()
	declare(ts, s)
	link.Lost(errors.New("no such file"))
	ts.Check(s.Sync(ts.Value(testKey{}).(testing.TB).Context()))
	ts.Setenv("PORT", portOf(ts, web.Listener.Addr().String()))
}

// earlier serves as an agent of a release that does not list its models, cannot search for
// values and has no stream of events, at EARLIER.
func earlier(ts *testscript.TestScript, h http.Handler) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if slices.Contains([]string{"/info/models", "/scheduler/values", "/scheduler/value", "/events"}, r.URL.Path) {
			r.URL.Path = "/info/none" // answers 404 with a JSON error
		}
		h.ServeHTTP(w, r)
	}))
	ts.Defer(s.Close)
	ts.Setenv("EARLIER", portOf(ts, s.Listener.Addr().String()))
}

// oldVPP is one that lacks something.
func oldVPP(context.Context) wire.VPP {
	return wire.VPP{
		Connected: true, Since: time.Now().Add(-time.Minute), Socket: "/run/vpp/api.sock", Version: "22.02-release", BuildDate: "2022-02-23",
		PID: 77, Messages: 1600, Connections: 2, LastError: "VPP is not connected: EOF", LastErrorAt: time.Now().Add(-2 * time.Minute),
		Capabilities: []wire.Capability{{Feature: "loopback", Message: "create_loopback_42bb5d22", Has: true}, {Feature: "DHCP client", Message: "dhcp_client_details_x"}},
		Plugins:      []wire.Plugin{{Name: "memif_plugin.so", Version: "22.02-release", Description: "Packet Memory Interface"}},
	}
}

func stranger(ts *testscript.TestScript) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Path != "/log/list" {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = io.WriteString(w, "<html>")
	}))
	ts.Defer(s.Close)
	ts.Setenv("STRANGER", portOf(ts, s.Listener.Addr().String()))
}

func portOf(ts *testscript.TestScript, address string) string {
	_, port, err := net.SplitHostPort(address)
	ts.Check(err)
	return port
}

func secured(ts *testscript.TestScript, h http.Handler) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "anna" || password != "s:1" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // of those who do not trust it
	ts.Defer(s.Close)
	ts.Setenv("SECURED", portOf(ts, s.Listener.Addr().String()))
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	ts.Check(os.WriteFile(ts.MkAbs("ca.pem"), ca, 0o600))
}

func declare(ts *testscript.TestScript, s *scheduler.Scheduler) {
	t := ts.Value(testKey{}).(testing.TB)
	txn := scheduler.Txn{Description: "from a script", Refresh: true, Replace: true}
	for _, message := range declared() {
		model, _ := models.BuiltIn().ForMessage(message)
		key, err := model.Key(message)
		ts.Check(err)
		v, err := s.Value(key, message)
		ts.Check(err)
		txn.Changes = append(txn.Changes, v.Change())
	}
	if _, err := s.Commit(t.Context(), txn); err == nil {
		ts.Fatalf("nothing failed")
	}
}

// loggers are log levels by name.
type loggers map[string]string

func (l loggers) Levels() map[string]string { return l }

func (l loggers) SetLevel(name, level string) error {
	switch {
	case l[name] == "":
		return rest.ErrNoLogger
	case level != "debug":
		return errors.New("level is \"" + level + "\"; expected debug, info, warn or error")
	}
	l[name] = level
	return nil
}
