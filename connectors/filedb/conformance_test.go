package filedb_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/keyplane/keyplane/connectors/filedb"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
)

func TestConformance(t *testing.T) {
	conformance.Run(t, withStatusAt("made/status.json", statusOf))
}

func TestStatusFolderConformance(t *testing.T) {
	conformance.RunSession(t, withStatusAt("made/status/", fileOfKey))
}

// withStatusAt is a store of files whose status is at a path, where get reads what another
// program finds under a key.
func withStatusAt(path string, get func(t *testing.T, path, key string) []byte) func(*testing.T) conformance.Harness {
	return func(t *testing.T) conformance.Harness {
		f := &oneFile{t: t, path: filepath.Join(t.TempDir(), "keys.json"), pairs: map[string][]byte{}}
		status := t.TempDir() + "/" + path
		db := newDB(t, filedb.Config{Paths: []string{filepath.Dir(f.path)}, StatusPath: status})
		return conformance.Harness{
			Connector: db,
			Put:       func(key string, value []byte) { f.change(kvdbsync.Event{Key: key, Value: value}) },
			Delete:    func(key string) { f.change(kvdbsync.Event{Key: key}) },
			Txn:       func(events []kvdbsync.Event) { f.change(events...) },
			Same:      sameJSON,
			JSONOnly:  true,
			Publisher: db,
			Get:       func(key string) []byte { return get(t, status, key) },
			TTL:       10 * time.Millisecond, // which does not count
		}
	}
}

// fileOfKey reads the file of a key in a folder of status.
func fileOfKey(t *testing.T, path, key string) []byte {
	t.Helper()
	text, err := os.ReadFile(path + key + ".json")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return bytes.TrimSuffix(text, []byte("\n"))
}

// statusOf reads one key of a status file as another program would.
func statusOf(t *testing.T, path, key string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	var file struct {
		Data []struct {
			Key   string
			Value json.RawMessage
		}
	}
	if err := json.Unmarshal(text, &file); len(text) > 0 && err != nil {
		t.Fatalf("%s is torn: %v", path, err)
	}
	for _, p := range file.Data {
		if p.Key == key {
			return p.Value
		}
	}
	return nil
}

// A oneFile is a store that is saved as a whole at each change.
type oneFile struct {
	t     *testing.T
	path  string
	pairs map[string][]byte
}

func (f *oneFile) change(events ...kvdbsync.Event) {
	f.t.Helper()
	for _, e := range events {
		if f.pairs[e.Key] = e.Value; e.Value == nil {
			delete(f.pairs, e.Key)
		}
	}
	type pair struct {
		Key   string          `json:"key"`
		Value json.RawMessage `json:"value"`
	}
	data := []pair{}
	for _, key := range slices.Sorted(maps.Keys(f.pairs)) {
		data = append(data, pair{key, f.pairs[key]})
	}
	text, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(f.path, text, 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func sameJSON(a, b []byte) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && textOf(x.Bytes()) == textOf(y.Bytes())
}

// textOf undoes differences of escaping.
func textOf(data []byte) string {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return err.Error()
	}
	out, _ := json.Marshal(v)
	return string(out)
}
