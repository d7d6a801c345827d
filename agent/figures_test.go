package agent

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/keyplane/keyplane/descriptors/vpp"
	"github.com/keyplane/keyplane/internal/logs"
	"github.com/keyplane/keyplane/northbound/metrics"
	"github.com/keyplane/keyplane/northbound/rest/counters"
	"github.com/keyplane/keyplane/northbound/rest/health"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/scheduler"
)

// registered returns the names of all metrics that an agent with a VPP and a source offers.
func registered(t *testing.T) map[string]bool {
	t.Helper()
	sched := scheduler.New(scheduler.Options{})
	plane, err := vpp.Register(sched, vpp.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	orch := orchestrator.New(sched, orchestrator.Options{Log: slog.New(slog.DiscardHandler)})
	m := metrics.New(metrics.Options{Scheduler: sched, Sources: orch})
	names := map[string]bool{}
	described := func(c prometheus.Collector) {
		all := make(chan *prometheus.Desc)
		go func() { c.Describe(all); close(all) }()
		for d := range all {
			names[regexp.MustCompile(`fqName: "([^"]*)"`).FindStringSubmatch(d.String())[1]] = true
		}
	}
	described(m.Registry())
	described(plane.Collector())
	described(plane.Telemetry(configuration{}.telemetry).Collector("vpp1"))
	return names
}

// isRegistered reports whether a name is that of a metric, or of a part of a histogram.
func isRegistered(names map[string]bool, name string) bool {
	for _, part := range []string{"", "_bucket", "_sum", "_count"} {
		if whole, ok := strings.CutSuffix(name, part); ok && names[whole] {
			return true
		}
	}
	return false
}

var metricName = regexp.MustCompile(`\b(?:keyplane|ligato|vpp|go|process)_[a-z0-9_]+\b`)

// Every metric that the dashboard asks for exists.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile("../conf/grafana-dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil || len(dashboard.Panels) == 0 {
		t.Fatalf("%d panels: %v", len(dashboard.Panels), err)
	}
	names := registered(t)
	for _, p := range dashboard.Panels {
		if len(p.Targets) == 0 {
			t.Errorf("%s asks for nothing", p.Title)
		}
		for _, target := range p.Targets {
			asked := metricName.FindAllString(target.Expr, -1)
			if len(asked) == 0 {
				t.Errorf("%s: %s asks for no metric", p.Title, target.Expr)
			}
			for _, name := range asked {
				if !isRegistered(names, name) {
					t.Errorf("%s: there is no metric %s", p.Title, name)
				}
			}
		}
	}
}

// docs/metrics.md lists every metric of ours, and no others.
func TestMetricsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	names, listed := registered(t), map[string]bool{}
	missing := []string{ // of older agents; the document says that they are absent
		"vpp_memory_objects", "vpp_memory_pages", "vpp_memory_free_fastbin_blks", "vpp_buffers_alloc", "vpp_buffers_free",
	}
	for _, name := range regexp.MustCompile("`((?:keyplane|ligato|vpp)_[a-z0-9_]+)`").FindAllStringSubmatch(string(text), -1) {
		listed[name[1]] = true
		if !names[name[1]] && !slices.Contains(missing, name[1]) {
			t.Errorf("docs/metrics.md has %s, which does not exist", name[1])
		}
	}
	for name := range names {
		if !listed[name] && !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") {
			t.Errorf("docs/metrics.md lacks %s", name)
		}
	}
}

// An agent without VPP has the other figures.
func TestFiguresWithoutVPP(t *testing.T) {
	sched := scheduler.New(scheduler.Options{})
	a := assembly{settings: &settings{}, loggers: logs.New(logs.Options{Out: io.Discard}), Parts: Parts{Scheduler: sched, Label: "x", Log: slog.New(slog.DiscardHandler)}, health: &health.Health{Scheduler: sched}}
	a.Orchestrator = &Layers{Orchestrator: orchestrator.New(sched, orchestrator.Options{Log: a.Log})}
	a.measure()
	o, err := a.observe()
	if err != nil {
		t.Fatal(err)
	}
	shown := o.addTo(counters.Readers{})
	if shown.Metrics == nil || shown.Health == nil || shown.Requests != nil || shown.Memory != nil {
		t.Errorf("it shows %+v", shown)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, task := range o.tasks {
		if err := task.Run(ctx); err != nil {
			t.Error(err)
		}
	}
}
