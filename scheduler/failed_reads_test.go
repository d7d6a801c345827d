package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/reading"
)

// A shelf has things. What lies on a base is found only after the base.
type shelf struct {
	mu     sync.Mutex
	stands map[string]string
	fails  error // of the first Retrieve of bases
	silent bool  // instead of failing, it waits until its context ends
	bases  bool  // bases were found
}

// descriptor is that of the things below name, none of which says whose it is.
func (h *shelf) descriptor(name string, after ...string) scheduler.Descriptor[note, struct{}] {
	set := func(_ context.Context, key string, v note) (struct{}, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.stands[key] = v.GetValue()
		return struct{}{}, nil
	}
	return scheduler.Descriptor[note, struct{}]{
		Name: name, Prefix: name + "/", Connection: "shelf", RetrieveAfter: after,
		Create: set,
		Update: func(ctx context.Context, key string, _, v note, _ struct{}) (struct{}, error) {
			return set(ctx, key, v)
		},
		Delete: func(_ context.Context, key string, _ note, _ struct{}) error {
			h.mu.Lock()
			defer h.mu.Unlock()
			delete(h.stands, key)
			return nil
		},
		Retrieve: func(ctx context.Context, _ []scheduler.Desired[note]) iter.Seq2[scheduler.Found[note, struct{}], error] {
			return func(yield func(scheduler.Found[note, struct{}], error) bool) {
				h.mu.Lock()
				defer h.mu.Unlock()
				if err := h.fails; err != nil && name == "base" {
					h.fails = nil
					if h.silent {
						<-ctx.Done()
						err = ctx.Err()
					}
					yield(scheduler.Found[note, struct{}]{}, err)
					return
				}
				h.bases = h.bases || name == "base"
				for key, text := range h.stands {
					visible := strings.HasPrefix(key, name+"/") && h.bases
					if visible && !yield(scheduler.Found[note, struct{}]{Key: key, Value: wrapperspb.String(text), OwnerUnknown: true}, nil) {
						return
					}
				}
			}
		},
	}
}

// TestFailedRetrieveIsRepeated has the first Retrieve of a restarted agent fail. Nothing is left of what is
// not declared any more, also not of what the bases would have shown, and of the values that follow in the same
// connection.
func TestFailedRetrieveIsRepeated(t *testing.T) {
	for name, losable := range map[string]bool{"a system": false, "a connection": true} {
		for _, silent := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, silent %t", name, silent), func(t *testing.T) {
				h, memory := &shelf{stands: map[string]string{}}, notebook{}
				life := func(keysAndTexts ...string) {
					synctest.Test(t, func(t *testing.T) {
						s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler), Memory: memory})
						var link *scheduler.Connection
						if losable {
							var err error
							link, err = s.Connection("shelf")
							must(t, err)
						}
						for _, d := range []scheduler.Descriptor[note, struct{}]{h.descriptor("base"), h.descriptor("on", "base"), h.descriptor("over", "on")} {
							_, err := scheduler.Register(s, d)
							must(t, err)
						}
						defer begin(t, s)()
						if losable {
							link.Ready()
						}
						_, err := s.Commit(t.Context(), scheduler.Txn{Refresh: true, Replace: true})
						must(t, err)
						must(t, declare(t, s, keysAndTexts...))
						<-time.After(5 * time.Minute)
						synctest.Wait()
					})
				}
				life("base/a", "1", "on/b", "1", "over/c", "1")
				if len(h.stands) != 3 {
					t.Fatalf("there are %v", h.stands)
				}
				h.bases, h.silent, h.fails = false, silent, errors.New("interrupted")
				life()
				if len(h.stands) > 0 || len(memory) > 0 {
					t.Errorf("left are %v, remembered %d", h.stands, len(memory))
				}
			})
		}
	}
}

// A read-back that fails again and again is logged when its error changes. The agent of a user without rights
// repeats it each minute.
func TestFailedRetrieveIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		var mu sync.Mutex // guards why
		why := errors.New("forbidden")
		set := func(err error) {
			mu.Lock()
			defer mu.Unlock()
			why = err
		}
		d := (&shelf{stands: map[string]string{}}).descriptor("base")
		d.Connection = ""
		d.Retrieve = func(context.Context, []scheduler.Desired[note]) iter.Seq2[scheduler.Found[note, struct{}], error] {
			return func(yield func(scheduler.Found[note, struct{}], error) bool) {
				mu.Lock()
				defer mu.Unlock()
				if why != nil {
					yield(scheduler.Found[note, struct{}]{}, why)
				}
			}
		}
		s := scheduler.New(scheduler.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		_, err := scheduler.Register(s, d)
		must(t, err)
		end := begin(t, s)
		_, err = s.Commit(t.Context(), scheduler.Txn{Refresh: true})
		must(t, err)
		for _, err := range []error{errors.New("busy"), nil, errors.New("busy")} {
			<-time.After(10 * time.Minute)
			set(err)
		}
		<-time.After(10 * time.Minute)
		_, err = s.Commit(t.Context(), scheduler.Txn{Refresh: true})
		must(t, err)
		<-time.After(10 * time.Minute)
		end()
		if got := strings.Count(log.String(), "cannot read back"); got != 3 {
			t.Errorf("logged %d times, want 3: forbidden, busy, and busy after a success\n%s", got, log.String())
		}
	})
}

// A verb that fails and says that it has changed nothing has nothing read back, so what else the connection has does not wait.
func TestNothingIsReadAfterAFailureWithoutEffect(t *testing.T) {
	for _, unchanged := range []bool{false, true} {
		t.Run(fmt.Sprintf("unchanged %t", unchanged), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newTar()
				b.hang("create thing/a")
				s, stop := b.begin(t, scheduler.Options{})
				defer stop()
				submit(t, s, "thing/a=1")
				synctest.Wait()
				b.took()
				b.hang("retrieve thing/")
				err, want := reading.Needless(scheduler.Terminal(errRefusedByTar)), ""
				if !unchanged {
					err, want = scheduler.Terminal(errRefusedByTar), "retrieve thing/"
				}
				b.release("create thing/a", err)
				<-time.After(soon)
				expect(t, "the calls", b.took(), want)
				expect(t, "the states", states(s), "thing/a FAILED (refused)")
				begun := time.Now()
				submit(t, s, "thing/b=1")
				<-time.After(soon)
				if made := strings.Contains(b.took(), "create thing/b"); made != unchanged {
					t.Errorf("another value was made %t, %v later; want %t", made, time.Since(begun), unchanged)
				}
				b.release("retrieve thing/", nil)
			})
		})
	}
}

// Each failed verb has its value read back: that of a value which another one needs, and which failed too, and that of a
// transaction whose caller has left. Otherwise what was half done would stay when nobody wants it any more.
func TestEachFailureIsReadBack(t *testing.T) {
	for name, begin := range map[string]func(t *testing.T, s *scheduler.Scheduler, b *tar){
		"after a first failure": func(t *testing.T, s *scheduler.Scheduler, b *tar) {
			b.hang("create thing/a")
			b.hang("create thing/b")
			submit(t, s, "thing/a=1 thing/b=1>thing/a")
			synctest.Wait()
			b.release("create thing/a", errRefusedByTar)
		},
		"without the caller": func(t *testing.T, s *scheduler.Scheduler, b *tar) {
			b.hang("create thing/b")
			ctx, leave := context.WithCancel(t.Context())
			v, err := s.Value("thing/b", wrapperspb.String("1"))
			must(t, err)
			go func() { _, _ = s.Commit(ctx, scheduler.Txn{Changes: []scheduler.Change{v.Change()}}) }()
			synctest.Wait()
			leave()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newTar()
				b.half = true
				s, stop := b.begin(t, scheduler.Options{})
				defer stop()
				begin(t, s, b)
				synctest.Wait()
				b.release("create thing/b", scheduler.Terminal(errRefusedByTar))
				must(t, s.Sync(t.Context()))
				b.took()
				submit(t, s, "thing/b=")
				must(t, s.Sync(t.Context()))
				expect(t, "the calls", b.took(), "delete thing/b")
			})
		})
	}
}
