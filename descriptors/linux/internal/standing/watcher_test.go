package standing

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/proto/ligato/linux/namespace"
)

// host has namespaces whose notifications the test makes.
type host map[string]*space

type space struct {
	kernel.Kernel // not needed
	id            kernel.ID
	news          chan any // []kernel.Event or error
	closed        int

	mu  sync.Mutex // guards now
	now *kernel.Link
}

// set says what there is of link 3.
func (s *space) set(l *kernel.Link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = l
}

func (s *space) LinkByIndex(int) (kernel.Link, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil {
		return kernel.Link{}, unix.ENODEV
	}
	return *s.now, nil
}

func (h host) Stat(path string) (kernel.ID, error)                { return h[path].id, nil }
func (h host) Open(path string) (kernel.Kernel, kernel.ID, error) { return h[path], h[path].id, nil }

func (s *space) Close() error { s.closed++; return nil }

func (s *space) Subscribe() (kernel.Events, error) { return subscription{s, make(chan struct{})}, nil }

type subscription struct {
	*space
	ended chan struct{}
}

func (s subscription) Close() error { close(s.ended); return nil }

func (s subscription) Next() ([]kernel.Event, error) {
	select {
	case n := <-s.news:
		if err, ok := n.(error); ok {
			return nil, err
		}
		return n.([]kernel.Event), nil
	case <-s.ended:
		return nil, net.ErrClosed
	}
}

// follower counts what it is told.
type follower struct{ reloads, events int }

func (f *follower) Reload(time.Time)                         { f.reloads++ }
func (f *follower) Apply(events []kernel.Event, _ time.Time) { f.events += len(events) }
func (f *follower) Due(time.Time) time.Time                  { return time.Time{} }

// watching is a watcher of two namespaces, in the first of which link 3 stands.
type watching struct {
	*Watcher
	own, red        *space
	set             *netns.Set
	follower        follower
	changed, missed int

	mu   sync.Mutex // guards lost
	lost []string
}

func watch(t *testing.T, story func(*watching)) {
	synctest.Test(t, func(t *testing.T) {
		own := &space{id: kernel.ID{Ino: 1}, news: make(chan any)}
		up := link3(true)
		red := &space{id: kernel.ID{Ino: 2}, news: make(chan any), now: &up}
		set := netns.New(netns.Options{Host: host{"/own": own, "/names/red": red}, Own: "/own", Dir: "/names", Idle: 1})
		w := &watching{own: own, red: red, set: set}
		w.Watcher = New(Options{
			Spaces: set, Log: slog.New(slog.DiscardHandler), Own: &w.follower,
			Lost: func(keys []string) {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.lost = append(w.lost, keys...)
			},
			Changed: func() { w.changed++ },
			Missed:  func() { w.missed++ },
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		at, err := set.Open(nsRed())
		if err != nil {
			t.Fatal(err)
		}
		w.Made(at, Interface(red.id, 3), Entry{Key: "link", Link: 3, Up: true})
		at.Close()
		<-time.After(time.Second)
		synctest.Wait()
		w.expect(t) // it was looked at, and is there
		story(w)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// still runs f while nothing changes in the book.
func (w *watching) still(f func()) {
	w.Watcher.mu.Lock()
	defer w.Watcher.mu.Unlock()
	f()
}

func (w *watching) expect(t *testing.T, lost ...string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Equal(w.lost, lost) {
		t.Errorf("lost %v, want %v", w.lost, lost)
	}
	w.lost = nil
}

func link3(up bool) kernel.Link { return kernel.Link{Index: 3, Up: up} }

func TestLossCountsAfterAWhile(t *testing.T) {
	watch(t, func(w *watching) {
		w.red.set(nil)
		w.red.news <- []kernel.Event{{Gone: true, What: link3(false)}}
		<-time.After(Settle)
		synctest.Wait()
		w.expect(t)
		<-time.After(burst)
		synctest.Wait()
		w.expect(t, "link")
	})
}

// What is set down is still there: it is read again, and set up.
func TestWhatIsSetDownHasChanged(t *testing.T) {
	watch(t, func(w *watching) {
		down := link3(false)
		w.red.set(&down)
		w.red.news <- []kernel.Event{{What: down}}
		<-time.After(time.Second)
		synctest.Wait()
		w.expect(t)
		if w.changed != 1 {
			t.Errorf("changed %d times", w.changed)
		}
	})
}

// The kernel is ahead of what was heard of it.
func TestEventsAreHints(t *testing.T) {
	watch(t, func(w *watching) {
		w.red.news <- []kernel.Event{{What: link3(false)}}
		<-time.After(time.Second)
		w.red.news <- []kernel.Event{{Gone: true, What: link3(true)}}
		<-time.After(time.Second)
		synctest.Wait()
		w.expect(t)
		if w.changed != 0 {
			t.Errorf("changed %d times", w.changed)
		}
	})
}

func TestWhatBouncesIsLetBe(t *testing.T) {
	watch(t, func(w *watching) {
		w.red.news <- []kernel.Event{{What: link3(false)}}
		w.red.news <- []kernel.Event{{What: link3(true)}}
		<-time.After(time.Second)
		synctest.Wait()
		w.expect(t)
		if w.changed != 0 {
			t.Errorf("changed %d times", w.changed)
		}
	})
}

// What was changed just before it was in the book is found, without any event.
func TestWhatIsFreshIsLookedAt(t *testing.T) {
	watch(t, func(w *watching) {
		w.red.set(nil)
		at, err := w.set.Open(nsRed())
		if err != nil {
			t.Fatal(err)
		}
		w.Made(at, Interface(w.red.id, 3), Entry{Key: "link", Link: 3, Up: true})
		at.Close()
		<-time.After(time.Second)
		synctest.Wait()
		w.expect(t, "link")
	})
}

// One who reads is behind those who make: what they said stays, and what was read
// and has gone leaves the book by itself.
func TestWhatIsReadIsDoubted(t *testing.T) {
	watch(t, func(w *watching) {
		at, err := w.set.Open(nsRed())
		if err != nil {
			t.Fatal(err)
		}
		defer at.Close()
		w.Saw(at, Interface(w.red.id, 3), Entry{Key: "link", Link: 3})
		w.still(func() {
			if !w.book.things[Interface(w.red.id, 3)].Up {
				t.Error("what was read replaced what was made")
			}
		})
		w.Unmade(Interface(w.red.id, 3))
		w.red.set(nil)
		w.Saw(at, Interface(w.red.id, 3), Entry{Key: "link", Link: 3})
		<-time.After(time.Second)
		synctest.Wait()
		w.expect(t, "link")
		w.still(func() {
			if len(w.book.things) > 0 || len(w.spaces) != 1 {
				t.Errorf("the book has %v, of %d namespaces", w.book.things, len(w.spaces))
			}
		})
	})
}

func TestMembershipIsDoubted(t *testing.T) {
	watch(t, func(w *watching) {
		at, err := w.set.Open(nsRed())
		if err != nil {
			t.Fatal(err)
		}
		defer at.Close()
		for master, lost := range map[int][]string{0: {"member"}, 9: nil} {
			in := link3(true)
			in.Master = master
			w.red.set(&in)
			w.Saw(at, Membership(w.red.id, 3), Entry{Key: "member", Link: 3, Master: 9})
			<-time.After(time.Second)
			synctest.Wait()
			w.expect(t, lost...)
			w.Unmade(Membership(w.red.id, 3))
		}
	})
}

func TestOurOwnDoingsAreNoLoss(t *testing.T) {
	watch(t, func(w *watching) {
		w.Unmade(Interface(w.red.id, 3))
		w.red.set(nil)
		w.red.news <- []kernel.Event{{Gone: true, What: link3(false)}}
		<-time.After(time.Second)
		synctest.Wait()
		w.expect(t)
	})
}

// When nothing stands in a namespace any more, it is let go.
func TestNamespacesAreLetGo(t *testing.T) {
	watch(t, func(w *watching) {
		w.red.set(nil)
		w.red.news <- []kernel.Event{{Gone: true, What: link3(false)}}
		<-time.After(time.Second)
		synctest.Wait()
		w.expect(t, "link")
		w.set.Drop(w.red.id)
		if w.red.closed != 1 {
			t.Errorf("closed %d times", w.red.closed)
		}
	})
}

func TestNamespacesGone(t *testing.T) {
	watch(t, func(w *watching) {
		w.NamespacesGone([]kernel.ID{w.red.id, {Ino: 99}})
		w.expect(t, "link")
		if w.red.closed != 1 {
			t.Errorf("closed %d times", w.red.closed)
		}
	})
}

func TestLostNotifications(t *testing.T) {
	watch(t, func(w *watching) {
		w.red.news <- kernel.ErrLost
		synctest.Wait()
		if w.missed != 1 || w.follower.reloads != 1 {
			t.Errorf("of red: %d missed, %d reloads, want 1 and that of the start", w.missed, w.follower.reloads)
		}
		w.own.news <- kernel.ErrLost
		synctest.Wait()
		if w.missed != 2 || w.follower.reloads != 2 {
			t.Errorf("of our own: %d missed, %d reloads, want 2 each", w.missed, w.follower.reloads)
		}
		w.red.set(nil)
		w.red.news <- []kernel.Event{{Gone: true, What: link3(false)}} // they go on
		<-time.After(time.Second)
		synctest.Wait()
		w.expect(t, "link")
	})
}

// Whoever reads again after a loss finds out what is gone: it is not told once more.
func TestWhatIsGoneAtALossIsForgotten(t *testing.T) {
	watch(t, func(w *watching) {
		w.red.set(nil)
		w.red.news <- []kernel.Event{{Gone: true, What: link3(false)}}
		w.red.news <- kernel.ErrLost
		<-time.After(time.Second)
		synctest.Wait()
		w.expect(t)
		if w.missed != 1 {
			t.Errorf("%d missed", w.missed)
		}
	})
}

// A subscription that ends by itself is opened again with the next that is made.
func TestSubscriptionEnds(t *testing.T) {
	watch(t, func(w *watching) {
		w.red.news <- errors.New("broken")
		synctest.Wait()
		if w.missed != 1 {
			t.Fatalf("%d missed", w.missed)
		}
		at, err := w.set.Open(nsRed())
		if err != nil {
			t.Fatal(err)
		}
		w.Made(at, Interface(w.red.id, 3), Entry{Key: "link", Link: 3, Up: true})
		at.Close()
		w.red.set(nil)
		w.red.news <- []kernel.Event{{Gone: true, What: link3(false)}}
		<-time.After(time.Second)
		synctest.Wait()
		w.expect(t, "link")
	})
}

func nsRed() *namespace.NetNamespace {
	return &namespace.NetNamespace{Type: namespace.NetNamespace_NSID, Reference: "red"}
}
