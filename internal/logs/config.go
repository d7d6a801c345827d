package logs

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
)

// Config is the content of logs.conf.
type Config struct {
	// Default is the level of components that Loggers does not name. Defaults to the flag
	// initial-loglvl.
	Default string         `yaml:"default-level"`
	Format  string         `yaml:"format"` // text or json. Defaults to text.
	Loggers []LoggerConfig `yaml:"loggers"`

	// Accepted from the files of existing deployments, without effect: the service manager or
	// a log collector passes the lines on.
	Hooks map[string]any `yaml:"hooks"`
}

// LoggerConfig is the level of one component.
type LoggerConfig struct {
	Name  string `yaml:"name"`
	Level string `yaml:"level"`
}

// Validate names each wrong value.
func (c Config) Validate() error {
	var errs []error
	if c.Default != "" {
		if _, err := Parse(c.Default); err != nil {
			errs = append(errs, fmt.Errorf("default-level: %w", err))
		}
	}
	if c.Format != "" && c.Format != "text" && c.Format != "json" {
		errs = append(errs, fmt.Errorf("format is %q; expected text or json", c.Format))
	}
	seen := map[string]bool{}
	for i, l := range c.Loggers {
		switch _, err := Parse(l.Level); {
		case l.Name == "":
			errs = append(errs, fmt.Errorf("loggers[%d]: name is required", i))
		case seen[l.Name]:
			errs = append(errs, fmt.Errorf("loggers[%d]: name %q appears twice", i, l.Name))
		case err != nil:
			errs = append(errs, fmt.Errorf("loggers[%d] (%s): %w", i, l.Name, err))
		}
		seen[l.Name] = true
	}
	return errors.Join(errs...)
}

// Options converts a valid Config. level is the level that counts without default-level.
func (c Config) Options(out io.Writer, level slog.Level) Options {
	o := Options{Out: out, JSON: c.Format == "json", Level: level, Levels: map[string]slog.Level{}}
	if l, err := Parse(c.Default); err == nil {
		o.Level = l
	}
	for _, l := range c.Loggers {
		if level, err := Parse(l.Level); err == nil {
			o.Levels[l.Name] = level
		}
	}
	return o
}
