package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/keyplane/keyplane/internal/testkit/draw"
	"github.com/keyplane/keyplane/scheduler"
)

// A tally counts the transactions of a scheduler, and ends it when there are too many.
type tally struct {
	most, all, empty int
	tooMany          context.CancelFunc
}

func (c *tally) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (c *tally) Begin(*scheduler.Record) {}

func (c *tally) End(r *scheduler.Record) {
	if c.all++; c.all > c.most {
		c.tooMany()
	}
	if r.Type == scheduler.RetryFailed && r.Executed.Len() == 0 {
		c.empty++
	}
}

func (c *tally) Flush(context.Context) error { return nil }
func (c *tally) Loss() (txns, plans uint64)  { return 0, 0 }

// Whatever fails, hangs or loses its answer, a value is tried at most once in its delay, and no transaction is
// empty.
func TestRetriesAreBounded(t *testing.T) {
	draw.Each(t, func(t *testing.T, seed uint64) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 22))
			const keys, length = 6, 300
			b := newTar()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			count := &tally{most: 2 * keys * length, tooMany: cancel}
			s := scheduler.New(scheduler.Options{
				Log: slog.New(slog.DiscardHandler), TransactionLog: count, VerbTimeout: time.Duration(1+random.IntN(20)) * time.Second,
				Retry: scheduler.RetryPolicy{Period: time.Second, Max: time.Duration(1+random.IntN(10)) * time.Second},
			})
			for _, prefix := range []string{"thing/", "other/"} {
				_, err := scheduler.Register(s, b.descriptor(prefix))
				must(t, err)
			}
			ended := make(chan error)
			go func() { ended <- s.Run(ctx) }()
			key := func() string {
				return fmt.Sprintf("%s%d", []string{"thing/", "other/"}[random.IntN(2)], random.IntN(keys/2))
			}
			begun := time.Now()
			for time.Since(begun) < length*time.Second && ctx.Err() == nil {
				call := []string{"create ", "update ", "delete "}[random.IntN(3)] + key()
				if random.IntN(3) == 0 {
					call = "retrieve " + []string{"thing/", "other/"}[random.IntN(2)]
				}
				switch random.IntN(4) {
				case 0, 1:
					if b.hangs[call] == nil {
						b.hang(call)
					}
				case 2:
					b.release(call, []error{nil, errors.New("lost")}[random.IntN(2)])
				case 3:
					text := fmt.Sprint(random.IntN(3))
					if random.IntN(2) == 0 {
						text += ">" + key()
					}
					change := scheduler.Unwant(key())
					if random.IntN(4) > 0 {
						v, err := s.Value(key(), wrapperspb.String(text))
						must(t, err)
						change = v.Change()
					}
					_ = s.Start(ctx, scheduler.Txn{Changes: []scheduler.Change{change}}, func(*scheduler.Record, error) {})
				}
				<-time.After(time.Duration(random.IntN(4000)) * time.Millisecond)
			}
			cancel()
			for _, call := range slices.Sorted(maps.Keys(b.hangs)) {
				b.release(call, nil)
			}
			must(t, <-ended)
			if count.all > count.most || count.empty > 0 {
				t.Errorf("%d transactions in %v, of which %d retries do nothing; want at most %d, and none", count.all, time.Since(begun), count.empty, count.most)
			}
		})
	}, 13762774616034288274, 2810495340257431852)
}

// TestNotificationsLeaveRoomForVerbs has something change all the time in a system that takes 100 ms to read. Verbs have three
// quarters of the time, each waits for one read-back at most, and the last change is not missed.
func TestNotificationsLeaveRoomForVerbs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler)})
		var reads, asked, seen atomic.Int64
		for _, name := range []string{"thing", "other"} {
			_, err := scheduler.Register(s, scheduler.Descriptor[note, struct{}]{
				Name: name, Prefix: name + "/", Connection: "one",
				Create: func(context.Context, string, note) (struct{}, error) { return struct{}{}, nil },
				Delete: func(context.Context, string, note, struct{}) error { return nil },
				Retrieve: func(context.Context, []scheduler.Desired[note]) iter.Seq2[noteFound, error] {
					return func(func(noteFound, error) bool) {
						if name == "thing" {
							seen.Store(asked.Load())
							reads.Add(1)
						}
						<-time.After(50 * time.Millisecond)
					}
				},
			})
			must(t, err)
		}
		defer begin(t, s)()
		mustCommit(t, s, scheduler.Txn{Refresh: true})
		began := time.Now()
		reads.Store(0)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for ctx.Err() == nil {
				asked.Add(1)
				must(t, s.Refresh([]string{"thing", "other"}[asked.Load()%2]))
				<-time.After(10 * time.Millisecond)
			}
		}()
		const number = 100
		for i := range number {
			begun := time.Now()
			must(t, declare(t, s, fmt.Sprint("thing/", i), "1"))
			if took := time.Since(begun); took > 150*time.Millisecond {
				t.Errorf("value %d took %v, want at most 150 ms", i, took)
			}
			<-time.After(777 * time.Millisecond)
		}
		if each := time.Since(began) / time.Duration(max(1, reads.Load())); each < 350*time.Millisecond || each > 500*time.Millisecond {
			t.Errorf("read once in %v, want in 400 ms", each)
		}
		stop()
		<-ended
		<-time.After(20 * time.Second)
		if seen.Load() < asked.Load()-1 {
			t.Errorf("the last read-back came after %d of %d changes", seen.Load(), asked.Load())
		}
	})
}
