package events

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"testing"

	"go.fd.io/govpp/api"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/leftovers"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/scheduler"
)

// A world is a VPP with interfaces that all have a link, and the links that the scheduler knows.
type world struct {
	conn.API
	*testing.T
	*Events
	tags   map[uint32]string
	links  map[string]bool // the keys that are observed
	during func()          // called once, before the scheduler takes the next report
	asked  func()          // called after VPP's next answer
	read   int             // how often all is read back
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, tags: map[uint32]string{}, links: map[string]bool{}}
	w.Events = New(Options{
		API: w, Table: &ifindex.Table{}, Leftovers: &leftovers.Registry{}, Observe: w.observe, Log: slog.New(slog.DiscardHandler),
		LinkChanged: func(string) {}, Awaited: func(string) bool { return false }, RefreshAll: func() { w.read++ },
	})
	return w
}

// Details answers a dump of interfaces.
func (w *world) Details(_ context.Context, request, detail api.Message, take conn.Take) error {
	if asked := w.asked; asked != nil {
		w.asked = nil
		defer asked()
	}
	index := request.(*vppif.SwInterfaceDump).SwIfIndex
	tag, exists := w.tags[uint32(index)]
	if !exists {
		return nil
	}
	message, err := vppwire.Append(nil, 7, &vppif.SwInterfaceDetails{SwIfIndex: index, Tag: tag, Flags: interface_types.IF_STATUS_API_FLAG_LINK_UP}, 0, 1)
	if err != nil {
		return err
	}
	return take(&vppwire.Decoder{}, message[16:])
}

func (w *world) observe(all ...scheduler.Observed) {
	if during := w.during; during != nil {
		w.during = nil
		during()
	}
	for _, o := range all {
		if w.links[o.Key] = o.Value != nil; !w.links[o.Key] {
			delete(w.links, o.Key)
		}
	}
}

// commit has a scheduler commit an interface of that name and index.
func (w *world) commit(name string, index uint32) {
	s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler)})
	links, err := scheduler.Register(s, scheduler.Descriptor[*emptypb.Empty, ifindex.Meta]{
		Name: "interface", Prefix: keys.Interface("").Key(),
		Create: func(context.Context, string, *emptypb.Empty) (ifindex.Meta, error) {
			return ifindex.Meta{Index: index, Parent: index}, nil
		},
		Delete: func(context.Context, string, *emptypb.Empty, ifindex.Meta) error { return nil },
	})
	if err != nil {
		w.Fatal(err)
	}
	ctx, stop := context.WithCancel(w.Context())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	w.Cleanup(func() { stop(); <-ended })
	v, err := s.Value(keys.Interface(name).Key(), &emptypb.Empty{})
	if err == nil {
		_, err = s.Commit(ctx, scheduler.Txn{Changes: []scheduler.Change{v.Change()}})
	}
	if err != nil {
		w.Fatal(err)
	}
	w.Links = links
}

// create has VPP create an interface and report its link. The scheduler commits its name.
func (w *world) create(name string, index uint32) {
	w.tags[index] = name
	w.Table.Claim(name, index)
	w.Table.Tagged(name, index, true)
	w.Events.change(func() {
		w.pending[index] = event{exists: true, up: true}
		w.setName(scheduler.IndexChange[ifindex.Meta]{Name: name, Meta: ifindex.Meta{Index: index, Parent: index}})
	})
}

// delete ends an interface. VPP reports that before it answers.
func (w *world) delete(name string, index uint32) {
	w.Table.Deleting(name, index)
	delete(w.tags, index)
	w.Events.change(func() { w.pending[index] = event{deleted: true} })
	w.Table.Deleted(name, index)
	w.observe(LinkGone(name)...)
	w.Events.change(func() { w.setName(scheduler.IndexChange[ifindex.Meta]{Name: name, Gone: true}) })
}

// expect reports all events, and compares the links.
func (w *world) expect(want ...string) {
	w.Helper()
	for range 3 { // a report may want another one
		w.report(w.Context())
	}
	if got := slices.Sorted(maps.Keys(w.links)); !slices.Equal(got, want) {
		w.Errorf("the links are %q, want %q", got, want)
	}
}

const (
	linkOfA = "vpp/interface/a/link-state/UP"
	linkOfB = "vpp/interface/b/link-state/UP"
)

// TestLateReports has an interface deleted between the moment in which its event is taken and that in
// which the scheduler is told. Meanwhile its name may get other indexes, and its index other names.
func TestLateReports(t *testing.T) {
	for name, row := range map[string]struct {
		during func(w *world)
		want   []string
	}{
		"nothing happens": {func(*world) {}, []string{linkOfA}},
		"it goes":         {func(w *world) { w.delete("a", 5) }, nil},
		"it goes twice": {func(w *world) {
			w.delete("a", 5)
			w.create("a", 3)
			w.delete("a", 3)
		}, nil},
		"it comes again": {func(w *world) {
			w.delete("a", 5)
			w.create("a", 3)
		}, []string{linkOfA}},
		"it comes again, and all was read": {func(w *world) {
			w.delete("a", 5)
			w.create("a", 3)
			w.Events.change(func() { clear(w.pending) })
			w.links[linkOfA] = true
		}, []string{linkOfA}},
		"another one comes": {func(w *world) {
			w.delete("a", 5)
			w.create("b", 5)
		}, []string{linkOfB}},
		"it is forgotten": {func(w *world) {
			w.delete("a", 5)
			w.Table.Replace(nil)
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create("a", 5)
			w.during = func() { row.during(w) }
			w.expect(row.want...)
		})
	}
}

// afterDeletion has somebody delete interface a, and VPP's event of that handled. during is called when VPP has told that a is gone.
func afterDeletion(t *testing.T, during func(*world)) *world {
	w := newWorld(t)
	w.commit("a", 5)
	w.create("a", 5)
	w.expect(linkOfA)
	delete(w.tags, 5)
	w.Events.change(func() { w.pending[5] = event{deleted: true} })
	w.asked = func() { during(w) }
	w.report(t.Context())
	if w.read != 1 {
		t.Errorf("all was read back %d times, want 1", w.read)
	}
	delete(w.links, linkOfA)
	return w
}

// TestMadeAgainBeforeItsEnd has the agent make the interface again, with the same index, before it has handled the event of the
// deletion: the event is not about the new one.
func TestMadeAgainBeforeItsEnd(t *testing.T) {
	w := afterDeletion(t, func(w *world) { w.create("a", 5) })
	w.Events.change(func() { w.pending[5] = event{exists: true} })
	w.expect(linkOfA)
}

// TestMadeAgainByOthers has somebody make the interface again, with its tag and index: the scheduler finds what it has always known,
// and the events are about it.
func TestMadeAgainByOthers(t *testing.T) {
	w := afterDeletion(t, func(*world) {})
	w.tags[5] = "a"
	w.Events.change(func() { w.pending[5] = event{exists: true, up: true} })
	w.expect(linkOfA)
}

// TestNextInterfaceWhileOneIsDeleted has VPP give the index of an interface to another one before the
// agent knows that the first is deleted: the event of the second is not one of the first.
func TestNextInterfaceWhileOneIsDeleted(t *testing.T) {
	w := newWorld(t)
	w.commit("a", 5)
	w.create("a", 5)
	w.expect(linkOfA)
	w.Table.Deleting("a", 5)
	w.tags[5] = "b"
	w.Events.change(func() { w.pending[5] = event{exists: true, up: true, deleted: true} })
	w.report(t.Context())
	w.Table.Deleted("a", 5)
	w.observe(LinkGone("a")...)
	w.setName(scheduler.IndexChange[ifindex.Meta]{Name: "a", Gone: true})
	w.expect()
	if w.read > 0 {
		t.Errorf("all was read back %d times", w.read)
	}
	w.Table.Tagged("b", 5, true)
	w.setName(scheduler.IndexChange[ifindex.Meta]{Name: "b", Meta: ifindex.Meta{Index: 5, Parent: 5}})
	w.expect(linkOfB)
}

// TestRefusedDeletion has an event wait for the end of a deletion, which VPP refuses.
func TestRefusedDeletion(t *testing.T) {
	w := newWorld(t)
	w.create("a", 5)
	w.Table.Deleting("a", 5)
	w.expect()
	w.Table.Kept("a")
	w.expect(linkOfA)
}
