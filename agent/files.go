package agent

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/keyplane/keyplane/internal/config"
)

// errConfig reports a configuration with which the agent cannot start.
var errConfig = errors.New("configuration")

// files reads configuration files.
type files struct {
	dir   string          // folder of files whose name is not a path
	given map[string]bool // the flags that name one explicitly
	// For unknown keys, and for files that a flag names and that do not exist.
	log *slog.Logger
}

// A validator returns an error for each invalid key.
type validator interface{ Validate() error }

// load reads the file that a flag names into a struct that holds the defaults. It reports
// whether the file exists. Invalid values are errors, and unknown keys that are similar to a known
// one: a typing mistake in endpoints must not make the agent use the default. Other unknown keys are
// only logged, because files of other releases have them.
func (f files) load(flag, name string, into any) (found bool, err error) {
	path, found := config.Find(name, f.dir)
	// Files are optional, so only an explicit name deserves a warning.
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
	var mistakes []error
	for _, u := range unknown {
		if u.Nearest != "" {
			mistakes = append(mistakes, errors.New(u.String()))
			continue
		}
		f.log.Warn("configuration key is unknown and has no effect", "file", u.File, "line", u.Line, "key", u.Key)
	}
	if len(mistakes) > 0 {
		return true, errors.Join(mistakes...)
	}
	if v, ok := into.(validator); ok {
		if err := v.Validate(); err != nil {
			return true, fmt.Errorf("%s: %w", path, err)
		}
	}
	return true, nil
}
