package filedb_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/keyplane/keyplane/connectors/filedb"
	"github.com/keyplane/keyplane/internal/config"
	"github.com/keyplane/keyplane/models"
)

// The files that the README shows become the keys that it shows, and each is valid.
func TestREADME(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, block := range regexp.MustCompile("(?s)```yaml\n# network/(\\S+)\n(.*?)```").FindAllSubmatch(text, -1) {
		write(t, filepath.Join(dir, string(block[1])), string(block[2]))
	}
	shown := regexp.MustCompile("(?s)```console\n\\$ agentctl [^\n]*\n(.*?)```").FindSubmatch(text)
	if shown == nil {
		t.Fatal("the README shows no keys")
	}
	pairs, err := newDB(t, filedb.Config{Paths: []string{dir}}).List(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, p := range pairs {
		got.WriteString(p.Key + "\n")
		if _, err := models.BuiltIn().Decode(strings.TrimPrefix(p.Key, root), p.Value); err != nil {
			t.Errorf("%s: %v", p.Key, err)
		}
	}
	if got.String() != string(shown[1]) {
		t.Errorf("got\n%s\nthe README shows\n%s", &got, shown[1])
	}
}

func TestConfigurationInREADME(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```yaml\n(configuration-paths.*?)```").FindSubmatch(text)
	if block == nil {
		t.Fatal("the README shows no configuration")
	}
	var cfg filedb.Config
	unknown, err := config.Parse("README.md", block[1], &cfg)
	if err != nil || len(unknown) > 0 || len(cfg.Paths) != 1 || cfg.StatusPath == "" {
		t.Errorf("%+v, unknown keys %v, error %v", cfg, unknown, err)
	}
	newDB(t, cfg)
}

func TestSampleConfiguration(t *testing.T) {
	var got filedb.Config
	unknown, err := config.Load("../../conf/filedb.conf", &got)
	if err != nil || len(unknown) > 0 {
		t.Fatal(unknown, err)
	}
	want := filedb.Config{Grace: 2 * time.Second, VanishGrace: 300 * time.Millisecond, Rescan: time.Minute, Poll: time.Second}
	if len(got.Paths) != 1 || got.Paths[0] != "/etc/keyplane/network" {
		t.Errorf("paths %v", got.Paths)
	}
	if got.Paths = nil; !equal(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func equal(a, b filedb.Config) bool {
	return a.StatusPath == b.StatusPath && a.Grace == b.Grace && a.VanishGrace == b.VanishGrace && a.Rescan == b.Rescan && a.Poll == b.Poll
}

func TestConfigThatMakesNoSense(t *testing.T) {
	for want, cfg := range map[string]filedb.Config{
		"configuration-paths: empty: expected at least one file or directory": {},
		"status-path: /etc/a/status.json lies in /etc/a of configuration-paths: expected one outside, such as /var/lib/keyplane/status.json": {
			Paths: []string{"/etc/b", "/etc/a/"}, StatusPath: "/etc/a/status.json",
		},
		"status-path: /etc/a.json lies in /etc/a.json of configuration-paths: expected one outside, such as /var/lib/keyplane/status.json": {
			Paths: []string{"/etc/a.json"}, StatusPath: "/etc/b/../a.json",
		},
		"configuration-paths[1]: empty: expected a file or a directory": {Paths: []string{"a", ""}},
		"grace: -1s: expected a duration above zero, such as 2s":        {Paths: []string{"a"}, Grace: -time.Second},
	} {
		if _, err := filedb.New(cfg, root, nil); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// A second watch, as that of a listing for comparison, sees what counts, not what lies there.
func TestWatchesAgreeOnWhatCounts(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/a.yaml", "data: [{key: config/a, value: 1}]")
	db := newDB(t, filedb.Config{Paths: []string{dir}})
	m := mirrored(t, db)
	write(t, dir+"/a.yaml", "data: [")
	m.until(t, "a problem", func() bool { return len(m.problems) == 1 })
	mirrored(t, db).holds(t, "config/a", "1")
	if value, err := db.Get(t.Context(), root+"config/a"); string(value) != "1" || err != nil {
		t.Errorf("%q, %v", value, err)
	}
}
