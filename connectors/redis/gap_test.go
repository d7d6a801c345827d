package redis_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keyplane/keyplane/connectors/redis"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
)

// A brittle connector ends some of its listings before they are complete.
type brittle struct {
	*redis.Connector
	cuts atomic.Int32 // listings that are still to be cut
}

var errCut = errors.New("the listing was cut")

// Watch implements kvdbsync.Connector.
func (c *brittle) Watch(ctx context.Context, prefix string) iter.Seq2[kvdbsync.Batch, error] {
	return func(yield func(kvdbsync.Batch, error) bool) {
		for b, err := range c.Connector.Watch(ctx, prefix) {
			if b.Synced && c.cuts.Load() > 0 {
				c.cuts.Add(-1)
				yield(kvdbsync.Batch{}, errCut)
				return
			}
			if !yield(b, err) {
				return
			}
		}
	}
}

// evictOnly has the server evict this key, and no other one that has no time to live.
func (s *server) evictOnly(key string) {
	s.t.Helper()
	s.do("EXPIRE", key, 3600)
	s.do("CONFIG", "SET", "maxmemory-policy", "volatile-random")
	s.do("CONFIG", "SET", "maxmemory", "1")
	for s.client.Exists(s.ctx(), key).Val() > 0 {
		_ = s.client.Set(s.ctx(), "more", "1", 0).Err() // refused once nothing is left to evict
	}
	s.do("CONFIG", "SET", "maxmemory", "0")
}

// resynced takes from a source until the change of a listing comes.
func (s *server) resynced(src *kvdbsync.Source) (c kvdbsync.Change) {
	s.t.Helper()
	for late := s.ctx(); ; {
		select {
		case <-src.Ready():
		case <-late.Done():
			s.t.Fatal("no listing came")
		}
		if c, _ = src.Take(); c.Resynced {
			return c
		}
	}
}

// A key that was evicted while nobody watched is doubted, also if the first listing after that
// was not complete.
func TestEvictionWhileTheLineWasCut(t *testing.T) {
	t.Parallel()
	for name, cuts := range map[string]int32{"whole listing": 0, "listing is cut": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			for i := range 10 {
				s.put(fmt.Sprint(root, i), "1")
			}
			c := &brittle{Connector: s.connector()}
			src := kvdbsync.NewSource(kvdbsync.Options{Name: "redis", Connector: c, Prefix: root, Log: discard(), MinBackoff: time.Millisecond, MaxBackoff: 50 * time.Millisecond})
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- src.Run(ctx) }()
			defer func() { stop(); <-ended }()
			if first := s.resynced(src); len(first.Events) != 10 || first.Distrust != nil {
				t.Fatalf("at first %+v", first)
			}
			c.cuts.Store(cuts)
			s.line.Set(testkit.Reset)
			s.evictOnly(root + "3")
			s.line.Set(testkit.Pass)
			again := s.resynced(src)
			if len(again.Events) != 1 || !again.Events[0].Absent || !strings.HasSuffix(again.Events[0].Key, "3") {
				t.Errorf("what has changed is %+v", again.Events)
			}
			if !errors.Is(again.Distrust, kvdbsync.ErrLostKeys) {
				t.Errorf("distrust is %v, want %v", again.Distrust, kvdbsync.ErrLostKeys)
			}
		})
	}
}
