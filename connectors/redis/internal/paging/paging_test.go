package paging_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/connectors/redis/internal/paging"
	"github.com/keyplane/keyplane/kvdbsync"
)

// events are the answer for some keys with values of a size.
func events(keys, size int) (all []kvdbsync.Event) {
	value := make([]byte, size)
	for range keys {
		all = append(all, kvdbsync.Event{Value: value})
	}
	return all
}

func TestKeysFollowTheValues(t *testing.T) {
	t.Parallel()
	var s paging.Size
	expect := func(when string, least, most int) {
		t.Helper()
		if n := s.Keys(); n < least || n > most {
			t.Errorf("%s: %d keys, want %d to %d", when, n, least, most)
		}
	}
	expect("at first", 100, 100)
	s.Answered(events(99, 1))
	expect("after a small answer", 100, 100)
	s.Answered(events(100, 3000))
	expect("after values of 3 kB", 1000, 1050)
	for range 1000 {
		s.Answered(events(1, 1))
	}
	expect("after single small values", 1000, 1050)
	s.Answered(make([]kvdbsync.Event, 100_000))
	expect("after deletions", 1000, 1050)
	small := events(1000, 10)
	for range 1000 {
		s.Answered(small)
	}
	expect("after values of 10 bytes", 100_000, 125_000)
	large := events(1000, 10<<20)
	for range 1000 {
		s.Answered(large)
	}
	expect("after values of 10 MB", 1, 1)
}

func TestLessAfterABrokenConnection(t *testing.T) {
	t.Parallel()
	var s paging.Size
	if err := s.Failed(context.Canceled); !errors.Is(err, context.Canceled) || s.Keys() != 100 {
		t.Errorf("after %v: %d keys", err, s.Keys())
	}
	if err := s.Failed(fmt.Errorf("reading: %w", io.EOF)); !strings.Contains(err.Error(), "maxmemory-clients") || s.Keys() != 50 {
		t.Errorf("after %v: %d keys", err, s.Keys())
	}
	for range 100 {
		_ = s.Failed(io.EOF)
	}
	if n := s.Keys(); n < 1 || n > 5 {
		t.Errorf("after many losses: %d keys", n)
	}
	s.Answered(events(s.Keys(), 0))
	if n := s.Keys(); n < 1000 {
		t.Errorf("after many losses, of small values: %d keys", n)
	}
}
