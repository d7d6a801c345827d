package agent

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/keyplane/keyplane/connectors/filedb"
	"github.com/keyplane/keyplane/descriptors/linux"
	"github.com/keyplane/keyplane/descriptors/vpp"
	"github.com/keyplane/keyplane/descriptors/vpp/telemetry"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/grpc"
	"github.com/keyplane/keyplane/northbound/rest"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/txnlog"
)

// A schedulerConfig is the content of kvscheduler.conf. Its keys are those of existing
// deployments; conf/kvscheduler.conf documents them for operators.
type schedulerConfig struct {
	// The transaction log: whether it has everything, or a line for each value, and how many
	// operations and values of a transaction it shows at most (negative: all).
	Print           bool `yaml:"print-txn-summary"`
	PrintOperations bool `yaml:"print-txn-operations"`
	PrintLimit      int  `yaml:"print-txn-limit"`
	// Simulate plans each transaction before its first operation, for the log.
	Simulate bool `yaml:"enable-txn-simulation"`
	// Concurrency is the number of verbs that one connection runs at once;
	// OperationTimeout is the time of one verb.
	Concurrency      int           `yaml:"concurrency"`
	OperationTimeout time.Duration `yaml:"operation-timeout"`
	// Both bounds of the history apply: the number of transactions, and their bytes in
	// memory.
	HistoryCount int `yaml:"history-count"`
	HistoryBytes int `yaml:"history-bytes"`
	// The first retry comes after RetryPeriod, and each later one after twice the time
	// before it, up to RetryMaxPeriod. RetryCount bounds their number; 0: no end.
	RetryPeriod    time.Duration `yaml:"retry-period"`
	RetryMaxPeriod time.Duration `yaml:"retry-max-period"`
	RetryCount     int           `yaml:"retry-count"`
	// ResyncPeriod is the pause between periodic downstream resyncs, and DriftPeriod that between
	// counts of the values that differ from VPP and Linux; 0: never.
	ResyncPeriod time.Duration `yaml:"resync-period"`
	DriftPeriod  time.Duration `yaml:"drift-period"`

	// Accepted for compatibility with existing files, without effect.
	RecordHistory   bool `yaml:"record-transaction-history"`
	HistoryAgeLimit int  `yaml:"transaction-history-age-limit"`
	InitPeriod      int  `yaml:"permanently-recorded-init-period"`
}

// defaultScheduler has the values that conf/ documents.
func defaultScheduler() schedulerConfig {
	return schedulerConfig{
		PrintLimit: 50, Concurrency: 64, OperationTimeout: 30 * time.Second,
		HistoryCount: 10_000, HistoryBytes: 32 << 20, RetryPeriod: time.Second, RetryMaxPeriod: time.Minute, DriftPeriod: 10 * time.Minute,
	}
}

// Validate tells everything that cannot be meant.
func (c schedulerConfig) Validate() error {
	return errors.Join(
		refuse(c.Concurrency < 1, "concurrency", c.Concurrency, "a number above zero"),
		refuse(c.OperationTimeout <= 0, "operation-timeout", c.OperationTimeout, "a duration above zero, such as 30s"),
		refuse(c.HistoryCount < 1, "history-count", c.HistoryCount, "a number above zero"),
		refuse(c.HistoryBytes < 1, "history-bytes", c.HistoryBytes, "a number above zero"),
		refuse(c.RetryPeriod <= 0, "retry-period", c.RetryPeriod, "a duration above zero, such as 1s"),
		refuse(c.RetryMaxPeriod < c.RetryPeriod, "retry-max-period", c.RetryMaxPeriod, "no less than retry-period, "+c.RetryPeriod.String()),
		refuse(c.ResyncPeriod < 0 || c.ResyncPeriod > 0 && c.ResyncPeriod < time.Second, "resync-period", c.ResyncPeriod, "a duration from 1s on, or 0 for never"),
		refuse(c.DriftPeriod < 0 || c.DriftPeriod > 0 && c.DriftPeriod < time.Second, "drift-period", c.DriftPeriod, "a duration from 1s on, or 0 for never"),
		refuse(c.RetryCount < 0, "retry-count", c.RetryCount, "a number of attempts, or 0 for no end"),
	)
}

// refuse returns an error about the value of a key if wrong is set, or nil.
func refuse(wrong bool, key string, value any, want string) error {
	if !wrong {
		return nil
	}
	return fmt.Errorf("%s: %v: expected %s", key, value, want)
}

// options converts the file to options. known holds the memory of earlier runs.
func (c schedulerConfig) options(known state, log *slog.Logger, out io.Writer) scheduler.Options {
	o := scheduler.Options{
		Log: log, Simulate: c.Simulate, Retry: c.retry(),
		Concurrency: c.Concurrency, VerbTimeout: c.OperationTimeout,
		HistoryCount: c.HistoryCount, HistoryBytes: c.HistoryBytes,
	}
	if c.PrintLimit != 0 {
		o.TransactionLog = txnlog.New(txnlog.Options{Out: out, Full: c.Print, Operations: c.PrintOperations, Limit: c.PrintLimit, Log: log})
	}
	if known.applied != nil {
		o.Memory = known.applied
	}
	return o
}

// retry returns the policy of transactions from stores.
func (c schedulerConfig) retry() scheduler.RetryPolicy {
	return scheduler.RetryPolicy{Period: c.RetryPeriod, Max: c.RetryMaxPeriod, Count: c.RetryCount}
}

// An orchestratorConfig is the content of orchestrator.conf. conf/orchestrator.conf
// documents its keys for operators.
type orchestratorConfig struct {
	Priorities map[string]int `yaml:"priorities"` // by store; others keep their default
	// AntiEntropy is the period after which a source lists its store again, to find
	// changes that no notification has announced. Negative: never.
	AntiEntropy time.Duration `yaml:"anti-entropy"`
	// Patience is the time for which the start waits for sources, before it applies the
	// saved values of those that cannot be reached.
	Patience time.Duration `yaml:"start-patience"`
	// A listing that lacks more than GraceShare percent of the keys, and at least
	// GraceKeys, is not believed at once: its removals wait for Grace.
	Grace      time.Duration `yaml:"grace-time"`
	GraceShare int           `yaml:"grace-percent"`
	GraceKeys  int           `yaml:"grace-keys"`
	StateDir   *string       `yaml:"state-dir"`      // contains a folder per label. nil: the default; empty: none
	Publish    []string      `yaml:"publish-status"` // names of stores
	// Writes of status per second and store.
	PublishRate int `yaml:"publish-status-rate"`
	// PublishHealth are the names of stores that receive the agent's health.
	PublishHealth []string `yaml:"publish-health"`
	// PublishSummary are the names of stores that receive the agent's summary, at least once
	// in each SummaryPeriod.
	PublishSummary []string      `yaml:"publish-summary"`
	SummaryPeriod  time.Duration `yaml:"publish-summary-period"`

	kinds []storeKind // all stores that may be configured; nil: the built-in ones

	// Of all stores that are not files.
	MaxValue filedb.Size `yaml:"max-value-size"`
	// MaxPage bounds one answer of a store in memory, MaxListing all keys and values of a
	// listing, and MaxKeys the keys of all stores together. 0: as the memory allows.
	MaxPage    filedb.Size `yaml:"max-page-size"`
	MaxListing filedb.Size `yaml:"max-listing-size"`
	MaxKeys    int         `yaml:"max-keys"`

	// Of the layers that clients declare, by the name of their data source.
	Datasrc map[string]int `yaml:"datasrc-priorities"`
	// Each data source keeps its values until it removes them, so their number needs a bound.
	MaxDatasrc      int      `yaml:"max-datasrc"`
	VolatileDatasrc []string `yaml:"volatile-datasrc"` // "*" means all
}

// clientLayers returns the layers of clients that are listed with the stores, by priority.
func clientLayers() map[string]int { return map[string]int{"localclient": 50, grpc.DefaultSource: 40} }

// defaultOrchestrator has the values that conf/ documents.
func defaultOrchestrator() orchestratorConfig {
	return orchestratorConfig{AntiEntropy: 10 * time.Minute, Patience: 100 * time.Millisecond, Grace: 10 * time.Second, GraceShare: 33, GraceKeys: 5, Publish: []string{}, PublishRate: 20, PublishHealth: []string{}, PublishSummary: []string{}, SummaryPeriod: time.Minute,
		MaxValue: models.MaxSize,
		Datasrc:  map[string]int{}, MaxDatasrc: 32, VolatileDatasrc: []string{}}
}

// Validate tells everything that cannot be meant.
func (c orchestratorConfig) Validate() error {
	errs := []error{
		refuse(c.AntiEntropy == 0, "anti-entropy", c.AntiEntropy, "a duration above zero, such as 10m, or a negative one for never"),
		refuse(c.Patience <= 0, "start-patience", c.Patience, "a duration above zero, such as 100ms"),
		refuse(c.Grace <= 0, "grace-time", c.Grace, "a duration above zero, such as 10s"),
		refuse(c.GraceShare < 1 || c.GraceShare > 100, "grace-percent", c.GraceShare, "a number from 1 to 100"),
		refuse(c.GraceKeys < 1, "grace-keys", c.GraceKeys, "a number above zero"),
	}
	errs = append(errs, refuse(c.PublishRate < 1, "publish-status-rate", c.PublishRate, "a number of writes a second, such as 20"))
	errs = append(errs,
		refuse(c.MaxValue < 1 || c.MaxValue > models.MaxSize, "max-value-size", c.MaxValue, "a size up to "+filedb.Size(models.MaxSize).String()+", which no value may exceed"),
		refuse(c.MaxKeys < 0, "max-keys", c.MaxKeys, "a number above zero, or 0 for as many as the memory allows"),
		c.boundsIn(math.MaxInt64, 1).Validate())
	known := c.storeNames()
	for i, name := range c.Publish {
		errs = append(errs, refuse(!slices.Contains(known, name), fmt.Sprintf("publish-status[%d]", i), name,
			"names of stores: "+strings.Join(known, ", ")))
	}
	for i, name := range c.PublishHealth {
		errs = append(errs, refuse(!slices.Contains(known, name), fmt.Sprintf("publish-health[%d]", i), name,
			"names of stores: "+strings.Join(known, ", ")))
	}
	for i, name := range c.PublishSummary {
		errs = append(errs, refuse(!slices.Contains(known, name), fmt.Sprintf("publish-summary[%d]", i), name,
			"names of stores: "+strings.Join(known, ", ")))
	}
	errs = append(errs, refuse(c.SummaryPeriod < time.Second, "publish-summary-period", c.SummaryPeriod, "a duration of at least 1s, such as 60s"))
	listed := append(slices.Sorted(maps.Keys(clientLayers())), known...)
	for _, name := range slices.Sorted(maps.Keys(c.Priorities)) {
		errs = append(errs, refuse(!slices.Contains(listed, name), "priorities."+name, c.Priorities[name],
			"only "+strings.Join(listed, ", ")))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Datasrc)) {
		errs = append(errs, refuse(slices.Contains(listed, name), "datasrc-priorities."+name, c.Datasrc[name],
			"this name in priorities"))
	}
	errs = append(errs, refuse(c.MaxDatasrc < 1, "max-datasrc", c.MaxDatasrc, "a number above zero"))
	return errors.Join(errs...)
}

// storeNames returns the names of all stores that may be configured.
func (c orchestratorConfig) storeNames() []string {
	kinds := c.kinds
	if kinds == nil {
		kinds = (&settings{}).storeKinds()
	}
	var out []string
	for _, kind := range kinds {
		out = append(out, kind.name)
	}
	return out
}

// The most that stores may hold by default, as far as the memory allows.
const (
	mostPage    = 64 << 20
	mostListing = 1 << 30
	// leastListing and leastKeys are allowed however little memory there is.
	leastListing = 16 << 20
	leastKeys    = 10_000
	// bytesOfKey is the memory that a key takes in all parts of the agent, with the garbage that it leaves.
	bytesOfKey = 2 << 10
)

// boundsIn are those of what a store may hold, where the agent has so many bytes of memory for so many stores. A listing
// may take twice its bytes: those of all stores together take at most half of the memory, and so do all keys.
func (c orchestratorConfig) boundsIn(memory int64, stores int) kvdbsync.Bounds {
	b := kvdbsync.Bounds{Value: int64(c.MaxValue), Page: int64(c.MaxPage), Listing: int64(c.MaxListing)}
	b.Listing = cmp.Or(b.Listing, max(b.Page, min(mostListing, max(leastListing, memory/4/int64(stores)))))
	b.Page = cmp.Or(b.Page, max(2*b.Value, min(mostPage, b.Listing/2)))
	b.Room = kvdbsync.NewRoom(cmp.Or(c.MaxKeys, max(leastKeys, int(memory/2/bytesOfKey))))
	return b
}

// stateDir returns the folder of the state of a label, or "" for none. Each label has its
// own folder.
func (c orchestratorConfig) stateDir(label string, env func(string) string) string {
	switch {
	case c.StateDir == nil:
		return stateDir(label, env)
	case *c.StateDir == "":
		return ""
	}
	return filepath.Join(*c.StateDir, label)
}

// options converts the file to options. known holds the memory of earlier runs.
func (c orchestratorConfig) options(layers []orchestrator.Source, known state, retry scheduler.RetryPolicy, log *slog.Logger) orchestrator.Options {
	o := orchestrator.Options{Sources: layers, Layers: c.layers(), Retry: retry, Patience: c.Patience, Log: log}
	o.Grace, o.GracePercent, o.GraceKeys = c.Grace, c.GraceShare, c.GraceKeys
	if known.intent != nil {
		o.Memory = known.intent
	}
	kinds := c.kinds
	o.Unconfigured = func(name string) int {
		if at := slices.IndexFunc(kinds, func(kind storeKind) bool { return kind.name == name }); at >= 0 {
			return c.priority(kinds[at])
		}
		return 0 // this program does not have the kind any more
	}
	return o
}

// publishing returns the settings for published status.
func (c orchestratorConfig) publishing(all bool) publishing {
	return publishing{all: all, stores: c.Publish, rate: c.PublishRate}
}

// priority returns the priority of a store. It may be zero or negative.
func (c orchestratorConfig) priority(kind storeKind) int {
	if p, said := c.Priorities[kind.name]; said {
		return p
	}
	return kind.priority
}

// layers returns the options of the layers that clients declare.
func (c orchestratorConfig) layers() orchestrator.LayerOptions {
	return orchestrator.LayerOptions{
		Max: c.MaxDatasrc, Reserved: c.storeNames(),
		Priority: func(name string) int {
			// The name itself first, then the default of all clients; in each case the
			// operator's settings before the built-in ones.
			for _, name := range []string{name, grpc.DefaultSource} {
				for _, said := range []map[string]int{c.Priorities, c.Datasrc, clientLayers()} {
					if p, ok := said[name]; ok {
						return p
					}
				}
			}
			return 0
		},
		Volatile: func(name string) bool {
			return slices.Contains(c.VolatileDatasrc, name) || slices.Contains(c.VolatileDatasrc, "*")
		},
	}
}

// A configuration is the content of all files except those of stores.
type configuration struct {
	files        files
	scheduler    schedulerConfig
	orchestrator orchestratorConfig
	linux        linux.Options
	vpp          vpp.Options
	http         rest.Config
	telemetry    telemetry.Config
	grpc         grpc.Config
}

// readConfig reads all files. A missing file leaves the defaults; an invalid one is an
// error, so that a typing error does not silently change the network.
func readConfig(s *settings, log *slog.Logger) (configuration, error) {
	if len(s.Idle) > 0 {
		log.Warn("flags have no effect in this release", "flags", s.Idle)
	}
	if info, err := os.Stat(s.ConfigDir); s.Given["config-dir"] && (err != nil || !info.IsDir()) {
		return configuration{}, fmt.Errorf("%w: config-dir: %s: expected an existing folder", errConfig, s.ConfigDir)
	}
	c := configuration{
		files:        s.files(log),
		scheduler:    defaultScheduler(),
		orchestrator: defaultOrchestrator(),
	}
	c.orchestrator.kinds = s.storeKinds()
	c.vpp.Connection.Proxy, c.http.Older, c.grpc.Older = s.older(), s.older(), s.older()
	exists := map[string]bool{} // files by their flags
	for _, part := range []struct {
		flag, file string
		into       any
	}{
		{"kvscheduler-config", s.SchedulerConfig, &c.scheduler},
		{"orchestrator-config", s.OrchestratorConfig, &c.orchestrator},
		{"linux-ifplugin-config", s.LinuxIfConfig, &c.linux.Interfaces},
		{"linux-l3plugin-config", s.LinuxL3Config, &c.linux.L3},
		{"linux-iptablesplugin-config", s.LinuxIPTables, &c.linux.IPTables},
		{"linux-nsplugin-config", s.LinuxNamespaces, &c.linux.Namespaces},
		{"govpp-config", s.VPPConfig, &c.vpp.Connection},
		{"vpp-ifplugin-config", s.VPPIfConfig, &c.vpp.Interfaces},
		{"http-config", s.HTTPConfig, &c.http},
		{"telemetry-config", s.TelemetryConfig, &c.telemetry},
		{"grpc-config", s.GRPCConfig, &c.grpc},
	} {
		if s.options.lacksFlag(part.flag) {
			continue
		}
		found, err := c.files.load(part.flag, part.file, part.into)
		if err != nil {
			return c, fmt.Errorf("%w: %w", errConfig, err)
		}
		exists[part.flag] = found
	}
	c.endpoints(s, exists["grpc-config"])
	if err := c.http.Complete(); err != nil {
		return c, fmt.Errorf("%w: %s: %w", errConfig, s.HTTPConfig, err)
	}
	if err := c.grpc.Complete(); err != nil {
		return c, fmt.Errorf("%w: %s: %w", errConfig, s.GRPCConfig, err)
	}
	return c, nil
}
