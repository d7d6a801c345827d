package stores

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/keyplane/keyplane/connectors/filedb"
	"github.com/keyplane/keyplane/internal/faults/history"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/models"
)

// filedbCan are the abilities of files: nothing in between could be killed or cut.
const filedbCan = FilesOfPeople | Groups | Many | Children | BlockYAML

// fileHomes is the number of files. One write saves one file.
const fileHomes = 4

// connectFiledb makes a connector for the same folder, also in a child process.
func connectFiledb(config json.RawMessage) (kvdbsync.Connector, error) {
	var cfg filedb.Config
	if err := json.Unmarshal(config, &cfg); err != nil {
		return nil, err
	}
	return filedb.New(cfg, Root, slog.New(slog.DiscardHandler))
}

// A fileStore is a folder with a file for each home.
type fileStore struct {
	testing.TB
	dir  string
	has  map[string]map[string]string // text by name by home
	save func(path string, content []byte) error
	form fileForm
}

// A fileForm is the format of files.
type fileForm struct {
	suffix  string
	content func(texts map[string]string) []byte
	parse   func([]byte, any) error
}

// jsonForm is the form of files that programs write.
func jsonForm() fileForm { return fileForm{".json", content, json.Unmarshal} }

// yamlForm is the form of files that people write. Half of such a file may be valid.
func yamlForm() fileForm {
	return fileForm{".yaml", yamlContent, yaml.Unmarshal}
}

// openFiledb makes an empty folder. The grace of 100 ms bounds how long the connector
// waits for the rest of an unfinished YAML file.
func openFiledb(t testing.TB, extra Ability) *Store {
	s := &fileStore{TB: t, dir: filepath.Join(t.TempDir(), "network"), has: map[string]map[string]string{}, save: SaveByRename, form: jsonForm()}
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	cfg := filedb.Config{Paths: []string{s.dir}}
	if extra&BlockYAML != 0 {
		s.form, cfg.Grace = yamlForm(), 100*time.Millisecond
	}
	db, err := filedb.New(cfg, Root, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return &Store{
		Config: cfg, Connector: db, Write: s.write, List: s.list,
		AtOnce: 1_000_000, Homes: fileHomes, MaxValue: models.MaxSize, MaxName: 3 << 10, Dir: s.dir,
		SaveAs: func(save func(string, []byte) error) { s.save = save },
		Wipe:   func() { s.has = map[string]map[string]string{} },
	}
}

// write saves the file of the changes' home. All changes must have the same home.
func (s *fileStore) write(_ context.Context, changes ...history.Change) error {
	home, _, found := strings.Cut(changes[0].Key, "if")
	if !found {
		home = "{others}"
	}
	if s.has[home] == nil {
		s.has[home] = map[string]string{}
	}
	for _, c := range changes {
		s.has[home][c.Key] = c.Text
		if c.Text == "" {
			delete(s.has[home], c.Key)
		}
	}
	return s.save(s.path(home), s.form.content(s.has[home]))
}

// path returns the path of the file of a home: 3.json for the home {3}.
func (s *fileStore) path(home string) string {
	return filepath.Join(s.dir, strings.Trim(home, "{}")+s.form.suffix)
}

// content returns a JSON file with texts.
func content(texts map[string]string) []byte {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		lines = append(lines, fmt.Sprintf(`{"key":%q,"value":%s}`, KeyPrefix()+name, ValueOf(name, texts[name])))
	}
	return fmt.Appendf(nil, `{"data":[%s]}`, strings.Join(lines, ",\n"))
}

// yamlContent returns a YAML file with texts. The file stays valid if it is cut off behind
// any of its lines.
func yamlContent(texts map[string]string) []byte {
	out := []byte("data:\n")
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		out = fmt.Appendf(out, "- key: %s\n  value: %s\n", KeyPrefix()+name, ValueOf(name, texts[name]))
	}
	return out
}

// list reads the files, not the record in s.has: a fault may have changed them.
func (s *fileStore) list(ctx context.Context) (map[string]string, error) {
	pairs, err := s.pairs(ctx)
	return textsOf(pairs), err
}

// pairs reads the files without any code of filedb.
func (s *fileStore) pairs(context.Context) ([]kvdbsync.Pair, error) {
	paths, err := filepath.Glob(filepath.Join(s.dir, "*"+s.form.suffix))
	var pairs []kvdbsync.Pair
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var file struct {
			Data []struct {
				Key   string
				Value map[string]any
			}
		}
		if err := s.form.parse(text, &file); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for _, e := range file.Data {
			value, err := json.Marshal(e.Value)
			if err != nil {
				return nil, err
			}
			pairs = append(pairs, kvdbsync.Pair{Key: e.Key, Value: value})
		}
	}
	return pairs, err
}

// SaveByRename writes a new file beside the old one, and renames it to the old one's path.
func SaveByRename(path string, content []byte) error {
	beside := path + ".new"
	if err := os.WriteFile(beside, content, 0o600); err != nil {
		return err
	}
	return os.Rename(beside, path)
}
