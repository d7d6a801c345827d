// Package filedb is the store that is files: YAML and JSON below some paths,
// written by people, by editors, by Kubernetes.
//
//	db, err := filedb.New(filedb.Config{Paths: []string{"/etc/keyplane/conf.d"}}, "/vnf-agent/vpp1/", log)
//	for batch, err := range db.Watch(ctx, "/vnf-agent/vpp1/") { ... }
//
// What wakes a watch says where to look, never what there is to see: a notification about
// a plain file leads to that file, and anything else, such as a link, a directory, or lost
// notifications, to everything: which files there are, which of
// them changed, what they say now. So it does not matter what happened, in what order, or
// how often; what was never told is found when everything is looked at again,
// now and then. The steps are a file each: walk.go finds the files, read.go
// reads one that nobody is writing, bounds.go says how much there may be, parse.go makes entries of it (quick.go, of
// what programs wrote), file.go decides (without touching anything) what counts of
// it, merge.go makes one store of all files, watch.go says what changed, notify.go
// waits for the next reason to look.
//
// A [DB] holds what its files last said, guarded by a mutex, so that several
// watches and readers agree; what they get is never changed afterwards. What one
// look finds is one batch. Where two files have a key, the one whose path sorts first
// counts, within a file the first; the other is a problem until one of them goes.
//
// All this is written by others. The agent itself writes published status only, beside
// them: status.go, into one file (statusfile.go) or a folder (statusdir.go).
//
// Tests: real files, real editors' ways of saving, real mounts' ways of swapping;
// tables for what decides without touching; the conformance suite.
package filedb

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/keyplane/keyplane/models/structured/document"
)

// Config is what filedb.conf holds.
type Config struct {
	// Paths are files, and directories with all that is below them. Names that begin
	// with a dot are left out, and so are files other than .json, .yaml and .yml. A path
	// that is not there yet is waited for. Required.
	Paths []string `yaml:"configuration-paths"`
	// StatusPath is the file that sessions write status to, or if it ends in a slash, the
	// folder with a file for each key. It lies outside of Paths, and is made if it is not
	// there. Defaults to none: no status.
	StatusPath string `yaml:"status-path"`
	// Grace is how long an empty file still counts as what it said before.
	// Defaults to 2 s.
	Grace time.Duration `yaml:"grace"`
	// VanishGrace is the same for a file that is gone. Defaults to 300 ms.
	VanishGrace time.Duration `yaml:"vanish-grace"`
	// Rescan is how often to look without having been told of a change. File
	// systems shared over a network tell nothing. Defaults to 1 min.
	Rescan time.Duration `yaml:"rescan-interval"`
	// Poll is how often to look where the kernel has no watches left to give.
	// Defaults to 1 s.
	Poll time.Duration `yaml:"poll-interval"`
	// FollowLinks follows symbolic links that lead out of Paths, within the file system
	// that they lead to. Links within Paths, as a ConfigMap mounts them, and the elements of
	// Paths themselves are followed in any case.
	FollowLinks bool `yaml:"follow-links"`
	// MaxFiles is how many YAML and JSON files one of Paths may hold. This and the other
	// bounds hold for each of Paths by itself. What is beyond a bound is not read, with a problem
	// that names the bound, and nothing that was read before is removed as long as a bound
	// is exceeded. Defaults to 10,000.
	MaxFiles int `yaml:"max-files"`
	// MaxEntries is how many names of any sort are looked at. Defaults to 100,000.
	MaxEntries int `yaml:"max-entries"`
	// MaxDepth is how many folders below the configured one are entered. Defaults to 16.
	MaxDepth int `yaml:"max-depth"`
	// MaxFileSize is the size of the largest file. Defaults to 64 MiB.
	MaxFileSize Size `yaml:"max-file-size"`
	// MaxYAMLSize is the size of the largest file that is YAML, or JSON in another than the
	// key/value form. To read one takes about 60 times its size of memory for a moment;
	// of several such files, no more than this is read at once. Defaults to 8 MiB.
	MaxYAMLSize Size `yaml:"max-yaml-size"`
	// MaxTotalSize is the size of all files together. Defaults to 256 MiB.
	MaxTotalSize Size `yaml:"max-total-size"`
	// Gate is shared with others that read large texts. Defaults to none.
	Gate *document.Gate `yaml:"-"`
}

// stall is how long the first batch waits for files that are being written.
func (c Config) stall() time.Duration { return 5 * c.Grace }

// A DB is the content of the files. Its methods may be called at the same time.
type DB struct {
	cfg  Config
	root string
	log  *slog.Logger

	mu    sync.Mutex // guards what follows: one look at a time
	files map[string]file
	walk  *walk     // the last; nil: there was none
	whole time.Time // when it was

	status *status
	trees  *semaphore.Weighted // bytes that are being made trees of nodes
}

// New makes a DB of the configuration. root, "/vnf-agent/<label>/", goes before keys
// that are written without it, and before those of the structured form. Nothing is
// read before the first Watch, Get or List.
func New(cfg Config, root string, log *slog.Logger) (*DB, error) {
	if len(cfg.Paths) == 0 {
		return nil, errors.New("configuration-paths: empty: expected at least one file or directory")
	}
	paths := make([]string, len(cfg.Paths))
	for i, path := range cfg.Paths {
		if path == "" {
			return nil, fmt.Errorf("configuration-paths[%d]: empty: expected a file or a directory", i)
		}
		var err error
		if paths[i], err = filepath.Abs(path); err != nil {
			return nil, fmt.Errorf("configuration-paths[%d]: %w", i, err)
		}
	}
	cfg.Paths = paths
	published, err := newStatus(cfg.StatusPath, paths)
	if err != nil {
		return nil, err
	}
	for name, d := range map[string]time.Duration{
		"grace": cfg.Grace, "vanish-grace": cfg.VanishGrace, "rescan-interval": cfg.Rescan, "poll-interval": cfg.Poll,
	} {
		if d < 0 {
			return nil, fmt.Errorf("%s: %v: expected a duration above zero, such as 2s", name, d)
		}
	}
	if err := cfg.bound(); err != nil {
		return nil, err
	}
	cfg.Grace = cmp.Or(cfg.Grace, 2*time.Second)
	cfg.VanishGrace = cmp.Or(cfg.VanishGrace, 300*time.Millisecond)
	cfg.Rescan = cmp.Or(cfg.Rescan, time.Minute)
	cfg.Poll = cmp.Or(cfg.Poll, time.Second)
	return &DB{
		cfg: cfg, root: root, log: log, files: map[string]file{}, status: published,
		trees: semaphore.NewWeighted(int64(cfg.MaxYAMLSize)),
	}, nil
}
