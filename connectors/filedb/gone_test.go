package filedb_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/keyplane/keyplane/connectors/filedb"
)

// TestPlacesThatVanish has the only folder removed: the watch ends, rather than to say
// that all was deleted; the next one lists what is there then.
func TestPlacesThatVanish(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "network")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.json"), []byte(`{"data":[{"key":"/x/config/a","value":{}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := filedb.New(filedb.Config{Paths: []string{dir}}, "/x/", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	var ended error
	for b, err := range db.Watch(t.Context(), "/x/config/") {
		switch {
		case err != nil:
			ended = err
		case b.Synced:
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		default:
			for _, e := range b.Events {
				t.Errorf("it says %+v", e)
			}
		}
	}
	if !errors.Is(ended, filedb.ErrGone) {
		t.Errorf("ended with %v", ended)
	}
	for b, err := range db.Watch(t.Context(), "/x/config/") {
		if err != nil || !b.Synced || len(b.Events) > 0 {
			t.Errorf("then it lists %+v, %v", b, err)
		}
		break
	}
}
