package initfile_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/connectors/initfile"
	"github.com/keyplane/keyplane/internal/config"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/models"
)

const root = "/vnf-agent/vpp1/"

func write(t *testing.T, text string) initfile.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "initial-config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return initfile.Config{Path: path}
}

// first is the first batch of a watch, which then waits until its context ends.
func first(t *testing.T, f *initfile.File, prefix string) (first kvdbsync.Batch) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	for b, err := range f.Watch(ctx, prefix) {
		if err != nil {
			t.Fatal(err)
		}
		first = b
		n++
		cancel()
	}
	if n != 1 {
		t.Errorf("%d batches, want one", n)
	}
	return first
}

// What the README shows becomes the keys that it shows, in one batch.
func TestREADME(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```(?:yaml|text)\n(.*?)```").FindAllSubmatch(text, -1)
	if len(blocks) != 3 {
		t.Fatalf("the README has %d blocks, want the file, its keys, and the configuration", len(blocks))
	}
	f, err := initfile.New(write(t, string(blocks[0][1])), root)
	if err != nil {
		t.Fatal(err)
	}
	b := first(t, f, root+"config/")
	var keys strings.Builder
	for _, e := range b.Events {
		keys.WriteString(e.Key + "\n")
		if _, err := models.BuiltIn().Decode(strings.TrimPrefix(e.Key, root), e.Value); err != nil {
			t.Error(err)
		}
		if !strings.Contains(e.Origin.String(), "initial-config.yaml:") {
			t.Errorf("%s is from %q", e.Key, e.Origin)
		}
	}
	if keys.String() != string(blocks[1][1]) || !b.Synced {
		t.Errorf("got\n%s synced %v\nthe README shows\n%s", &keys, b.Synced, blocks[1][1])
	}
	if b := first(t, f, "/vnf-agent/other/"); len(b.Events) > 0 || !b.Synced {
		t.Errorf("below another prefix: %+v", b)
	}
	cfg := initfile.Config{Disabled: true}
	unknown, err := config.Parse("README.md", blocks[2][1], &cfg)
	if err != nil || len(unknown) > 0 || cfg != initfile.Defaults() {
		t.Errorf("%+v, unknown keys %v, error %v", cfg, unknown, err)
	}
}

func TestNoFile(t *testing.T) {
	dir := t.TempDir()
	for what, cfg := range map[string]initfile.Config{
		"absent":       {Path: filepath.Join(dir, "none.yaml")},
		"turned off":   {Path: dir, Disabled: true},
		"folder above": {Path: filepath.Join(dir, "none", "none.yaml")},
	} {
		if _, err := initfile.New(cfg, root); !errors.Is(err, initfile.ErrNone) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := initfile.New(initfile.Config{Path: dir}, root); err == nil || errors.Is(err, initfile.ErrNone) {
		t.Errorf("a folder: %v", err)
	}
	pipe := filepath.Join(dir, "pipe.yaml")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	writer, err := os.OpenFile(pipe, os.O_RDWR, 0) // which writes nothing
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	if _, err := initfile.New(initfile.Config{Path: pipe}, root); !errors.Is(err, initfile.ErrNoFile) {
		t.Errorf("a pipe: %v", err)
	}
}

func TestAnyFaultIsAnError(t *testing.T) {
	tests := []struct {
		what, text string
		want       []string
	}{
		{"syntax", "linuxConfig: [", []string{"initial-config.yaml:1"}},
		{"a group", "linuxConfg: {}", []string{":1:1", "did you mean linuxConfig?"}},
		{"fields, all of them", "linuxConfig:\n  interfaces:\n  - {name: a, mtuu: 1}\n  routes:\n  - {dst: x}\n", []string{":3:", "mtuu", ":5:", "dst"}},
		{"a key twice", "linuxConfig:\n  interfaces:\n  - {name: a, type: DUMMY}\n  - {name: a, type: DUMMY}\n", []string{":4: config/linux/interfaces/v2/interface/a", "line 3"}},
		{"an end that is cut off", "linuxConfig:\n  interfaces:\n", []string{":2:3", "has no value, as if it were cut off"}},
		{"a removal", "data: [{key: config/a}]", []string{":1:8", "entry without a value"}},
	}
	for _, tt := range tests {
		_, err := initfile.New(write(t, tt.text), root)
		if err == nil {
			t.Errorf("%s: no error", tt.what)
			continue
		}
		for _, want := range tt.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v\nwant %q in it", tt.what, err, want)
			}
		}
	}
}

func TestAnEmptyFileDeclaresNothing(t *testing.T) {
	f, err := initfile.New(write(t, "# nothing yet\n"), root)
	if err != nil {
		t.Fatal(err)
	}
	if b := first(t, f, root); len(b.Events) > 0 || !b.Synced {
		t.Errorf("%+v", b)
	}
}

// Half of a file is never read: a start waits for its writer, within reason.
func TestAFileThatIsBeingWritten(t *testing.T) {
	cfg := write(t, "")
	writer, err := os.Create(cfg.Path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := writer.WriteString("linuxConfig:\n  interfaces:\n  - {name: one, type: LOOPBACK}\n"); err != nil {
		t.Fatal(err)
	}
	cfg.WriterTimeout = time.Millisecond
	if _, err := initfile.New(cfg, root); !errors.Is(err, initfile.ErrBusy) || !strings.Contains(err.Error(), cfg.Path) {
		t.Errorf("held open: %v", err)
	}
	cfg.WriterTimeout = testkit.Patience
	var f *initfile.File
	ended := make(chan error, 1)
	go func() {
		var err error
		f, err = initfile.New(cfg, root)
		ended <- err
	}()
	_, err = writer.WriteString("  - {name: two, type: LOOPBACK}\n")
	if err = errors.Join(err, writer.Close()); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if b := first(t, f, root); len(b.Events) != 2 {
		t.Errorf("it says %+v", b.Events)
	}
}

func TestAFileWhoseEndIsMissing(t *testing.T) {
	_, err := initfile.New(write(t, "linuxConfig:\n  interfaces:\n  - {name: one, type: LOOPBACK}\n  routes:\n"), root)
	if err == nil || !strings.Contains(err.Error(), `initial-config.yaml:4:3: ends with "routes", which has no value`) {
		t.Error(err)
	}
}
