// Package initfile is the store that is one file, read once when the agent starts: a
// network to begin with, which any other store may change key by key.
//
//	file, err := initfile.New(initfile.Config{Path: "initial-config.yaml"}, "/vnf-agent/vpp1/")
//	for batch, err := range file.Watch(ctx, "/vnf-agent/vpp1/") { ... }
//
// The file is in the structured form of package models/structured, and has to be
// right as a whole: any fault in it is an error of New. What it said then never changes.
// Tests: files that are right, and a table of those that are not.
package initfile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"strings"
	"syscall"
	"time"
	"unique"

	"github.com/keyplane/keyplane/internal/filelease"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/models/structured"
	"github.com/keyplane/keyplane/models/structured/document"
)

// Config is what initfileregistry.conf holds.
type Config struct {
	// Disabled turns all of it off.
	Disabled bool `yaml:"disable-initial-configuration"`
	// Path is the file. The agent looks for a name without a slash in its folder of
	// configuration files. Without the file there is no such store. Defaults to
	// initial-config.yaml.
	Path string `yaml:"initial-configuration-file-path"`
	// WriterTimeout is how long to wait while another process has the file open for
	// writing. Defaults to 10 s.
	WriterTimeout time.Duration `yaml:"writer-timeout"`
}

// Defaults are what holds without a configuration.
func Defaults() Config { return Config{Path: "initial-config.yaml"} }

// A File is what the file said.
type File struct {
	// Warnings are about what was read leniently. Each begins with path and line.
	Warnings []error

	events []kvdbsync.Event
}

// ErrNone is what New returns when the file is not there, or turned off.
var ErrNone = errors.New("no initial configuration")

// ErrBusy is what New returns when another process holds the file open for writing for
// longer than Config.WriterTimeout.
var ErrBusy = errors.New("is still being written: another process has it open for writing")

// New reads the file as soon as nobody has it open for writing. root,
// "/vnf-agent/<label>/", goes before the keys. Its error lists every fault with its line.
func New(cfg Config, root string) (*File, error) {
	if cfg.Disabled {
		return nil, ErrNone
	}
	if cfg.WriterTimeout < 0 {
		return nil, fmt.Errorf("writer-timeout: %v: expected a duration above zero, such as 10s", cfg.WriterTimeout)
	}
	data, err := awaitWriter(cfg.Path, cmp.Or(cfg.WriterTimeout, 10*time.Second))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	if err != nil {
		return nil, fmt.Errorf("initial configuration: %w", err)
	}
	return parse(cfg.Path, data, root)
}

// awaitWriter reads the file at a moment when nobody has it open for writing.
func awaitWriter(path string, patience time.Duration) (data []byte, err error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(patience); ; <-tick.C {
		data, err = read(path)
		if !errors.Is(err, ErrBusy) || time.Now().After(late) {
			return data, err
		}
	}
}

func read(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close() // and with it the lease
	if filelease.Take(f) == filelease.Writing {
		return nil, fmt.Errorf("%s: %w", path, ErrBusy)
	}
	return io.ReadAll(f)
}

func parse(path string, data []byte, root string) (*File, error) {
	format, _ := document.FormatOf(path)
	items, errs := structured.Parse(data, format)
	if docs, err := document.Read(data, format); err == nil && format == document.YAML {
		if err := document.Unfinished(data, docs); err != nil {
			errs = append(errs, err)
		}
	}
	out, file := &File{}, unique.Make(path)
	lines := map[string]int{}
	for _, it := range items {
		first, twice := lines[it.Key]
		switch {
		case it.Err != nil:
			errs = append(errs, it.Err)
		case twice:
			errs = append(errs, fmt.Errorf("%d: %s: is in line %d already: expected it once", it.Line, it.Key, first))
		}
		lines[it.Key] = it.Line
		for _, w := range it.Warnings {
			out.Warnings = append(out.Warnings, fmt.Errorf("%s:%w", path, w))
		}
		out.events = append(out.events, kvdbsync.Event{Key: root + it.Key, Value: it.Value, Origin: kvdbsync.Origin{File: file, Line: it.Line}})
	}
	for i, err := range errs {
		errs[i] = fmt.Errorf("%s:%w", path, err)
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("initial configuration: %w", errors.Join(errs...))
	}
	return out, nil
}

// Watch yields what the file said, and nothing more. See kvdbsync.Connector.
func (f *File) Watch(ctx context.Context, prefix string) iter.Seq2[kvdbsync.Batch, error] {
	return func(yield func(kvdbsync.Batch, error) bool) {
		b := kvdbsync.Batch{Synced: true}
		for _, e := range f.events {
			if strings.HasPrefix(e.Key, prefix) {
				b.Events = append(b.Events, e)
			}
		}
		if yield(b, nil) {
			<-ctx.Done()
		}
	}
}
