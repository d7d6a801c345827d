// Package initfile is a store in one file, which is read once at the start of the agent.
// It describes an initial network, and any other store may change it key by key.
//
//	file, err := initfile.New(initfile.Config{Path: "initial-config.yaml"}, "/vnf-agent/vpp1/")
//	for batch, err := range file.Watch(ctx, "/vnf-agent/vpp1/") { ... }
//
// The file has the structured form of package models/structured. It must be valid as a
// whole: any fault in it is an error of New. Its content never changes after that. Tests:
// valid files, and a table of invalid ones.
package initfile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"strings"
	"time"
	"unique"

	"github.com/keyplane/keyplane/internal/filelease"
	"github.com/keyplane/keyplane/internal/plainfile"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/structured"
	"github.com/keyplane/keyplane/models/structured/document"
)

// Config is the content of initfileregistry.conf.
type Config struct {
	// Disabled turns this store off.
	Disabled bool `yaml:"disable-initial-configuration"`
	// Path is the file. A name without a slash is below the agent's folder of
	// configuration files. Without the file this store does not exist. Defaults to
	// initial-config.yaml.
	Path string `yaml:"initial-configuration-file-path"`
	// WriterTimeout is the longest wait while another process has the file open for
	// writing. Defaults to 10 s.
	WriterTimeout time.Duration `yaml:"writer-timeout"`
	// Models are the models that the file may have. Defaults to the built-in ones.
	Models *models.Registry `yaml:"-"`
}

// Defaults returns the configuration in effect without a configuration file.
func Defaults() Config { return Config{Path: "initial-config.yaml"} }

// A File is the content of the file.
type File struct {
	// Warnings are about leniently read values. Each begins with path and line.
	Warnings []error

	events []kvdbsync.Event
}

// ErrNone means that the file is missing, or the store is turned off.
var ErrNone = errors.New("no initial configuration")

// ErrBusy means that another process has the file open for writing for longer than
// Config.WriterTimeout.
var ErrBusy = errors.New("is still being written: another process has it open for writing")

// ErrNoFile means that the path is that of a folder, a pipe, a socket or a device.
var ErrNoFile = errors.New("is no regular file")

// New reads the file as soon as no process has it open for writing. root,
// "/vnf-agent/<label>/", is put before the keys. The error lists every fault with its line.
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
	return parse(cfg, data, root)
}

// awaitWriter reads the file at a moment when no process has it open for writing.
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

// read returns the content of the file, or ErrBusy while another process writes it.
func read(path string) ([]byte, error) {
	f, err := plainfile.Open(path)
	if errors.Is(err, plainfile.ErrNoFile) {
		return nil, fmt.Errorf("%s: %w", path, ErrNoFile)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close() // this also ends the lease
	if filelease.Take(f) == filelease.Writing {
		return nil, fmt.Errorf("%s: %w", path, ErrBusy)
	}
	return io.ReadAll(f)
}

// parse turns the content into keys and values, by the rules of connector filedb.
func parse(cfg Config, data []byte, root string) (*File, error) {
	path := cfg.Path
	format, _ := document.FormatOf(path)
	text, err := structured.For(cmp.Or(cfg.Models, models.BuiltIn())).Read(context.Background(), data, format)
	if err != nil {
		return nil, fmt.Errorf("initial configuration: %s:%w", path, err)
	}
	items, errs, ignored := text.All()
	out, file := &File{}, unique.Make(path)
	for _, w := range ignored {
		out.Warnings = append(out.Warnings, fmt.Errorf("%s:%w; it has no effect", path, w))
	}
	lines := map[string]int{}
	for _, it := range items {
		key := cutRoot(it.Key, root)
		first, twice := lines[key]
		switch {
		case it.Err != nil:
			errs = append(errs, it.Err)
		case it.Value == nil:
			errs = append(errs, &document.Error{Line: it.Line, Column: it.Column, Msg: it.Key + ": entry without a value: expected {key, value}"})
		case twice:
			errs = append(errs, fmt.Errorf("%d: %s: is in line %d already: expected it once", it.Line, it.Key, first))
		}
		lines[key] = it.Line
		for _, w := range it.Warnings {
			out.Warnings = append(out.Warnings, fmt.Errorf("%s:%w", path, w))
		}
		out.events = append(out.events, kvdbsync.Event{Key: root + key, Value: it.Value, Origin: kvdbsync.Origin{File: file, Line: it.Line}})
	}
	for i, err := range errs {
		errs[i] = fmt.Errorf("%s:%w", path, err)
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("initial configuration: %w", errors.Join(errs...))
	}
	return out, nil
}

// cutRoot returns a key without the prefix of the agent.
func cutRoot(key, root string) string {
	return strings.TrimPrefix(strings.TrimPrefix(key, root), "/")
}

// Watch yields the content of the file, and nothing more. See kvdbsync.Connector.
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
