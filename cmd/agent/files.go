package main

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/keyplane/keyplane/internal/config"
)

// errConfig says that the agent cannot start with the configuration it has.
var errConfig = errors.New("configuration")

// files reads configuration files.
type files struct {
	dir   string          // where those are that are no paths
	given map[string]bool // the flags that name one explicitly
	log   *slog.Logger
}

// A validator tells everything that cannot be meant, each by its key.
type validator interface{ Validate() error }

// load reads the file that a flag names into a struct that holds the defaults,
// and tells whether it is there. What cannot be meant is an error.
func (f files) load(flag, name string, into any) (found bool, err error) {
	path, found := config.Find(name, f.dir)
	if !found {
		if f.given[flag] {
			f.log.Warn("configuration file not found; a file in the current directory is ./NAME", "flag", flag, "file", name, "config_dir", f.dir)
		}
		return false, nil
	}
	unknown, err := config.Load(path, into)
	if err != nil {
		return true, err
	}
	for _, u := range unknown {
		f.log.Warn("configuration key is unknown and has no effect", "what", u)
	}
	if v, ok := into.(validator); ok {
		if err := v.Validate(); err != nil {
			return true, fmt.Errorf("%s: %w", path, err)
		}
	}
	return true, nil
}
