package agent

import (
	"log/slog"
	"os"
	"slices"
	"testing"
)

// An agent without VPP neither opens nor creates what only VPP needs.
func TestStateWithoutVPP(t *testing.T) {
	for withVPP, want := range map[bool][]string{
		true:  {"applied", "deaths", "intent", "settings", "trials"},
		false: {"applied", "intent", "trials"},
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
