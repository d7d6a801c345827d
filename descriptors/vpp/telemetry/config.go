package telemetry

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// A Group is a group of counters. The names are those of telemetry.conf, and belong to
// existing deployments.
type Group string

// Interfaces is the group that grows with
// the configuration; Nodes and Runtime grow with VPP's plugins.
const (
	Runtime    Group = "runtime"
	Memory     Group = "memory"
	Buffers    Group = "buffers"
	Nodes      Group = "nodes"
	Interfaces Group = "interfaces"
)

// Groups returns all groups.
func Groups() []Group { return []Group{Runtime, Memory, Buffers, Nodes, Interfaces} }

// Config is the content of telemetry.conf.
type Config struct {
	// Interval is the time between two polls. Defaults to 30 s, also if it is 1 s or less.
	Interval time.Duration `yaml:"polling-interval"`
	// Disabled reads no counters of VPP at all.
	Disabled bool `yaml:"disabled"`
	// NoPrometheus polls nothing; counters are read when somebody asks for them.
	NoPrometheus bool    `yaml:"prometheus-disabled"`
	Skipped      []Group `yaml:"skipped"`
}

// DefaultInterval is the default of Config.Interval.
const DefaultInterval = 30 * time.Second

// Validate names each unknown group.
func (c Config) Validate() error {
	var errs []error
	for i, g := range c.Skipped {
		if !slices.Contains(Groups(), g) {
			errs = append(errs, fmt.Errorf("skipped[%d]: %q; expected some of %v", i, g, Groups()))
		}
	}
	return errors.Join(errs...)
}

// interval returns the interval in effect. As in the older agent, one that is too short is not
// an error.
func (c Config) interval(log *slog.Logger) time.Duration {
	switch {
	case c.Interval == 0:
		return DefaultInterval
	case c.Interval <= time.Second:
		log.Warn("polling-interval is too short", "is", c.Interval, "expected", "more than 1s", "used", DefaultInterval)
		return DefaultInterval
	}
	return c.Interval
}

// groups returns the groups that are not skipped.
func (c Config) groups() []Group {
	return slices.DeleteFunc(Groups(), func(g Group) bool { return slices.Contains(c.Skipped, g) })
}
