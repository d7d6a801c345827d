package agent

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/internal/logs"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/models"
)

func TestConfigurationThatCannotBeMeant(t *testing.T) {
	tests := []struct{ file, text, want string }{
		{"kvscheduler.conf", "concurrency: -1", "concurrency: -1: expected a number above zero"},
		{"kvscheduler.conf", "concurrency: 0", "concurrency: 0: expected a number above zero"},
		{"kvscheduler.conf", "resync-period: 1ms", "resync-period: 1ms: expected a duration from 1s on, or 0 for never"},
		{"kvscheduler.conf", "drift-period: -1m", "drift-period: -1m0s: expected a duration from 1s on, or 0 for never"},
		{"telemetry.conf", "skipped: [threads]", "skipped[0]: \"threads\"; expected some of"},
		{"kvscheduler.conf", "operation-timeout: -1s", "operation-timeout: -1s: expected a duration above zero, such as 30s"},
		{"kvscheduler.conf", "history-count: -5", "history-count: -5: expected a number above zero"},
		{"kvscheduler.conf", "history-bytes: 0", "history-bytes: 0: expected a number above zero"},
		{"kvscheduler.conf", "retry-period: 0", "retry-period: 0s: expected a duration above zero"},
		{"kvscheduler.conf", "retry-period: 2m", "retry-max-period: 1m0s: expected no less than retry-period, 2m0s"},
		{"kvscheduler.conf", "retry-count: -1", "retry-count: -1: expected a number of attempts"},
		{"orchestrator.conf", "anti-entropy: 0s", "anti-entropy: 0s: expected a duration above zero, such as 10m, or a negative one"},
		{"orchestrator.conf", "start-patience: -1s", "start-patience: -1s: expected a duration above zero"},
		{"orchestrator.conf", "grace-time: 0", "grace-time: 0s: expected a duration above zero"},
		{"orchestrator.conf", "grace-percent: 0", "grace-percent: 0: expected a number from 1 to 100"},
		{"orchestrator.conf", "grace-percent: 101", "grace-percent: 101: expected a number from 1 to 100"},
		{"orchestrator.conf", "grace-keys: 0", "grace-keys: 0: expected a number above zero"},
		{"orchestrator.conf", "priorities: {etdc: 5}", "priorities.etdc: 5: expected only grpc, localclient, " + strings.Join(orchestratorConfig{}.storeNames(), ", ")},
		{"orchestrator.conf", "datasrc-priorities: {etcd: 5}", "datasrc-priorities.etcd: 5: expected this name in priorities"},
		{"orchestrator.conf", "max-datasrc: 0", "max-datasrc: 0: expected a number above zero"},
		{"orchestrator.conf", "publish-status: [etcd, file]", "publish-status[1]: file: expected names of stores: " + strings.Join(orchestratorConfig{}.storeNames(), ", ")},
		{"orchestrator.conf", "publish-status-rate: 0", "publish-status-rate: 0: expected a number of writes a second"},
		{"etcd.conf", "session-ttl: -1", "session-ttl: "},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			err := configure(t, tt.file, tt.text)
			if want := tt.file + ": " + tt.want; !errors.Is(err, errConfig) || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v\nwant %s", err, want)
			}
		})
	}
}

func TestConfigurationAtItsBounds(t *testing.T) {
	for file, text := range map[string]string{
		"kvscheduler.conf":  "{print-txn-limit: -1, concurrency: 1, operation-timeout: 1, history-count: 1, history-bytes: 1, retry-period: 1m, retry-count: 0}",
		"orchestrator.conf": "{anti-entropy: -1s, start-patience: 1, grace-time: 1, grace-percent: 100, grace-keys: 1, priorities: {etcd: 0, bolt: -1}, publish-status: [], publish-status-rate: 1}",
	} {
		if err := configure(t, file, text); err != nil {
			t.Error(err)
		}
	}
}

func TestPriorityOfAStore(t *testing.T) {
	kind := storeKind{name: "etcd", priority: 10}
	if got := defaultOrchestrator().priority(kind); got != 10 {
		t.Errorf("nothing said: %d", got)
	}
	if got := (orchestratorConfig{Priorities: map[string]int{"etcd": 0}}).priority(kind); got != 0 {
		t.Errorf("zero said: %d", got)
	}
}

func TestLayersOfClients(t *testing.T) {
	c := orchestratorConfig{Priorities: map[string]int{"grpc": 0, "etcd": 3}, Datasrc: map[string]int{"ci": 7}, VolatileDatasrc: []string{"ci"}}
	for name, want := range map[string]int{"grpc": 0, "ci": 7, "localclient": 50, "other": 0} {
		if got := c.layers().Priority(name); got != want {
			t.Errorf("%s has priority %d, want %d", name, got, want)
		}
	}
	if got := defaultOrchestrator().layers().Priority("other"); got != 40 {
		t.Errorf("by default, another data source has priority %d", got)
	}
	all := orchestratorConfig{VolatileDatasrc: []string{"*"}}.layers().Volatile
	if one := c.layers().Volatile; !one("ci") || one("grpc") || !all("grpc") {
		t.Error("the wrong data sources survive a restart")
	}
}

// Agents of two labels share no state, whatever the configuration says.
func TestEachLabelHasItsState(t *testing.T) {
	said, nothing := "/state", ""
	for want, c := range map[string]orchestratorConfig{"/state/vpp1": {StateDir: &said}, "": {StateDir: &nothing}} {
		if got := c.stateDir("vpp1", os.Getenv); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// configure reads a folder with one file beside that of a store.
func configure(t *testing.T, file, text string) error {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"filedb.conf": "configuration-paths: [x]", file: text} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Options{Args: []string{"-config-dir=" + dir}, Env: environment(nil)}.parse()
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	conf, err := readConfig(s, log)
	if err != nil {
		return err
	}
	used, err := openStores(s, conf.files, conf.orchestrator, kvdbsync.Bounds{}, models.BuiltIn(), nil, logs.New(logs.Options{Out: io.Discard}))
	if err != nil {
		return err
	}
	return used.Close()
}
