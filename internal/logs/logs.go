// Package logs gives each component of a program a logger of its own, with a level that can be
// changed while the program runs.
//
//	table := logs.New(logs.Options{Out: os.Stderr, Level: slog.LevelInfo})
//	log := table.Logger("etcd")            // each line has logger=etcd
//	err := table.Set("etcd", "debug")      // from now on
//	for _, l := range table.List() { ... } // by name
//
// A level that is set for a name counts for all loggers of that name, also for those that are
// made later. So a configuration can name a component that starts with the first request.
//
// One place of the program writes at most 2000 warnings or errors at once, and 5 a second after these: what others send
// must not fill the disk. Other lines say what somebody has asked for, or who has changed something. The first line that is left out is replaced by a warning, and later ones have the number of those
// that were left out, left_out. Texts longer than 4 KiB are cut.
//
// A reader that takes no more lines stops nothing; see [Sink].
//
// A check whether a line is wanted reads one atomic number. Its methods
// may be called from any goroutine.
package logs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// Key is the attribute with the name of the component.
const Key = "logger"

// Options configure a Table.
type Options struct {
	Out   io.Writer  // required
	JSON  bool       // lines are JSON objects. Defaults to text: key=value.
	Level slog.Level // of components without one in Levels. Defaults to info.
	// Levels are the levels of single components by name.
	Levels map[string]slog.Level
}

// A Table has the loggers of all components.
type Table struct {
	base slog.Handler
	calm *calm

	mu     sync.Mutex
	others slog.Level // of components that have no entry yet
	levels map[string]*slog.LevelVar
	used   map[string]bool // the names with a logger
}

// New returns a Table. Lines of different components never mix.
func New(o Options) *Table {
	// The components decide, so the handler below them accepts all levels.
	all := &slog.HandlerOptions{Level: slog.Level(-1 << 30), ReplaceAttr: attribute}
	t := &Table{calm: &calm{sites: map[site]*flow{}}, others: o.Level, levels: map[string]*slog.LevelVar{}, used: map[string]bool{}}
	write := func(out io.Writer) slog.Handler {
		if o.JSON {
			return slog.NewJSONHandler(out, all)
		}
		return slog.NewTextHandler(out, all)
	}
	sink := NewSink(o.Out)
	direct := write(o.Out)
	sink.caught = func(lost int) {
		r := slog.NewRecord(time.Now(), slog.LevelWarn, "the reader of the log was too slow: lines are missing here", 0)
		r.AddAttrs(slog.Int("lines", lost))
		_ = direct.Handle(context.Background(), r) // as for each other line
	}
	t.base = write(sink)
	for name, level := range o.Levels {
		t.entry(name).Set(level)
	}
	return t
}

// Logger returns the logger of a component. Loggers of one name share their level.
func (t *Table) Logger(name string) *slog.Logger {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.used[name] = true
	return slog.New(&handler{t.base, t.entry(name), name, t.calm})
}

// entry returns the level of a name; t.mu is held, or nobody else knows t.
func (t *Table) entry(name string) *slog.LevelVar {
	level := t.levels[name]
	if level == nil {
		level = &slog.LevelVar{}
		level.Set(t.others)
		t.levels[name] = level
	}
	return level
}

// A Level is the level of one component.
type Level struct {
	Logger string `json:"logger"`
	Level  string `json:"level"` // debug, info, warn or error
}

// List returns the components with a logger and their levels, sorted by name.
func (t *Table) List() []Level {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]Level, 0, len(t.used))
	for name := range t.used {
		out = append(out, Level{name, Name(t.levels[name].Level())})
	}
	slices.SortFunc(out, func(a, b Level) int { return cmp.Compare(a.Logger, b.Logger) })
	return out
}

// ErrUnknown is the error of Set for a name without a logger.
var ErrUnknown = errors.New("no such logger")

// Set changes the level of a component at once, and returns its new state. The error is
// ErrUnknown, or says which levels are allowed; see Parse.
func (t *Table) Set(name, level string) (Level, error) {
	parsed, err := Parse(level)
	if err != nil {
		return Level{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.used[name] {
		return Level{}, fmt.Errorf("%q: %w", name, ErrUnknown)
	}
	t.levels[name].Set(parsed)
	return Level{name, Name(parsed)}, nil
}

// Unused returns the names that have a level but no logger, sorted: probably typing errors.
func (t *Table) Unused() (names []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name := range t.levels {
		if !t.used[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Parse returns the level of a name in any case. Names of other agents map to the nearest
// level: trace to debug, warning to warn, fatal and panic to error.
func Parse(name string) (slog.Level, error) {
	switch strings.ToLower(name) {
	case "trace", "debug":
		return slog.LevelDebug, nil
	case "info":
		return slog.LevelInfo, nil
	case "warn", "warning":
		return slog.LevelWarn, nil
	case "error", "fatal", "panic":
		return slog.LevelError, nil
	}
	return 0, fmt.Errorf("level is %q; expected debug, info, warn or error", name)
}

// Name returns the name of a level, as Parse takes it.
func Name(level slog.Level) string { return strings.ToLower(level.String()) }

// A handler passes on the records that the level of its component allows.
type handler struct {
	slog.Handler
	level *slog.LevelVar
	name  string
	calm  *calm
}

// Handle implements slog.Handler. The name comes last, so that the message and what it is about
// stay together.
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	r = r.Clone()
	if r.Level >= slog.LevelWarn {
		v := h.calm.judge(site{h.name, r.Level, r.PC}, time.Now())
		switch {
		case v.tell:
			message := r.Message
			r = slog.NewRecord(r.Time, slog.LevelWarn, "so many lines of one kind that most of them are left out from now on", r.PC)
			r.AddAttrs(slog.String("kind", message))
		case !v.write:
			return nil
		case v.leftOut > 0:
			r.AddAttrs(slog.Int("left_out", v.leftOut))
		}
	}
	r.AddAttrs(slog.String(Key, h.name))
	return h.Handler.Handle(ctx, r)
}

// Enabled implements slog.Handler.
func (h *handler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level.Level() }

// WithAttrs implements slog.Handler.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &handler{h.Handler.WithAttrs(attrs), h.level, h.name, h.calm}
}

// WithGroup implements slog.Handler.
func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{h.Handler.WithGroup(name), h.level, h.name, h.calm}
}
