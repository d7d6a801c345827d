package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/keyplane/keyplane/internal/reach"
	"github.com/keyplane/keyplane/orchestrator/trial"
	"github.com/keyplane/keyplane/statestore"
)

// state is the agent's knowledge of earlier runs: the last declared values of each store,
// the applied values, the marks of links, which network namespaces it made, values that crashed VPP, settings that VPP does not report, creations that a kill
// interrupted, trials, and the last transactions. A part that is not needed, or cannot be opened, is nil.
type state struct {
	intent, applied, links, namespaces, deaths, settings, trials, history *statestore.Store
	// The absolute path of the folder, without links as far as it exists; "": there is none.
	dir string
	// Has the folder as an attribute.
	log *slog.Logger
}

// realPath returns an absolute path without links. The path itself is the answer if it cannot be resolved.
func realPath(path string) string {
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// A statePart is one Store in the folder, and the consequence of its loss.
type statePart struct {
	name string
	// The field of state that receives the Store; it stays nil if the Store cannot be opened.
	into    **statestore.Store
	affects string
	ofVPP   bool // an agent without VPP does not open it
}

// parts lists the stores of the state, each with the consequence of its loss, which the
// log names when one cannot be opened.
func (s *state) parts() []statePart {
	return []statePart{
		{"intent", &s.intent, "after a restart the values of a store are unknown until it is reachable; applied values stay, and values of programs (gRPC) may be missing", false},
		{"applied", &s.applied, "after a restart undeclared objects stay if the system does not show their owner (such as VPP routes and L2 FIB entries)", false},
		{"links", &s.links, "after a restart a link whose alias somebody has overwritten is not recognised, and on kernels before 5.18 addresses that the agent has added to links of others stay", false},
		{"namespaces", &s.namespaces, "after a restart the network namespaces that the agent has made stay when no value needs them any more", false},
		{"deaths", &s.deaths, "after a restart values that crashed VPP may be tried once more", true},
		{"settings", &s.settings, "after a restart settings that VPP does not report are set again, or stay in VPP if they are no longer declared (such as DNS servers), and so may an interface that was being created when the agent was killed", true},
		{"trials", &s.trials, "trials from before the restart do not end: their values stay", false},
		{"history", &s.history, "after a restart the transactions before it are not listed", false},
	}
}

// openState opens the parts in a folder, which it creates; "" means none. The agent also
// starts without a part that cannot be opened. Each open part has two descriptors and a task.
func openState(dir string, withVPP bool, log *slog.Logger) state {
	s := state{log: log.With("state_dir", dir)}
	if dir == "" {
		return s
	}
	s.dir = realPath(dir)
	for _, part := range s.parts() {
		if part.ofVPP && !withVPP {
			continue
		}
		store, err := openPart(dir, part, log)
		if err != nil {
			s.log.Error("cannot open state; it is not saved", "part", part.name, "affects", part.affects, "err", err)
		}
		*part.into = store
	}
	for _, store := range []*statestore.Store{s.applied, s.links, s.namespaces, s.deaths, s.settings, s.trials, s.history} {
		// The entries of a stale store are correct, but some may be missing. Declared
		// values are added again when the actual state is read.
		if store != nil && store.Stale() != nil {
			if err := store.Renew(); err != nil {
				s.log.Error("cannot mark the state as valid again", "err", err)
			}
		}
	}
	return s
}

// openPart opens a part, and imports the file of an earlier version.
func openPart(dir string, part statePart, log *slog.Logger) (*statestore.Store, error) {
	store, err := statestore.Open(filepath.Join(dir, part.name), statestore.Options{Log: log, Affects: part.affects, Aside: filepath.Dir(reach.DefaultSocket(""))})
	if err != nil {
		return nil, err
	}
	if err := store.TakeOver(filepath.Join(dir, part.name+".db")); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return store, nil
}

// failure returns why the state cannot be written; nil: it can, or there is none.
func (s *state) failure() error {
	var errs []error
	for _, part := range s.parts() {
		if store := *part.into; store != nil {
			if err := store.Failure(); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", part.name, err))
			}
		}
	}
	return errors.Join(errs...)
}

// trialOptions returns the options of trials. Without a state folder neither layers nor trials
// survive a restart. With one, both do, or trials are refused.
func (s *state) trialOptions(volatile func(layer string) bool, log *slog.Logger) trial.Options {
	o := trial.Options{Volatile: volatile, Log: log}
	switch {
	case s.trials != nil:
		o.Memory = s.trials
		if s.intent != nil {
			o.SyncLayers = s.intent.Sync
		}
	case s.intent != nil:
		o.Unable = errors.New("the part trials of the state cannot be opened; see the agent's log")
	}
	return o
}

// tasks returns a task for each part that could be opened, and one that notices when somebody takes their files, or those
// of folder, away.
func (s *state) tasks(mine ownership) (out []Task) {
	var open []*statestore.Store
	folders := []string{s.dir}
	for _, part := range s.parts() {
		if *part.into != nil {
			out = append(out, Task{"state " + part.name, (*part.into).Run})
			open, folders = append(open, *part.into), append(folders, filepath.Join(s.dir, part.name))
		}
	}
	if len(open) == 0 {
		return nil
	}
	return append(out, Task{"files of the state", func(ctx context.Context) error {
		err := statestore.Watch(ctx, folders, func() {
			if err := mine.folder.Verify(mine.self); err != nil {
				s.log.Error("somebody has removed or replaced files of the state folder, and they cannot be made again; a second agent may use it", "err", err)
			}
			for _, store := range open {
				_ = store.Verify() // it has logged the error, and tries again
			}
		})
		if err != nil {
			s.log.Warn("if somebody removes files of the state, that is only noticed at the next change", "err", err)
			<-ctx.Done()
		}
		return nil
	}})
}

// Close writes pending changes.
func (s *state) Close() {
	for _, part := range s.parts() {
		if *part.into == nil {
			continue
		}
		if err := (*part.into).Close(); err != nil {
			s.log.Error("cannot write the last changes of the state", "part", part.name, "affects", part.affects, "err", err)
		}
	}
}

// stateDir returns the default folder of the state of a label: that of the service
// manager, else that of the system or the user. It is "" if there is none.
func stateDir(label string, env func(string) string) string {
	if given, _, _ := strings.Cut(env("STATE_DIRECTORY"), ":"); given != "" {
		return filepath.Join(given, label)
	}
	if os.Geteuid() == 0 {
		return filepath.Join("/var/lib/keyplane", label)
	}
	home := env("HOME")
	if home != "" {
		home = filepath.Join(home, ".local/state")
	}
	if own := cmp.Or(env("XDG_STATE_HOME"), home); own != "" {
		return filepath.Join(own, "keyplane", label)
	}
	return ""
}
