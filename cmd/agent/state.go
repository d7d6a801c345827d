package main

import (
	"cmp"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/keyplane/keyplane/scheduler/memory"
)

// state is what the agent knows of its earlier runs: what stores last declared, what it
// has applied, and what VPP has died of. A part of it that cannot be had is nil.
type state struct {
	intent, applied, deaths *memory.File
	log                     *slog.Logger
}

// openState opens the files in a folder, which is made; empty: there is none. That it
// cannot be had is no reason not to start.
func openState(dir string, log *slog.Logger) state {
	s := state{log: log.With("state_dir", dir)}
	if dir == "" {
		return s
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		s.lost(err)
		return s
	}
	for name, into := range map[string]**memory.File{"intent.db": &s.intent, "applied.db": &s.applied, "deaths.db": &s.deaths} {
		file, err := memory.Open(filepath.Join(dir, name), log)
		if err != nil {
			s.lost(err)
		}
		*into = file
	}
	return s
}

func (s state) lost(err error) {
	s.log.Error("state is not kept: a restart will know only what its stores say then", "err", err)
}

func (s state) files() (out []*memory.File) {
	for _, f := range []*memory.File{s.intent, s.applied, s.deaths} {
		if f != nil {
			out = append(out, f)
		}
	}
	return out
}

func (s state) tasks() (out []task) {
	for _, f := range s.files() {
		out = append(out, f.Run)
	}
	return out
}

// Close writes what is not written yet.
func (s state) Close() {
	for _, f := range s.files() {
		if err := f.Close(); err != nil {
			s.lost(err)
		}
	}
}

// stateDir is where the state of a label is kept unless the configuration says
// otherwise: where the service manager wants it, or else the system's or the user's
// place for such things. Empty: there is none.
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
