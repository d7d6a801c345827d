package publish_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/proto/ligato/kvscheduler"
	"github.com/keyplane/keyplane/scheduler"
)

const (
	root = "/vnf-agent/test/"
	of   = root + "config-status/text/" // where the status of config/text/... stands
)

// A text is what it becomes: "invalid", "waits", "fails", "half" (something derived
// from it waits), or else configured.
type text = *wrapperspb.StringValue

func texts() scheduler.Descriptor[text, struct{}] {
	return scheduler.Descriptor[text, struct{}]{
		Name: "text", Prefix: "config/text/",
		Validate: func(_ string, v text) error {
			if v.Value == "invalid" {
				return errors.New("value: invalid: expected anything else")
			}
			return nil
		},
		Dependencies: func(_ string, v text) []scheduler.Dependency {
			if v.Value == "waits" {
				return []scheduler.Dependency{{Label: "other-exists", Key: "config/text/other"}}
			}
			return nil
		},
		Derived: func(key string, v text) []scheduler.KeyValue {
			if v.Value == "half" {
				return []scheduler.KeyValue{{Key: "config/text/" + key, Value: wrapperspb.String("waits")}}
			}
			return nil
		},
		Create: func(_ context.Context, _ string, v text) (none struct{}, err error) {
			if v.Value == "fails" {
				return none, scheduler.Terminal(errors.New("no room"))
			}
			return none, nil
		},
		Delete: func(context.Context, string, text, struct{}) error { return nil },
	}
}

// newScheduler returns one that runs until stop is called.
func newScheduler(t testing.TB) (s *scheduler.Scheduler, stop func()) {
	t.Helper()
	s = scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler)})
	if _, err := scheduler.Register(s, texts()); err != nil {
		t.Fatal(err)
	}
	return s, running(t, s.Run)
}

// running runs something until stop is called, or the test ends.
func running(t testing.TB, run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	ended := false
	stop = func() {
		cancel()
		if ended {
			return
		}
		ended = true
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// commit declares texts: "a=waits b=anything c-".
func commit(t testing.TB, s *scheduler.Scheduler, words ...string) {
	t.Helper()
	var txn scheduler.Txn
	for _, word := range words {
		name, value, wanted := strings.Cut(word, "=")
		key := "config/text/" + strings.TrimSuffix(name, "-")
		v, err := s.Value(key, wrapperspb.String(value))
		switch {
		case !wanted:
			txn.Changes = append(txn.Changes, scheduler.Unwant(key))
		case err != nil:
			txn.Changes = append(txn.Changes, scheduler.Change{Key: key, Err: err})
		default:
			txn.Changes = append(txn.Changes, v.Change())
		}
	}
	_, _ = s.Commit(t.Context(), txn) // what fails is published
}

// shown is what stands under the status keys of a store: "a=CONFIGURED b=PENDING[other-exists]".
func shown(pairs []kvdbsync.Pair, err error) string {
	if err != nil {
		return err.Error()
	}
	var out []string
	for _, p := range pairs {
		out = append(out, strings.TrimPrefix(p.Key, of)+"="+statusText(p.Value))
	}
	return strings.Join(out, " ")
}

// statusText reads a status as clients do.
func statusText(value []byte) string {
	var st kvscheduler.ValueStatus
	if err := protojson.Unmarshal(value, &st); err != nil {
		return err.Error()
	}
	out := st.State.String()
	if len(st.Details) > 0 {
		out += fmt.Sprint(st.Details)
	}
	if st.Error != "" {
		out += "(" + st.Error + ")"
	}
	return out
}

// A journal is what a Publisher logs, without times.
type journal struct{ bytes.Buffer }

func (j *journal) log() *slog.Logger {
	return slog.New(slog.NewTextHandler(j, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "retry_in" {
			return slog.Attr{}
		}
		return a
	}}))
}

// messages are the levels and messages so far.
func (j *journal) messages() string {
	var out []string
	for line := range strings.Lines(j.String()) {
		level, rest, _ := strings.Cut(strings.TrimPrefix(line, "level="), " ")
		_, rest, _ = strings.Cut(rest, `msg="`)
		message, _, _ := strings.Cut(rest, `"`)
		out = append(out, level+" "+message)
	}
	return strings.Join(out, ", ")
}

func elapse(d time.Duration) { <-time.After(d) }

// takes is a request that takes a while, unless its caller gives up before.
func takes(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
