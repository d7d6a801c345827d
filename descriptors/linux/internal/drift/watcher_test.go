package drift

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
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

// host has namespaces whose notifications the test sends.
type host map[string]*space

type space struct {
	kernel.Kernel // not needed
	id            kernel.ID
	events        chan any // []kernel.Event or error
	closed        int

	mu     sync.Mutex // guards the fields below
	now    *kernel.Link
	routes []kernel.Route
	bare   []kernel.Addr
	dumps  int // of routes, addresses, neighbours
}

// set sets the actual state of link 3; nil means that it does not exist.
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

func (s *space) Routes(keep func(kernel.Route) bool) (out []kernel.Route, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dumps++
	for _, r := range s.routes {
		if keep(r) {
			out = append(out, r)
		}
	}
	return out, nil
}

func (s *space) Addrs(int) ([]kernel.Addr, error) { return dumpOf[kernel.Addr](s, nil), nil }
func (s *space) Neighbours() ([]kernel.Neighbour, error) {
	return dumpOf[kernel.Neighbour](s, nil), nil
}
func (s *space) Bare() ([]kernel.Addr, error) { return dumpOf(s, s.bare), nil }
func (s *space) HasVRFRules() (bool, error)   { return false, nil }

func dumpOf[T any](s *space, all []T) []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dumps++
	return all
}

func (h host) Stat(path string) (kernel.ID, error)                { return h[path].id, nil }
func (h host) Open(path string) (kernel.Kernel, kernel.ID, error) { return h[path], h[path].id, nil }

func (h host) Make(string) (kernel.ID, error) { return kernel.ID{}, errors.ErrUnsupported }
func (h host) Unmake(string) error            { return errors.ErrUnsupported }

func (h host) Used(func(kernel.ID) bool) map[kernel.ID]string { return nil }

func (s *space) Close() error { s.closed++; return nil }

func (s *space) Subscribe() (kernel.Events, error) { return subscription{s, make(chan struct{})}, nil }

type subscription struct {
	*space
	ended chan struct{}
}

func (s subscription) Close() error { close(s.ended); return nil }

func (s subscription) Next() ([]kernel.Event, error) {
	select {
	case n := <-s.events:
		if err, ok := n.(error); ok {
			return nil, err
		}
		return n.([]kernel.Event), nil
	case <-s.ended:
		return nil, net.ErrClosed
	}
}

// follower counts its calls.
type follower struct{ reloads, events int }

func (f *follower) Reload(time.Time)                         { f.reloads++ }
func (f *follower) Apply(events []kernel.Event, _ time.Time) { f.events += len(events) }
func (f *follower) Due(time.Time) time.Time                  { return time.Time{} }

// watching is a watcher of two namespaces; link 3 of the second one is recorded.
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
		own := &space{id: kernel.ID{Ino: 1}, events: make(chan any)}
		up := link3(true)
		red := &space{id: kernel.ID{Ino: 2}, events: make(chan any), now: &up}
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
		w.Created(at, Interface(red.id, 3), Entry{Key: "link", Link: 3, State: Up}, 0)
		at.Close()
		<-time.After(time.Second)
		synctest.Wait()
		w.expect(t) // the first check found it
		story(w)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// still runs f while the record cannot change.
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

func TestLossIsReportedAfterDebounce(t *testing.T) {
	watch(t, func(w *watching) {
		w.red.set(nil)
		w.red.events <- []kernel.Event{{Gone: true, What: link3(false)}}
		<-time.After(Debounce)
		synctest.Wait()
		w.expect(t)
		<-time.After(burst)
		synctest.Wait()
		w.expect(t, "link")
	})
}

// A link that is set down still exists: it is reported as changed, not as lost.
func TestLinkSetDownIsChanged(t *testing.T) {
	watch(t, func(w *watching) {
		down := link3(false)
		w.red.set(&down)
		w.red.events <- []kernel.Event{{What: down}}
		<-time.After(time.Second)
		synctest.Wait()
		w.expect(t)
		if w.changed != 1 {
			t.Errorf("changed %d times", w.changed)
		}
	})
}

// The kernel's state wins over older events.
func TestEventsAreHints(t *testing.T) {
	watch(t, func(w *watching) {
		w.red.events <- []kernel.Event{{What: link3(false)}}
		<-time.After(time.Second)
		w.red.events <- []kernel.Event{{Gone: true, What: link3(true)}}
		<-time.After(time.Second)
		synctest.Wait()
		w.expect(t)
		if w.changed != 0 {
			t.Errorf("changed %d times", w.changed)
		}
	})
}

// The link itself is as recorded again. TestSilentlyRemovedRoutes is about the routes on it.
func TestFlapIsIgnored(t *testing.T) {
	watch(t, func(w *watching) {
		w.red.events <- []kernel.Event{{What: link3(false)}}
		w.red.events <- []kernel.Event{{What: link3(true)}}
		<-time.After(time.Second)
		synctest.Wait()
		w.expect(t)
		if w.changed != 0 {
			t.Errorf("changed %d times", w.changed)
		}
	})
}

// The kernel removes routes silently when a link is set down, even for a moment, and when it loses
// its addresses. All of them are then read, with one dump.
func TestSilentlyRemovedRoutes(t *testing.T) {
	addr := func(text string) kernel.Addr { return kernel.Addr{Link: 3, Prefix: netip.MustParsePrefix(text)} }
	route := func(dst string) kernel.Route {
		return kernel.Route{Link: 3, Dst: netip.MustParsePrefix(dst), Table: kernel.MainTable, Protocol: kernel.Protocol}
	}
	flap := []kernel.Event{{What: link3(false)}, {What: link3(true)}}
	all := []string{"10.1.0.0/16", "10.2.0.0/16", "fd00:1::/64"}
	tests := []struct {
		name   string
		events []kernel.Event
		stays  bool // the routes are still there
		dumps  int
		lost   []string
	}{
		{"flap", flap, false, 1, all},
		{"flap that removes nothing", flap, true, 1, nil},
		{"addresses", []kernel.Event{{Gone: true, What: addr("10.0.0.1/24")}, {Gone: true, What: addr("10.0.0.2/24")}}, false, 1, all},
		{"IPv6 address", []kernel.Event{{Gone: true, What: addr("fd00::1/64")}}, false, 1, all},
		{"new address", []kernel.Event{{What: addr("10.0.0.1/24")}}, true, 0, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			watch(t, func(w *watching) {
				at, err := w.set.Open(nsRed())
				if err != nil {
					t.Fatal(err)
				}
				defer at.Close()
				for _, dst := range all {
					r := route(dst)
					w.Created(at, Route(w.red.id, r), Entry{Key: dst, Link: 3, Route: r}, 0)
					if tt.stays {
						w.red.routes = append(w.red.routes, r)
					}
				}
				w.red.events <- tt.events
				<-time.After(time.Second)
				synctest.Wait()
				w.expect(t, tt.lost...)
				if w.red.dumps != tt.dumps {
					t.Errorf("the routes were read %d times, want %d", w.red.dumps, tt.dumps)
				}
			})
		})
	}
}

// A change just before an object was recorded is detected without any event.
func TestCreatedInterfaceIsChecked(t *testing.T) {
	watch(t, func(w *watching) {
		w.red.set(nil)
		at, err := w.set.Open(nsRed())
		if err != nil {
			t.Fatal(err)
		}
		w.Created(at, Interface(w.red.id, 3), Entry{Key: "link", Link: 3, State: Up}, 0)
		at.Close()
		<-time.After(time.Second)
		synctest.Wait()
		w.expect(t, "link")
	})
}

// What Retrieve has not found leaves the record with everything on it, unless it was recorded
// meanwhile. The namespace is closed, except the own one.
// What one Retrieve does not find any more is lost, also if it was asked for other values and the event comes later.
func TestUnseenInterfacesAreLost(t *testing.T) {
	watch(t, func(w *watching) {
		up := link3(true)
		w.own.set(&up)
		at, err := w.set.Open(nsRed())
		if err != nil {
			t.Fatal(err)
		}
		defer at.Close()
		own, err := w.set.Own()
		if err != nil {
			t.Fatal(err)
		}
		defer own.Close()
		w.Created(at, Membership(w.red.id, 3), Entry{Key: "member", Link: 3}, 0)
		has := func(red, mine int) {
			t.Helper()
			w.still(func() {
				if w.record.count[w.red.id] != red || w.record.count[w.own.id] != mine || (w.spaces[w.red.id] != nil) != (red > 0) || w.spaces[w.own.id] == nil {
					t.Errorf("recorded are %v, of %d namespaces", w.record.objects, len(w.spaces))
				}
			})
		}
		began := w.Clock()
		w.Retrieved(at, Interface(w.red.id, 3), Entry{Key: "link", Link: 3})
		w.Unseen(began)
		has(2, 0)
		w.expect(t)
		began = w.Clock()
		w.Created(own, Interface(w.own.id, 3), Entry{Key: "mine", Link: 3}, 0)
		w.Unseen(began)
		w.expect(t, "link")
		<-time.After(mostLate) // for the message that says how it has left
		synctest.Wait()
		has(0, 1)
		w.Unseen(w.Clock())
		has(0, 0)
		w.expect(t, "mine")
	})
}

// Retrieve does not replace the entry of a verb. A retrieved object that has vanished
// leaves the record without an event.
func TestRetrievedObjectIsChecked(t *testing.T) {
	watch(t, func(w *watching) {
		at, err := w.set.Open(nsRed())
		if err != nil {
			t.Fatal(err)
		}
		defer at.Close()
		w.Retrieved(at, Interface(w.red.id, 3), Entry{Key: "link", Link: 3})
		w.still(func() {
			if w.record.objects[Interface(w.red.id, 3)].State != Up {
				t.Error("Retrieved replaced the entry of Created")
			}
		})
		w.Forget(Interface(w.red.id, 3))
		w.red.set(nil)
		w.Retrieved(at, Interface(w.red.id, 3), Entry{Key: "link", Link: 3})
		<-time.After(time.Second)
		synctest.Wait()
		w.expect(t, "link")
		<-time.After(mostLate) // for a message about it
		w.still(func() {
			if len(w.record.objects) > 0 || len(w.spaces) != 1 {
				t.Errorf("the record has %v, of %d namespaces", w.record.objects, len(w.spaces))
			}
		})
	})
}

func TestMembershipIsChecked(t *testing.T) {
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
			w.Retrieved(at, Membership(w.red.id, 3), Entry{Key: "member", Link: 3, Master: 9})
			<-time.After(time.Second)
			synctest.Wait()
			w.expect(t, lost...)
			w.Forget(Membership(w.red.id, 3))
		}
	})
}

// A value is created again in another namespace while its former one is still open. The end of
// the old link is no loss of the new one.
func TestLossOfAnOldLinkIsNotThatOfTheNew(t *testing.T) {
	watch(t, func(w *watching) {
		up := link3(true)
		w.own.set(&up)
		own, err := w.set.Own()
		if err != nil {
			t.Fatal(err)
		}
		defer own.Close()
		w.Created(own, Interface(w.own.id, 3), Entry{Key: "link", Link: 3, State: Up}, 0)
		w.red.set(nil)
		w.red.events <- []kernel.Event{{Gone: true, What: link3(false)}}
		<-time.After(time.Second)
		synctest.Wait()
		w.expect(t)

		at, err := w.set.Open(nsRed())
		if err != nil {
			t.Fatal(err)
		}
		defer at.Close()
		w.red.set(&up)
		w.Created(at, Interface(w.red.id, 3), Entry{Key: "link", Link: 3, State: Up}, 0)
		w.Forget(Interface(w.red.id, 3)) // the newer object is removed; the older one stays
		w.own.set(nil)
		w.own.events <- []kernel.Event{{Gone: true, What: link3(false)}}
		<-time.After(time.Second)
		synctest.Wait()
		w.expect(t, "link")
	})
}

func TestOwnRemovalIsNoLoss(t *testing.T) {
	watch(t, func(w *watching) {
		w.Forget(Interface(w.red.id, 3))
		w.red.set(nil)
		w.red.events <- []kernel.Event{{Gone: true, What: link3(false)}}
		<-time.After(time.Second)
		synctest.Wait()
		w.expect(t)
	})
}

// A namespace without recorded objects is closed.
func TestUnusedNamespaceIsClosed(t *testing.T) {
	watch(t, func(w *watching) {
		w.red.set(nil)
		w.red.events <- []kernel.Event{{Gone: true, What: link3(false)}}
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
		w.red.events <- kernel.ErrLost
		synctest.Wait()
		if w.missed != 1 || w.follower.reloads != 1 {
			t.Errorf("of red: %d missed, %d reloads, want 1 and that of the start", w.missed, w.follower.reloads)
		}
		w.own.events <- kernel.ErrLost
		synctest.Wait()
		if w.missed != 2 || w.follower.reloads != 2 {
			t.Errorf("of our own: %d missed, %d reloads, want 2 each", w.missed, w.follower.reloads)
		}
		w.red.set(nil)
		w.red.events <- []kernel.Event{{Gone: true, What: link3(false)}} // the subscription continues
		<-time.After(time.Second)
		synctest.Wait()
		w.expect(t, "link")
	})
}

// The refresh after lost notifications finds vanished objects, so they are not reported
// twice.
func TestMissedNotificationsForgetVanished(t *testing.T) {
	watch(t, func(w *watching) {
		w.red.set(nil)
		w.red.events <- []kernel.Event{{Gone: true, What: link3(false)}}
		w.red.events <- kernel.ErrLost
		<-time.After(time.Second)
		synctest.Wait()
		w.expect(t)
		if w.missed != 1 {
			t.Errorf("%d missed", w.missed)
		}
	})
}

// A subscription that ended is opened again when the next object is created.
func TestSubscriptionEnds(t *testing.T) {
	watch(t, func(w *watching) {
		w.red.events <- errors.New("broken")
		synctest.Wait()
		if w.missed != 1 {
			t.Fatalf("%d missed", w.missed)
		}
		at, err := w.set.Open(nsRed())
		if err != nil {
			t.Fatal(err)
		}
		w.Created(at, Interface(w.red.id, 3), Entry{Key: "link", Link: 3, State: Up}, 0)
		at.Close()
		w.red.set(nil)
		w.red.events <- []kernel.Event{{Gone: true, What: link3(false)}}
		<-time.After(time.Second)
		synctest.Wait()
		w.expect(t, "link")
	})
}

func nsRed() *namespace.NetNamespace {
	return &namespace.NetNamespace{Type: namespace.NetNamespace_NSID, Reference: "red"}
}

// What waits for IPv6 on a link is tried again when the MTU suffices, not at each change of the link.
func TestAwaitedMTU(t *testing.T) {
	w, ns := New(Options{}), kernel.ID{Ino: 1}
	w.record.awaited[Interface(ns, 3)] = true
	for _, step := range []struct {
		link kernel.Link
		want bool
	}{
		{kernel.Link{Index: 3, MTU: 1279, Up: true}, false},
		{kernel.Link{Index: 4, MTU: 1500, Up: true}, false},
		{kernel.Link{Index: 3, MTU: 1280, Up: true}, true},
		{kernel.Link{Index: 3, MTU: 1280, Up: true}, false}, // nothing waits any more
	} {
		if got := w.freed(ns, kernel.Event{What: step.link}); got != step.want {
			t.Errorf("%+v frees: %v, want %v", step.link, got, step.want)
		}
	}
}
