// Package filedb is a store of YAML and JSON files below configured paths. People, editors
// and Kubernetes write them.
//
//	db, err := filedb.New(filedb.Config{Paths: []string{"/etc/keyplane/conf.d"}}, "/vnf-agent/vpp1/", log)
//	for batch, err := range db.Watch(ctx, "/vnf-agent/vpp1/") { ... }
//
// A notification only says where to look. A notification about a plain file leads to that
// file. Any other one, about a link, a directory or lost notifications, leads to a look at
// everything. So neither the order nor the number of notifications matters. A periodic
// look at everything finds changes without a notification, such as those on network file
// systems.
//
// Each step is a file:
//
//	walk.go      finds the files
//	read.go      reads a file that nobody is writing
//	bounds.go    limits the number and size of files
//	parse.go     makes entries of a file; quick.go does so for the JSON of programs
//	file.go      decides which content of a file takes effect; a pure function
//	merge.go     merges all files
//	watch.go     yields the changes
//	notify.go    waits for the next reason to look
//
// A [DB] holds the last content of the files, guarded by a mutex, so several watches and
// readers agree. A snapshot never changes. Each look makes at most one batch. If two files
// have the same key, the path that sorts first takes effect, and within a file the first
// entry. The other entry is a problem.
//
// An editor may replace a file, a ConfigMap swaps a link, and a writer may be halfway
// through. So a file that is empty, missing or being written keeps its last content for a
// grace time, and a file that cannot be parsed keeps it until it can be.
//
// The agent only writes published status, outside of these paths: status.go, into one file
// (statusfile.go) or a folder (statusdir.go).
//
// Tests: real files, the ways in which real editors save, and real mounts; tables for the
// pure functions; the conformance suite.
package filedb

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/keyplane/keyplane/internal/budget"
	"github.com/keyplane/keyplane/models"
)

// Config is the content of filedb.conf.
type Config struct {
	// Paths are files, and directories with everything below them. Names that begin with a
	// dot are ignored, and so are files other than .json, .yaml and .yml. The agent waits
	// for a missing path. Required.
	Paths []string `yaml:"configuration-paths"`
	// StatusPath is the file into which sessions write status. If it ends in a slash, it
	// is a folder with one file per key. It must lie outside of Paths, and is created if
	// missing. Defaults to none: no status.
	StatusPath string `yaml:"status-path"`
	// Grace is the time for which an empty file keeps its last content. Defaults to 2 s.
	Grace time.Duration `yaml:"grace"`
	// VanishGrace is the same for a file that is gone, or from which keys are gone that no other file
	// has. Defaults to 300 ms.
	VanishGrace time.Duration `yaml:"vanish-grace"`
	// Rescan is the period of looks without a notification. Network file systems send
	// none. Defaults to 1 min.
	Rescan time.Duration `yaml:"rescan-interval"`
	// Poll is the period of looks when the kernel has no watches left. Defaults to 1 s.
	Poll time.Duration `yaml:"poll-interval"`
	// FollowLinks follows symbolic links that lead out of Paths, within the file system
	// that they lead to. Links within Paths, as a ConfigMap mounts them, and the elements of
	// Paths themselves are followed in any case.
	FollowLinks bool `yaml:"follow-links"`
	// MaxFiles is the largest number of YAML and JSON files in one of Paths. This and the
	// other bounds apply to each of Paths separately. Content beyond a bound is not read,
	// and a problem names the bound. While a bound is exceeded, nothing is removed.
	// Defaults to 10,000.
	MaxFiles int `yaml:"max-files"`
	// MaxEntries is the largest number of names of any sort. Defaults to 100,000.
	MaxEntries int `yaml:"max-entries"`
	// MaxDepth is the largest depth of folders below the configured one. Defaults to 16.
	MaxDepth int `yaml:"max-depth"`
	// MaxFileSize is the size of the largest file. Defaults to 64 MiB.
	MaxFileSize Size `yaml:"max-file-size"`
	// MaxYAMLSize is the size of the largest file that is YAML, or JSON outside the
	// key/value form. Reading one takes about 60 times its size in memory for a moment.
	// Large ones are therefore read one after the other. Defaults to 8 MiB.
	MaxYAMLSize Size `yaml:"max-yaml-size"`
	// MaxYAMLNodes is the number of nodes that such a file may have: names, values, lists. It
	// is estimated from the text, a little too high. A node takes up to 200 bytes of memory, and
	// two bytes of text. Defaults to 150,000; at most document.MostNodes.
	MaxYAMLNodes int `yaml:"max-yaml-nodes"`
	// MaxTotalSize is the size of all files together. Defaults to 256 MiB.
	MaxTotalSize Size `yaml:"max-total-size"`
	// Memory is shared with others that take much memory for a moment. Defaults to one for the
	// trees of files.
	Memory *budget.Budget `yaml:"-"`
	// Models are the models that the files may have. Defaults to the built-in ones.
	Models *models.Registry `yaml:"-"`
}

// mostTrees is the memory, in bytes, of the trees of files that are parsed at once.
const mostTrees = 48 << 20

// stall is the longest wait of the first batch of a watch for files that are being written.
func (c Config) stall() time.Duration { return 5 * c.Grace }

// A DB is the content of the files. Any goroutine may call its methods.
type DB struct {
	cfg  Config
	root string
	log  *slog.Logger

	mu    sync.Mutex // guards the fields below: one look at a time
	files files
	walk  *walk     // of the last look; nil: there was none
	whole time.Time // time of walk

	status *status
}

// New makes a DB. root is "/vnf-agent/<label>/". It is put before keys without it, and
// before the keys of the structured form. Nothing is read before the first Watch, Get or
// List.
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
		paths[i], err = filepath.Abs(path)
		if err != nil {
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
	cfg.Models = cmp.Or(cfg.Models, models.BuiltIn())
	cfg.Grace = cmp.Or(cfg.Grace, 2*time.Second)
	cfg.VanishGrace = cmp.Or(cfg.VanishGrace, 300*time.Millisecond)
	cfg.Rescan = cmp.Or(cfg.Rescan, time.Minute)
	cfg.Poll = cmp.Or(cfg.Poll, time.Second)
	cfg.Memory = cmp.Or(cfg.Memory, budget.New(mostTrees))
	return &DB{cfg: cfg, root: root, log: log, files: files{}, status: published}, nil
}
