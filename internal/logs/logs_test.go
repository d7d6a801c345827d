package logs_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/keyplane/keyplane/internal/logs"
)

func Example() {
	table := logs.New(logs.Options{Out: withoutTime{os.Stdout}})
	log := table.Logger("etcd").With("source", "etcd")
	log.Debug("a revision was skipped", "revision", 7)
	_, err := table.Set("etcd", "debug")
	log.Debug("a revision was skipped", "revision", 8)
	fmt.Println(table.List(), err)
	// Output:
	// level=DEBUG msg="a revision was skipped" source=etcd revision=8 logger=etcd
	// [{etcd debug}] <nil>
}

// TestNoErrorIsNotSaid logs an error that there is not.
func TestNoErrorIsNotSaid(t *testing.T) {
	for _, json := range []bool{false, true} {
		var out bytes.Buffer
		log := logs.New(logs.Options{Out: &out, JSON: json}).Logger("trial")
		var none error
		log.Warn("taken back", "source", "grpc", "err", none)
		log.Warn("failed", "err", errors.New("no memory"))
		if text := out.String(); strings.Contains(text, "nil") || strings.Contains(text, "null") || !strings.Contains(text, "no memory") {
			t.Errorf("logged\n%s", text)
		}
	}
}

// refuse logs from one place. Each inlined copy of it would be another one.
//
//go:noinline
func refuse(log *slog.Logger, lines int) {
	for i := range lines {
		log.Error("value refused", "n", i)
	}
}

// TestFlood has one place log without end. Other places, and debug, are not affected.
func TestFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		table := logs.New(logs.Options{Out: &out, Level: slog.LevelDebug})
		log := table.Logger("etcd").With("source", "etcd")
		flood := func(lines int) (written string) {
			out.Reset()
			refuse(log, lines)
			return out.String()
		}
		const most = 2001 // with the warning
		if got := strings.Count(flood(10_000), "\n"); got != most {
			t.Errorf("%d lines, want %d", got, most)
		}
		last := out.String()[strings.LastIndex(out.String()[:out.Len()-1], "\n")+1:]
		if !strings.Contains(last, "level=WARN") || !strings.Contains(last, `kind="value refused" logger=etcd`) {
			t.Errorf("the last line is %s", last)
		}
		out.Reset()
		table.Logger("etcd").Error("another place")
		for range 3000 {
			log.Info("what was asked for")
		}
		if got := strings.Count(out.String(), "\n"); got != 3001 {
			t.Errorf("%d lines of other places, want 3001", got)
		}
		<-time.After(time.Second)
		if got := flood(10_000); strings.Count(got, "\n") != 5 || !strings.Contains(got, "left_out=8000 ") || strings.Contains(got, "WARN") {
			t.Errorf("a second later:\n%s", got)
		}
		<-time.After(time.Hour)
		if got := strings.Count(flood(10_000), "\n"); got != most {
			t.Errorf("%d lines an hour later, want %d", got, most)
		}
	})
}

// TestFloodOfServer has a server of package net/http log, in whose lines each message is another one.
func TestFloodOfServer(t *testing.T) {
	var out bytes.Buffer
	log := slog.NewLogLogger(logs.New(logs.Options{Out: &out}).Logger("http").Handler(), slog.LevelWarn)
	for i := range 5000 {
		log.Printf("http: TLS handshake error from 127.0.0.1:%d", i)
	}
	if got := strings.Count(out.String(), "\n"); got > 2100 {
		t.Errorf("%d lines", got)
	}
}

// TestLongTexts logs texts of a megabyte.
func TestLongTexts(t *testing.T) {
	long := strings.Repeat("ä", 1<<19)
	for _, json := range []bool{false, true} {
		var out bytes.Buffer
		log := logs.New(logs.Options{Out: &out, JSON: json}).Logger("etcd").With("key", long)
		log.Warn("failed", "err", errors.New(long), "text", long)
		text := out.String()
		if len(text) > 13<<10 || strings.Count(text, "... (1048576 bytes)") != 3 || !utf8.ValidString(text) {
			t.Errorf("%d bytes", len(text))
		}
	}
}

// withoutTime drops the time of each line.
type withoutTime struct{ io.Writer }

func (w withoutTime) Write(p []byte) (int, error) {
	_, rest, _ := bytes.Cut(p, []byte(" "))
	_, err := w.Writer.Write(rest)
	return len(p), err
}

// Each component has a level of its own, whenever its loggers are made.
func TestLevels(t *testing.T) {
	var out bytes.Buffer
	table := logs.New(logs.Options{Out: &out, Level: slog.LevelWarn, Levels: map[string]slog.Level{"late": slog.LevelDebug, "typo": slog.LevelError}})
	early, late := table.Logger("early"), table.Logger("late").WithGroup("g").With("k", 1)
	for _, log := range []*slog.Logger{early, late, table.Logger("early")} {
		log.Debug("d")
		log.Warn("w")
	}
	if got := strings.Count(out.String(), "\n"); got != 4 {
		t.Errorf("%d lines, want 4: w of each, and d of late:\n%s", got, &out)
	}
	want := []logs.Level{{Logger: "early", Level: "warn"}, {Logger: "late", Level: "debug"}}
	if got := table.List(); !slices.Equal(got, want) {
		t.Errorf("List is %v, want %v", got, want)
	}
	if got := table.Unused(); !slices.Equal(got, []string{"typo"}) {
		t.Errorf("Unused is %v, want typo", got)
	}
}

func TestSet(t *testing.T) {
	table := logs.New(logs.Options{Out: io.Discard})
	log := table.Logger("etcd").With("a", 1)
	if _, err := table.Set("redis", "debug"); !errors.Is(err, logs.ErrUnknown) {
		t.Errorf("of an unknown logger: %v", err)
	}
	if _, err := table.Set("etcd", "loud"); err == nil || !strings.Contains(err.Error(), `level is "loud"; expected debug, info, warn or error`) {
		t.Errorf("to an unknown level: %v", err)
	}
	for name, want := range map[string]string{"TRACE": "debug", "warning": "warn", "fatal": "error", "info": "info"} {
		got, err := table.Set("etcd", name)
		if err != nil || got != (logs.Level{Logger: "etcd", Level: want}) {
			t.Errorf("to %s: %v, %v; want %s", name, got, err, want)
		}
		if level, _ := logs.Parse(name); !log.Enabled(t.Context(), level) || log.Enabled(t.Context(), level-1) {
			t.Errorf("after %s, the logger does not obey", name)
		}
	}
}

func TestJSON(t *testing.T) {
	var out bytes.Buffer
	logs.New(logs.Options{Out: &out, JSON: true}).Logger("etcd").Info("connected", "keys", 3)
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil || line["logger"] != "etcd" || line["msg"] != "connected" {
		t.Errorf("%s: %v", &out, err)
	}
}

// Loggers are made, used and changed by many goroutines at once.
func TestConcurrentUse(t *testing.T) {
	table := logs.New(logs.Options{Out: io.Discard})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			name := fmt.Sprint("c", i%3)
			log := table.Logger(name)
			for range 100 {
				if _, err := table.Set(name, "debug"); err != nil {
					t.Error(err)
				}
				log.Debug("line")
				_ = table.List()
			}
		})
	}
	all.Wait()
}

func TestConfig(t *testing.T) {
	c := logs.Config{Default: "warn", Format: "json", Loggers: []logs.LoggerConfig{{"etcd", "debug"}, {"vpp", "error"}}}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	o := c.Options(io.Discard, slog.LevelInfo)
	if !o.JSON || o.Level != slog.LevelWarn || o.Levels["etcd"] != slog.LevelDebug || o.Levels["vpp"] != slog.LevelError {
		t.Errorf("options are %+v", o)
	}
	if o := (logs.Config{}).Options(io.Discard, slog.LevelDebug); o.Level != slog.LevelDebug || o.JSON {
		t.Errorf("options of an empty file are %+v", o)
	}
	err := logs.Config{Default: "loud", Format: "xml", Loggers: []logs.LoggerConfig{{"", "info"}, {"a", "x"}, {"b", "info"}, {"b", "info"}}}.Validate()
	for _, want := range []string{
		`default-level: level is "loud"`, `format is "xml"; expected text or json`, "loggers[0]: name is required",
		`loggers[1] (a): level is "x"`, `loggers[3]: name "b" appears twice`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
}
