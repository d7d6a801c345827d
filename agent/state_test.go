package agent

import (
	"errors"
	"log/slog"
	"os"
	"slices"
	"testing"

	"github.com/keyplane/keyplane/statestore"
)

// An agent without VPP neither opens nor creates what only VPP needs.
func TestStateWithoutVPP(t *testing.T) {
	for withVPP, want := range map[bool][]string{
		true:  {"applied", "deaths", "history", "intent", "links", "namespaces", "settings", "trials"},
		false: {"applied", "history", "intent", "links", "namespaces", "trials"},
	} {
		dir := t.TempDir()
		s := openState(dir, withVPP, slog.New(slog.DiscardHandler))
		s.Close()
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range entries {
			got = append(got, e.Name())
		}
		if !slices.Equal(got, want) {
			t.Errorf("with VPP: %t; the folder has %v, want %v", withVPP, got, want)
		}
	}
}

// The end of a trial must be on the disk before the trial is forgotten.
func TestTrialsSyncLayers(t *testing.T) {
	s := openState(t.TempDir(), false, slog.New(slog.DiscardHandler))
	sync := s.trialOptions(nil, nil).SyncLayers
	s.Close()
	if err := sync(); !errors.Is(err, statestore.ErrClosed) {
		t.Errorf("not a Sync of the store of layers: %v", err)
	}
}
