package filedb

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"

	"github.com/keyplane/keyplane/internal/plainfile"
	"github.com/keyplane/keyplane/kvdbsync"
)

// A statusFile is status in one file of the key/value form. Each change replaces the whole
// file.
type statusFile struct {
	path  string
	pairs map[string]kvdbsync.Pair // content of the file since begin; owned by the caller that changes it
}

// begin reads the file of a former life, so that its keys can be removed.
func (f *statusFile) begin() (err error) {
	f.pairs, err = f.read()
	return err
}

// change replaces the file by one with the changes.
func (f *statusFile) change(changes []kvdbsync.Pair) error {
	pairs := maps.Clone(f.pairs)
	for _, c := range changes {
		pairs[c.Key] = c
		if c.Value == nil {
			delete(pairs, c.Key)
		}
	}
	if err := replaceFile(f.path, statusText(pairs)); err != nil {
		return err
	}
	f.pairs = pairs
	return nil
}

// replaceFile replaces a file by a new one, and makes the folders above it. A reader sees
// either the old or the new content, also after a loss of power.
func replaceFile(path string, text []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // status contains no secrets, and other users read it
		return err
	}
	// The permissions do not depend on the umask: other users read the file.
	return renameio.WriteFile(path, text, 0, renameio.WithTempDir(dir), renameio.WithStaticPermissions(0o644))
}

// statusText returns the key/value form, with a line for each key.
func statusText(pairs map[string]kvdbsync.Pair) []byte {
	var out bytes.Buffer
	out.WriteString("{\"data\": [")
	for i, key := range slices.Sorted(maps.Keys(pairs)) {
		if i > 0 {
			out.WriteString(",")
		}
		quoted, _ := json.Marshal(key) // never fails
		fmt.Fprintf(&out, "\n{\"key\": %s, \"value\": %s}", quoted, pairs[key].Value)
	}
	out.WriteString("\n]}\n")
	return out.Bytes()
}

// read returns the content of the file, which may be missing or empty. A file that the
// agent did not write is an error: it must not be overwritten.
func (f *statusFile) read() (map[string]kvdbsync.Pair, error) {
	text, err := plainfile.Read(f.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	pairs := map[string]kvdbsync.Pair{}
	if len(bytes.TrimSpace(text)) == 0 {
		return pairs, nil
	}
	var file struct {
		Data []struct {
			Key   string          `json:"key"`
			Value json.RawMessage `json:"value"`
		} `json:"data"`
	}
	if err := json.Unmarshal(text, &file); err != nil || file.Data == nil {
		return nil, fmt.Errorf("%s is no status file: remove it, or choose another path", f.path)
	}
	for _, p := range file.Data {
		pairs[p.Key] = kvdbsync.Pair{Key: p.Key, Value: p.Value}
	}
	return pairs, nil
}

// under returns the pairs below a prefix.
func (f *statusFile) under(prefix string) ([]kvdbsync.Pair, error) {
	pairs, err := f.read()
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(pairs, func(key string, _ kvdbsync.Pair) bool { return !strings.HasPrefix(key, prefix) })
	return slices.Collect(maps.Values(pairs)), nil
}

func (f *statusFile) get(key string) ([]byte, error) {
	pairs, err := f.read()
	return pairs[key].Value, err
}
