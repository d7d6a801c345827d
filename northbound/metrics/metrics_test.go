package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/metrics"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/proto/ligato/govppmux"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

type none = struct{}

// world is a scheduler with two configured interfaces and one that fails, and a connection that
// is not ready.
func world(t *testing.T) *scheduler.Scheduler {
	t.Helper()
	s := scheduler.New(scheduler.Options{})
	if _, err := s.Connection("vpp"); err != nil {
		t.Fatal(err)
	}
	_, err := scheduler.Register(s.OnConnection("vpp"), scheduler.Descriptor[*wrapperspb.BoolValue, none]{
		Name: "vpp-feature", Prefix: "vpp/feature/",
		Create: func(context.Context, string, *wrapperspb.BoolValue) (none, error) { return none{}, nil },
		Delete: func(context.Context, string, *wrapperspb.BoolValue, none) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	declare(t, s, "eth1", "eth2", "broken")
	return s
}

// declare runs s and declares interfaces. Those called broken fail.
func declare(tb testing.TB, s *scheduler.Scheduler, names ...string) {
	tb.Helper()
	model := models.For[*interfaces.Interface]()
	_, err := scheduler.Register(s, scheduler.Descriptor[*interfaces.Interface, none]{
		Name: "linux-interface", Model: model,
		Create: func(_ context.Context, key string, _ *interfaces.Interface) (none, error) {
			if strings.HasSuffix(key, "broken") {
				return none{}, scheduler.Terminal(errors.New("broken"))
			}
			return none{}, nil
		},
		Delete: func(context.Context, string, *interfaces.Interface, none) error { return nil },
		Derived: func(_ string, v *interfaces.Interface) []scheduler.KeyValue {
			return []scheduler.KeyValue{{Key: "linux/interface/state/" + v.Name + "/UP", Value: &wrapperspb.BoolValue{}}}
		},
	})
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	tb.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			tb.Error(err)
		}
	})
	var txn scheduler.Txn
	for _, name := range names {
		m := &interfaces.Interface{Name: name}
		v, err := s.Value(model.KeyOf(name), m)
		if err != nil {
			tb.Fatal(err)
		}
		txn.Changes = append(txn.Changes, v.Change())
	}
	var failed *scheduler.TxnError
	if _, err := s.Commit(context.Background(), txn); err != nil && !errors.As(err, &failed) {
		tb.Fatal(err)
	}
}

// sources are two sources: one follows its store, the other has lost it.
type sources struct{}

func (sources) Health() []orchestrator.Health {
	return []orchestrator.Health{
		{Health: kvdbsync.Health{Source: "etcd", State: kvdbsync.Synced, Keys: 3, Lag: 1500 * time.Millisecond, Waiting: 2, Listings: 4}, Complete: true, Refused: 1},
		{Health: kvdbsync.Health{Source: "redis", State: kvdbsync.Lost, Failures: 7, Gaps: 1}},
	}
}

func full(t *testing.T) *metrics.Metrics {
	return metrics.New(metrics.Options{
		Scheduler: world(t), Sources: sources{}, Build: metrics.Build{Version: "v1", Revision: "abc", Branch: "main", GoVersion: "go1"},
		Health: func() metrics.Health {
			return metrics.Health{
				Service: "vpp1", Version: "v1", BuildDate: "today", State: metrics.OK,
				Parts: []metrics.Part{{Name: "etcd", State: metrics.OK}, {Name: "vpp", State: metrics.Failed}},
			}
		},
		Models: map[string]func() proto.Message{
			"govppmux.stats": func() proto.Message { return &govppmux.Metrics{RequestsSent: 12} },
		},
	})
}

func get(t *testing.T, h http.Handler, path string) (code int, body string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}

func TestMetrics(t *testing.T) {
	code, body := get(t, full(t).Handler(), "/metrics")
	if code != http.StatusOK {
		t.Fatalf("answered %d: %s", code, body)
	}
	for _, want := range []string{
		`keyplane_values{descriptor="linux-interface",model="linux.interfaces.interface",state="CONFIGURED"} 2`,
		`keyplane_values{descriptor="linux-interface",model="linux.interfaces.interface",state="FAILED"} 1`,
		`keyplane_values{descriptor="",model="",state="CONFIGURED"} 2`,
		`keyplane_connection_ready{connection="vpp"} 0`,
		`keyplane_connection_unknown_kinds{connection="vpp"} 1`,
		`keyplane_connection_unknown_since_timestamp_seconds{connection="vpp"} `,
		`keyplane_operations_total{verb="create"} 5`,
		`keyplane_operation_failures_total 1`,
		`keyplane_operation_duration_seconds_count{descriptor="linux-interface",verb="create"} 3`,
		`ligato_kvscheduler_txn_processed 1`,
		`ligato_kvscheduler_queue_wait_seconds_count{txn_type="NBTransaction"} 1`,
		// Both of a summary and of a histogram.
		`ligato_kvscheduler_txn_duration_seconds_bucket{le="+Inf",txn_type="NBTransaction"} 1`,
		`ligato_kvscheduler_txn_duration_seconds{txn_type="NBTransaction",quantile="0.5"} `,
		`ligato_kvscheduler_queue_wait_seconds{txn_type="NBTransaction",quantile="0.99"} `,
		`ligato_kvscheduler_queue_wait_seconds_bucket{le="+Inf",txn_type="NBTransaction"} 1`,
		`ligato_kvscheduler_txn_process_duration_seconds{slice="execute",quantile="0.9"} `,
		`ligato_build_info{branch="main",goversion="go1",revision="abc",version="v1"} 1`,
		"ligato_process_cpu_seconds_total ", "ligato_process_resident_memory_bytes ", "ligato_process_start_time_seconds ",
		`ligato_kvscheduler_txn_process_duration_seconds_count{slice="execute"}`,
		`keyplane_source_lag_seconds{source="etcd"} 1.5`,
		`keyplane_source_state{source="etcd",state="synced"} 1`,
		`keyplane_source_state{source="redis",state="lost"} 1`,
		`keyplane_source_state{source="redis",state="synced"} 0`,
		`keyplane_source_refused_keys{source="etcd"} 1`,
		"go_goroutines ", "process_cpu_seconds_total ",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s", want)
		}
	}
	if t.Failed() {
		t.Log(body)
	}
}

// Prometheus' own linter finds nothing wrong with names and help texts, except in the names
// that are kept from the older agent.
func TestMetricsAreWellNamed(t *testing.T) {
	_, body := get(t, full(t).Handler(), "/metrics")
	problems, err := promlint.New(strings.NewReader(body)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if !strings.HasPrefix(p.Metric, "ligato_") && !strings.HasPrefix(p.Metric, "go_") && !strings.HasPrefix(p.Metric, "process_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

func TestHealth(t *testing.T) {
	_, body := get(t, full(t).HealthHandler(), "/health")
	for _, want := range []string{
		`service_health{service="vpp1"} 1`,
		`service_info{build_date="today",build_version="v1",service="vpp1"} 1`,
		`service_dependency_health{dependency="vpp",service="vpp1"} 2`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in\n%s", want, body)
		}
	}
}

func TestModel(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics/{model}", full(t).ModelHandler())
	if code, body := get(t, mux, "/metrics/govppmux.stats"); code != http.StatusOK || !strings.Contains(strings.ReplaceAll(body, " ", ""), `"requestsSent":"12"`) {
		t.Errorf("answered %d: %s", code, body)
	}
	if code, body := get(t, mux, "/metrics/vpp.stats"); code != http.StatusNotFound || !strings.Contains(body, "expected one of [govppmux.stats]") {
		t.Errorf("of an unknown model answered %d: %s", code, body)
	}
}

// Without any part, the figures of the process are there.
func TestZeroOptions(t *testing.T) {
	if code, body := get(t, metrics.New(metrics.Options{}).Handler(), "/metrics"); code != http.StatusOK || !strings.Contains(body, "go_goroutines") {
		t.Errorf("answered %d: %s", code, body)
	}
}

// BenchmarkMetrics collects the figures of a scheduler with few and with many values: the time
// must not depend on them.
func BenchmarkMetrics(b *testing.B) {
	for _, n := range []int{100, 50_000} { // with a property each
		b.Run(map[int]string{100: "200", 50_000: "100k"}[n]+"-values", func(b *testing.B) {
			s := scheduler.New(scheduler.Options{})
			names := make([]string, n)
			for i := range names {
				names[i] = fmt.Sprint("if", i)
			}
			declare(b, s, names...)
			h := metrics.New(metrics.Options{Scheduler: s, Sources: sources{}}).Handler()
			for b.Loop() {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/metrics", nil))
				if w.Code != http.StatusOK {
					b.Fatal(w.Body)
				}
			}
		})
	}
}
