package memory_test

import (
	"maps"
	"path/filepath"
	"testing"

	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/memory"
)

var _ scheduler.Memory = (*memory.File)(nil)

func TestFileRemembers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "applied.db")
	f, err := memory.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	save := func(changes map[string][]byte) {
		t.Helper()
		if err := f.Save(changes); err != nil {
			t.Fatal(err)
		}
	}
	save(map[string][]byte{"a": []byte("1"), "b": []byte("2")})
	save(map[string][]byte{"a": nil, "c": {}})
	if _, err := memory.Open(path); err == nil {
		t.Error("opened twice")
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if f, err = memory.Open(path); err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got := maps.Collect(f.Load())
	if len(got) != 2 || string(got["b"]) != "2" || got["c"] == nil {
		t.Errorf("remembered %q", got)
	}
}
