package redis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"

	goredis "github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/connectors/redis/internal/paging"
	"github.com/keyplane/keyplane/internal/testkit/draw"
	"github.com/keyplane/keyplane/kvdbsync"
)

// A fakeStore names what is put into it at once, and lets a test put while it is
// being read.
type fakeStore struct {
	has     map[string]string
	puts    int
	box     *inbox
	reading func() // between the moment of a reading and its answer
}

func (s *fakeStore) put(key string) {
	s.puts++
	s.has[key] = fmt.Sprint(s.puts)
	s.box.add(key)
}

func (s *fakeStore) read(_ context.Context, keys []string) (reading, error) {
	events := make([]kvdbsync.Event, len(keys))
	for i, key := range keys {
		events[i] = kvdbsync.Event{Key: key, Value: []byte(s.has[key])}
	}
	s.reading()
	return reading{events: events}, nil
}

// watchFake begins a watch of a fake store, and returns what follows it for as
// long as there is something to take.
func watchFake(ofCluster bool) (s *fakeStore, seen map[string]string, awaitAll func() error) {
	s, seen = &fakeStore{has: map[string]string{}, box: newInbox("", kvdbsync.Bounds{}), reading: func() {}}, map[string]string{}
	w := &watch{box: s.box, read: newPager(s.read, &paging.Size{}), emit: func(b kvdbsync.Batch) error {
		for _, e := range b.Events {
			seen[e.Key] = string(e.Value)
		}
		return nil
	}}
	if ofCluster {
		w.cluster = &goredis.ClusterClient{}
	}
	return s, seen, func() error {
		for {
			select {
			case <-s.box.some.C():
			default:
				return nil
			}
			if err := w.pass(context.Background()); err != nil {
				return err
			}
		}
	}
}

// The last put comes out, however many readings it and those before it overtake:
// also as many as a watch is ready to do over.
func TestPutDuringEachReading(t *testing.T) {
	t.Parallel()
	for _, ofCluster := range []bool{false, true} {
		for overtaken := range 3 * maxReadings {
			s, seen, awaitAll := watchFake(ofCluster)
			s.reading = func() {
				if s.puts < overtaken {
					s.put("a")
					s.put("b")
				}
			}
			s.put("a")
			if err := awaitAll(); err != nil || !maps.Equal(seen, s.has) {
				t.Errorf("cluster %v, %d readings overtaken: %v was seen of %v, %v", ofCluster, overtaken, seen, s.has, err)
			}
		}
	}
}

// In the end what was seen is what is there, whatever was put when.
func TestPutsWhileReading(t *testing.T) {
	t.Parallel()
	draw.Check(t, func(t *rapid.T) {
		s, seen, awaitAll := watchFake(rapid.Bool().Draw(t, "of a cluster"))
		keys := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 4)
		left := rapid.IntRange(0, 100).Draw(t, "puts")
		putSome := func(when string) {
			for _, key := range keys.Draw(t, when) {
				if left--; left >= 0 {
					s.put(key)
				}
			}
		}
		s.reading = func() { putSome("while reading") }
		for range rapid.IntRange(1, 3).Draw(t, "times") {
			putSome("between")
			if err := awaitAll(); err != nil || !maps.Equal(seen, s.has) {
				t.Fatalf("%v was seen of %v, %v", seen, s.has, err)
			}
		}
	})
}

// A loss ends a read from another server at once, and is the reason that the watch gives.
func TestLossEndsReads(t *testing.T) {
	t.Parallel()
	w := &watch{box: newInbox("/", kvdbsync.Bounds{})}
	err := w.untilLost(t.Context(), func(ctx context.Context) error {
		w.box.fail(ErrMoved)
		<-ctx.Done()
		return ctx.Err()
	})
	if !errors.Is(err, ErrMoved) {
		t.Errorf("%v, want %v", err, ErrMoved)
	}
}
