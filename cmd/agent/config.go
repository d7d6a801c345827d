package main

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/keyplane/keyplane/descriptors/linux"
	"github.com/keyplane/keyplane/northbound/rest"
	"github.com/keyplane/keyplane/scheduler"
)

// A schedulerConfig is the content of kvscheduler.conf.
type schedulerConfig struct {
	Print            bool          `yaml:"print-txn-summary"` // Defaults to true
	PrintLimit       int           `yaml:"print-txn-limit"`
	Simulate         bool          `yaml:"enable-txn-simulation"`
	Concurrency      int           `yaml:"concurrency"`
	OperationTimeout time.Duration `yaml:"operation-timeout"`
	HistoryCount     int           `yaml:"history-count"`
	HistoryBytes     int           `yaml:"history-bytes"`
	RetryPeriod      time.Duration `yaml:"retry-period"`
	RetryMaxPeriod   time.Duration `yaml:"retry-max-period"`
	RetryCount       int           `yaml:"retry-count"`

	// Accepted from the files of existing deployments, without effect.
	RecordHistory   bool `yaml:"record-transaction-history"`
	HistoryAgeLimit int  `yaml:"transaction-history-age-limit"`
	InitPeriod      int  `yaml:"permanently-recorded-init-period"`
}

func (c schedulerConfig) options(log *slog.Logger, out io.Writer) scheduler.Options {
	if !c.Print {
		out = nil
	}
	return scheduler.Options{
		Log: log, Out: out, PrintLimit: c.PrintLimit, Simulate: c.Simulate,
		Concurrency: c.Concurrency, VerbTimeout: c.OperationTimeout,
		HistoryCount: c.HistoryCount, HistoryBytes: c.HistoryBytes,
	}
}

func (c schedulerConfig) retry() scheduler.Retry {
	return scheduler.Retry{Period: c.RetryPeriod, Max: c.RetryMaxPeriod, Count: c.RetryCount}
}

// An orchestratorConfig is the content of orchestrator.conf.
type orchestratorConfig struct {
	Priorities  map[string]int `yaml:"priorities"` // Defaults to those of stores
	AntiEntropy time.Duration  `yaml:"anti-entropy"`
	Patience    time.Duration  `yaml:"start-patience"`
}

// A configuration is what all files but those of stores say.
type configuration struct {
	files        files
	scheduler    schedulerConfig
	orchestrator orchestratorConfig
	linux        linux.Options
	http         rest.Config
}

func readConfig(s *settings, log *slog.Logger) (configuration, error) {
	c := configuration{
		files:     files{dir: s.ConfigDir, given: s.Given, log: log},
		scheduler: schedulerConfig{Print: true},
	}
	for _, part := range []struct {
		flag, file string
		into       any
	}{
		{"kvscheduler-config", s.SchedulerConfig, &c.scheduler},
		{"orchestrator-config", s.OrchestratorConfig, &c.orchestrator},
		{"linux-ifplugin-config", s.LinuxIfConfig, &c.linux.Interfaces},
		{"linux-l3plugin-config", s.LinuxL3Config, &c.linux.L3},
		{"linux-nsplugin-config", s.LinuxNamespaces, &c.linux.Namespaces},
		{"http-config", s.HTTPConfig, &c.http},
	} {
		if _, err := c.files.load(part.flag, part.file, part.into); err != nil {
			return c, fmt.Errorf("%w: %w", errConfig, err)
		}
	}
	if c.http.Endpoint == "" {
		c.http.Endpoint = net.JoinHostPort("127.0.0.1", s.HTTPPort)
	}
	if err := c.http.Complete(); err != nil {
		return c, fmt.Errorf("%w: %s: %w", errConfig, s.HTTPConfig, err)
	}
	return c, nil
}
