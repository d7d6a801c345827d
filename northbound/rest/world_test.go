package rest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest/counters"
	"github.com/keyplane/keyplane/northbound/rest/health"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/northbound/rest/wire/counts"
	"github.com/keyplane/keyplane/proto/ligato/govppmux"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/linux/l3"
	"github.com/keyplane/keyplane/scheduler"
)

// A world is a scheduler over a southbound in memory, and the handler that shows it.
type world struct {
	t       *testing.T
	sched   *scheduler.Scheduler
	handler http.Handler
	health  *health.Health
	layers  Declarer // of declaring

	mu     sync.Mutex
	stands map[string]proto.Message
	broken map[string]bool // by key, or by descriptor for Retrieve
}

type ifMeta struct {
	Index int `json:"LinuxIfIndex"` // as that of Linux interfaces
}

const (
	ifPrefix    = "config/linux/interfaces/v2/interface/"
	routePrefix = "config/linux/l3/v2/route/"
)

// inWorld runs f with all time that of a bubble.
func inWorld(t *testing.T, f func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, sched: scheduler.New(scheduler.Options{}), stands: map[string]proto.Message{}, broken: map[string]bool{}}
		w.register()
		w.handler = Handler(w.options())
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.sched.Run(ctx) }()
		f(w)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// options returns the options of an agent that has all parts.
func (w *world) options() Options {
	version := wire.Version{App: "agent", Version: "v1.2.3", OS: "linux", BuildTime: 1600000000}
	w.health = &health.Health{Scheduler: w.sched, Sources: knownSources{time.Now()}, Version: version, Started: time.Now(), Southbounds: func() []health.Southbound {
		return []health.Southbound{{Name: "vpp", Since: time.Now(), Err: errors.New("no such file")}}
	}}
	return Options{
		Scheduler: w.sched, Sources: knownSources{time.Now()}, Label: "vpp1", Version: version, Health: w.health, Logs: &knownLogs{levels: map[string]string{"scheduler": "info", "etcd": "debug"}},
		VPP: func(context.Context) wire.VPP {
			return wire.VPP{Socket: "/run/vpp/api.sock", LastError: "no such file"}
		},
		Command: func(_ context.Context, line string) (string, error) {
			if line != "show version" {
				return "", errors.New("VPP is not connected")
			}
			return "vpp v25.10\n", nil
		},
		Telemetry: counters.Readers{
			Memory:  func(context.Context) (any, error) { return map[string]int{"used": 3}, nil },
			Runtime: func(context.Context) (any, error) { return nil, errors.New("no stats segment") },
			Command: func(_ context.Context, line string) (string, error) {
				if line == "show buffers" {
					return "", errors.New("VPP is not connected")
				}
				return "output of " + line + "\n", nil
			},
			LinuxInterfaces: func(context.Context) ([]counts.LinuxInterfaceStats, error) {
				return []counts.LinuxInterfaceStats{{Name: "if1", HostName: "veth1", RxPackets: 3}}, nil
			},
			Requests: func() counts.MuxStats {
				return counts.MuxStats{RequestsSent: 2, RequestsFail: 1, Messages: []counts.Method{{Name: "show_version", Count: 1}}, Errors: []counts.MessageErrors{{Name: "show_version", Count: 1}}}
			},
			Configurator: func() counts.ConfiguratorStats {
				return counts.ConfiguratorStats{AllOperations: counts.Method{Name: "all", Count: 1}, Operations: []counts.Method{{Name: "Update", Count: 1}}}
			},
			Metrics: text200("# metrics\n"), Health: text200("# health\n"),
			Models: map[string]func() any{"govppmux.stats": func() any { return &govppmux.Metrics{RequestsSent: 2} }},
		},
	}
}

// text200 answers a text.
func text200(text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) })
}

// knownLogs has the levels of loggers.
type knownLogs struct {
	mu     sync.Mutex
	levels map[string]string
}

func (l *knownLogs) Levels() map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.levels)
}

func (l *knownLogs) SetLevel(logger, level string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.levels[logger] == "" {
		return fmt.Errorf("%s: %w", logger, ErrNoLogger)
	}
	if level == "loud" {
		return errors.New("level is loud; expected debug, info, warn or error")
	}
	l.levels[logger] = level
	return nil
}

func (w *world) do(key string, change func()) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken[key] {
		return errors.New("out of memory")
	}
	change()
	return nil
}

func (w *world) put(key string, v proto.Message) error {
	return w.do(key, func() { w.stands[key] = v })
}

func (w *world) drop(key string) error { return w.do(key, func() { delete(w.stands, key) }) }

func found[V proto.Message, M any](w *world, name, prefix string, meta M) func(context.Context, []scheduler.Desired[V]) scheduler.Retrieved[V, M] {
	return func(context.Context, []scheduler.Desired[V]) scheduler.Retrieved[V, M] {
		return func(yield func(scheduler.Found[V, M], error) bool) {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.broken[name] {
				yield(scheduler.Found[V, M]{}, errors.New("dump was interrupted"))
				return
			}
			for _, key := range slices.Sorted(maps.Keys(w.stands)) {
				foreign := strings.HasSuffix(key, "/foreign")
				if strings.HasPrefix(key, prefix) && !yield(scheduler.Found[V, M]{Key: key, Value: w.stands[key].(V), Meta: meta, Foreign: foreign}, nil) {
					return
				}
			}
		}
	}
}

// register makes descriptors of interfaces with derived addresses and a property,
// of routes over them, and of host interfaces that are only noticed.
func (w *world) register() {
	type none = struct{}
	_, err := scheduler.Register(w.sched, scheduler.Descriptor[*interfaces.Interface, ifMeta]{
		Name: "interface", Model: models.For[*interfaces.Interface](),
		Validate: func(_ string, v *interfaces.Interface) error {
			if v.Mtu > 9216 {
				return &models.FieldError{Field: "mtu", Value: v.Mtu, Expected: "at most 9216"}
			}
			return nil
		},
		Claims: func(_ string, v *interfaces.Interface) []scheduler.Claim {
			if v.HostIfName == "" {
				return nil
			}
			return []scheduler.Claim{{Resource: "host/" + v.HostIfName, Field: "host_if_name", Value: v.HostIfName, Want: "a name of its own"}}
		},
		Derived: func(_ string, v *interfaces.Interface) (out []scheduler.KeyValue) {
			for _, a := range v.IpAddresses {
				out = append(out, scheduler.KeyValue{Key: "linux/interface/" + v.Name + "/address/" + a, Value: &emptypb.Empty{}})
			}
			return append(out, scheduler.KeyValue{Key: "linux/interface/state/" + v.Name + "/UP", Value: &emptypb.Empty{}})
		},
		Create: func(_ context.Context, key string, v *interfaces.Interface) (ifMeta, error) {
			return ifMeta{1}, w.put(key, v)
		},
		Update: func(_ context.Context, key string, _, v *interfaces.Interface, m ifMeta) (ifMeta, error) {
			return m, w.put(key, v)
		},
		Delete:   func(_ context.Context, key string, _ *interfaces.Interface, _ ifMeta) error { return w.drop(key) },
		Retrieve: found[*interfaces.Interface](w, "interface", ifPrefix, ifMeta{1}),
	})
	w.must(err)
	_, err = scheduler.Register(w.sched, scheduler.Descriptor[*emptypb.Empty, none]{
		Name: "address", Prefix: "linux/interface/",
		Match: func(key string) bool { return strings.Contains(key, "/address/") },
		Validate: func(key string, _ *emptypb.Empty) error {
			if strings.HasSuffix(key, "/nowhere") {
				return errors.New("expected an address")
			}
			return nil
		},
		Create: func(_ context.Context, key string, _ *emptypb.Empty) (none, error) {
			return none{}, w.do(key, func() {})
		},
		Delete: func(_ context.Context, key string, _ *emptypb.Empty, _ none) error { return w.do(key, func() {}) },
	})
	w.must(err)
	_, err = scheduler.Register(w.sched, scheduler.Descriptor[*l3.Route, none]{
		Name: "route", Model: models.For[*l3.Route](), RetrieveAfter: []string{"interface"},
		Dependencies: func(_ string, r *l3.Route) []scheduler.Dependency {
			out := []scheduler.Dependency{{Label: "interface-is-up", Key: "linux/interface/state/" + r.OutgoingInterface + "/UP"}}
			if r.GwAddr != "" {
				out = append(out, scheduler.Dependency{Label: "has-address", Prefixes: []string{"linux/interface/" + r.OutgoingInterface + "/address/"}})
			}
			return out
		},
		Create:   func(_ context.Context, key string, r *l3.Route) (none, error) { return none{}, w.put(key, r) },
		Delete:   func(_ context.Context, key string, _ *l3.Route, _ none) error { return w.drop(key) },
		Retrieve: found[*l3.Route](w, "route", routePrefix, none{}),
	})
	w.must(err)
	_, err = scheduler.Register(w.sched, scheduler.Descriptor[*emptypb.Empty, none]{Name: "host", Prefix: "linux/interface/host-name/"})
	w.must(err)
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// commit declares values; their keys are those they make.
func (w *world) commit(description string, values ...proto.Message) error {
	w.t.Helper()
	txn := scheduler.Txn{Description: description, Retry: scheduler.RetryPolicy{Count: 1}}
	for _, m := range values {
		model, _ := models.BuiltIn().ForMessage(m)
		key, err := model.Key(m)
		w.must(err)
		v, err := w.sched.Value(key, m)
		if err != nil {
			txn.Changes = append(txn.Changes, scheduler.Change{Key: key, Err: err})
			continue
		}
		txn.Changes = append(txn.Changes, v.Change())
	}
	_, err := w.sched.Commit(w.t.Context(), txn)
	return err
}

// ask asks the handler, and returns what it answers.
func (w *world) ask(method, url, body string) (status int, answer string) {
	w.t.Helper()
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, httptest.NewRequestWithContext(w.t.Context(), method, url, content))
	return rec.Code, rec.Body.String()
}
