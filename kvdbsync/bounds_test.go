package kvdbsync_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/internal/guard"
	"github.com/keyplane/keyplane/kvdbsync"
)

var tight = kvdbsync.Bounds{Value: 10, Page: 1 << 10, Listing: 4 << 10}

// listed is a batch that completes a listing.
func listed(events ...kvdbsync.Event) step {
	return step{b: kvdbsync.Batch{Synced: true, Events: events}}
}

func TestAValueThatIsTooLargeIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		steps := make(chan step)
		s := run(t, kvdbsync.Options{Connector: script(steps), Bounds: tight})
		steps <- listed(put("a", "1"), put("b", "12345678901"))
		want := "a=1 b!too large: the value has 11 bytes; max-value-size allows 10 resynced"
		if got := taken(s); got != want {
			t.Errorf("listed: %s, want %s", got, want)
		}
		steps <- step{b: kvdbsync.Batch{Events: []kvdbsync.Event{put("a", "123456789012")}}}
		want = "a!too large: the value has 12 bytes; max-value-size allows 10"
		if got := taken(s); got != want {
			t.Errorf("changed: %s, want %s", got, want)
		}
	})
}

func TestAListingThatNeverEndsIsEnded(t *testing.T) {
	batches := map[string]kvdbsync.Batch{
		"the same key for ever": {Events: []kvdbsync.Event{put("a", "1")}},
		"empty values":          {Events: []kvdbsync.Event{put("", "")}},
		"empty pages":           {},
	}
	for name, b := range batches {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				yielded := 0
				endless := connector(func(_ context.Context, yield func(kvdbsync.Batch, error) bool) {
					for yield(b, nil) {
						yielded++
					}
				})
				s := run(t, kvdbsync.Options{Connector: endless, Bounds: tight, MinBackoff: time.Hour, MaxBackoff: time.Hour})
				synctest.Wait()
				h := s.Health()
				if !errors.Is(h.Err, kvdbsync.ErrTooMuch) || !strings.Contains(h.Err.Error(), "max-listing-size allows, 4096") {
					t.Errorf("the listing ended with %v", h.Err)
				}
				if yielded > 100 {
					t.Errorf("%d batches were taken", yielded)
				}
			})
		})
	}
}

func TestAStoreThatGrowsBeyondTheBoundsIsNotFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		grown := 0
		growing := connector(func(_ context.Context, yield func(kvdbsync.Batch, error) bool) {
			for more := yield(kvdbsync.Batch{Synced: true}, nil); more; grown++ {
				more = yield(kvdbsync.Batch{Events: []kvdbsync.Event{put(strings.Repeat("k", grown), "1")}}, nil)
			}
		})
		s := run(t, kvdbsync.Options{Connector: growing, Bounds: tight, MinBackoff: time.Hour, MaxBackoff: time.Hour})
		synctest.Wait()
		if err := s.Health().Err; !errors.Is(err, kvdbsync.ErrTooMuch) || grown > 100 {
			t.Errorf("after %d keys the watch ended with %v", grown, err)
		}
	})
}

// A store whose keys come and go holds no more than the bounds allow.
func TestKeysThatAreGoneDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		steps := make(chan step)
		s := run(t, kvdbsync.Options{Connector: script(steps), Bounds: tight})
		steps <- listed()
		for range 200 {
			steps <- step{b: kvdbsync.Batch{Events: []kvdbsync.Event{put("a", "1")}}}
			steps <- step{b: kvdbsync.Batch{Events: []kvdbsync.Event{{Key: "a"}}}}
		}
		synctest.Wait()
		if h := s.Health(); h.State != kvdbsync.Synced {
			t.Errorf("%v for %v", h.State, h.Err)
		}
	})
}

type connector func(ctx context.Context, yield func(kvdbsync.Batch, error) bool)

func (c connector) Watch(ctx context.Context, _ string) iter.Seq2[kvdbsync.Batch, error] {
	return func(yield func(kvdbsync.Batch, error) bool) { c(ctx, yield) }
}

func TestAPanicEndsOnlyItsWatch(t *testing.T) {
	for name, begin := range map[string]func(yield func(kvdbsync.Batch, error) bool){
		"at once":      func(func(kvdbsync.Batch, error) bool) {},
		"while synced": func(yield func(kvdbsync.Batch, error) bool) { yield(kvdbsync.Batch{Synced: true}, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				watches := 0
				c := connector(func(ctx context.Context, yield func(kvdbsync.Batch, error) bool) {
					if watches++; watches > 1 {
						yield(kvdbsync.Batch{Synced: true, Events: []kvdbsync.Event{put("a", "1")}}, nil)
						<-ctx.Done()
						return
					}
					begin(yield)
					var none []int
					_ = none[watches]
				})
				s := run(t, kvdbsync.Options{Connector: c})
				elapse(time.Minute)
				if got := taken(s); got != "a=1 resynced" {
					t.Errorf("after the panic: %s", got)
				}
				if err := s.Health().LastErr; !errors.Is(err, guard.ErrPanic) || !strings.Contains(guard.Stack(err), "bounds_test.go") {
					t.Errorf("the first watch ended with %v", err)
				}
			})
		})
	}
}

func TestBoundsThatContradictEachOther(t *testing.T) {
	for want, b := range map[string]kvdbsync.Bounds{
		"":                                      {},
		"max-value-size is -1":                  {Value: -1},
		"at least twice max-value-size, 100":    {Value: 100, Page: 150},
		"at least max-page-size, 67108864":      {Listing: 1 << 20},
		"max-page-size is 1000; it must be at ": {Page: 1000},
	} {
		err := b.Validate()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", b, err, want)
		}
	}
}
