package main

import (
	"cmp"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/keyplane/keyplane/statestore"
)

// state is what the agent knows of its earlier runs: what stores last declared, what it
// has applied, and what VPP has died of. A part of it that cannot be had is nil.
type state struct {
	intent, applied, deaths *statestore.Store
	log                     *slog.Logger
}

// A statePart is one Store in the folder, and what it means to lose it.
type statePart struct {
	name    string
	into    **statestore.Store
	affects string
}

func (s *state) parts() []statePart {
	return []statePart{
		{"intent", &s.intent, "a restart does not know what a store declared until the store is there, and leaves in place what stands; what programs declared may be missing"},
		{"applied", &s.applied, "a restart leaves in place what nobody declares any more, if its kind does not show whose it is (such as VPP routes and L2 FIB entries)"},
		{"deaths", &s.deaths, "a restart may try once more what VPP has died of"},
	}
}

// openState opens the parts in a folder, which is made; empty: there is none. That a part
// cannot be had is no reason not to start.
func openState(dir string, log *slog.Logger) state {
	s := state{log: log.With("state_dir", dir)}
	if dir == "" {
		return s
	}
	for _, part := range s.parts() {
		store, err := openPart(dir, part, log)
		if err != nil {
			s.log.Error("state is not kept", "part", part.name, "affects", part.affects, "err", err)
		}
		*part.into = store
	}
	for _, store := range []*statestore.Store{s.applied, s.deaths} {
		// What a stale one still has is right. What is missing nothing can tell; what is
		// declared is added when it is found.
		if store != nil && store.Stale() != nil {
			if err := store.Renew(); err != nil {
				s.log.Error("state cannot be marked as good again", "err", err)
			}
		}
	}
	return s
}

// openPart opens a part, with what an earlier version has left of it.
func openPart(dir string, part statePart, log *slog.Logger) (*statestore.Store, error) {
	store, err := statestore.Open(filepath.Join(dir, part.name), statestore.Options{Log: log, Affects: part.affects})
	if err != nil {
		return nil, err
	}
	if err := store.TakeOver(filepath.Join(dir, part.name+".db")); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return store, nil
}

func (s *state) stores() (out []*statestore.Store) {
	for _, part := range s.parts() {
		if *part.into != nil {
			out = append(out, *part.into)
		}
	}
	return out
}

func (s *state) tasks() (out []task) {
	for _, store := range s.stores() {
		out = append(out, store.Run)
	}
	return out
}

// Close writes what is not written yet.
func (s *state) Close() {
	for _, part := range s.parts() {
		if *part.into == nil {
			continue
		}
		if err := (*part.into).Close(); err != nil {
			s.log.Error("state could not be written to the end", "part", part.name, "affects", part.affects, "err", err)
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
