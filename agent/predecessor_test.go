package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
)

// A healthStore has one key, with what its function returns.
type healthStore struct {
	kvdbsync.Store
	get func() (string, error)
}

func (s healthStore) Get(context.Context, string) ([]byte, error) {
	text, err := s.get()
	return []byte(text), err
}

// TestPredecessor has an older agent, and what it left, in the store of a new one.
func TestPredecessor(t *testing.T) {
	const ours = "1795903335"
	for _, tt := range []struct {
		name string
		// at returns the text in the store after so much time.
		at   func(since time.Duration) (string, error)
		want []string // what is logged, in this order
	}{
		{"an older agent that ends after a minute", func(since time.Duration) (string, error) {
			return fmt.Sprintf(`{"state":"OK","start_time":"1795900000","last_update":"%d"}`, 1795903335+min(since, time.Minute)/(10*time.Second)*10), nil
		}, []string{"WARN an agent of vpp-agent 3.5 runs", "INFO the agent of vpp-agent 3.5 with the same label has ended"}},
		{"one of an early release, with numbers", func(since time.Duration) (string, error) {
			return fmt.Sprintf(`{"state":1,"start_time":1795900000,"last_update":%d}`, 1795903335+min(since, 20*time.Second)/(10*time.Second)*10), nil
		}, []string{"WARN an agent", "INFO the agent"}},
		{"one that starts after this one", func(since time.Duration) (string, error) {
			if since < 15*time.Second {
				return "", kvdbsync.ErrNotFound
			}
			return `{"start_time":"1795903350","last_update":"1795903350"}`, nil
		}, []string{"WARN an agent", "INFO the agent"}},
		{"what an agent left", func(time.Duration) (string, error) {
			return `{"state":"OK","start_time":"1795900000","last_update":"1795903330"}`, nil
		}, nil},
		{"nothing", func(time.Duration) (string, error) { return "", kvdbsync.ErrNotFound }, nil},
		{"a text of somebody else", func(time.Duration) (string, error) { return "hello", nil }, nil},
		{"this agent's own health", func(since time.Duration) (string, error) {
			return fmt.Sprintf(`{"state":"OK","start_time":"%s","last_update":"%d"}`, ours, 1795903335+since/time.Second), nil
		}, nil},
		{"a store that answers late", func(since time.Duration) (string, error) {
			if since < time.Minute {
				return "", errors.New("connection refused")
			}
			return fmt.Sprintf(`{"start_time":"1795900000","last_update":"%d"}`, 1795903335+min(since, 2*time.Minute)/(10*time.Second)*10), nil
		}, []string{"WARN an agent", "INFO the agent"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				var lines logLines
				p := predecessor{
					store: healthStore{get: func() (string, error) { return tt.at(time.Since(begin)) }},
					key:   "/vnf-agent/vpp1/check/status/v1/agent", started: ours, log: slog.New(&lines),
				}
				if err := p.run(t.Context()); err != nil {
					t.Fatal(err)
				}
				if len(lines.all) != len(tt.want) {
					t.Fatalf("logged %q; expected %q", lines.all, tt.want)
				}
				for i, want := range tt.want {
					if !strings.HasPrefix(lines.all[i], want) {
						t.Errorf("logged %q; expected %q", lines.all[i], want)
					}
				}
			})
		})
	}
}

// logLines are the levels and messages of a log, from INFO on.
type logLines struct {
	slog.Handler
	mu  sync.Mutex
	all []string
}

func (l *logLines) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

func (l *logLines) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, r.Level.String()+" "+r.Message)
	return nil
}
