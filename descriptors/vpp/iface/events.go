package iface

import (
	"context"
	"sync"

	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/scheduler"
)

// Events tells the scheduler which links VPP says are up, which interfaces somebody
// else has deleted, and what DHCP servers have given. Of one interface the newest event counts, and none is lost.
type Events struct {
	api     conn.API
	links   *scheduler.Index[Meta]
	orphans *orphans
	leases  *leases
	observe func(...scheduler.Observed)

	mu      sync.Mutex
	news    map[uint32]event  // by sw_if_index; not told yet
	names   map[uint32]string // of interfaces that stand
	indexes map[string]uint32 // of the same
	ready   chan struct{}     // holds a token while there may be something to tell
}

// An event is how an interface is.
type event struct{ up, deleted bool }

func newEvents(h *handler, links *scheduler.Index[Meta], s *scheduler.Scheduler) *Events {
	return &Events{
		api: h.API, links: links, orphans: &h.orphans, leases: h.leases, observe: s.Observe,
		news: map[uint32]event{}, names: map[uint32]string{}, indexes: map[string]uint32{}, ready: make(chan struct{}, 1),
	}
}

// Take takes a message sw_interface_event.
func (e *Events) Take(message []byte) {
	var m vppif.SwInterfaceEvent
	if vppwire.Decode(message, &m) != nil {
		return
	}
	e.orphans.seen(uint32(m.SwIfIndex), !m.Deleted)
	e.change(func() { e.news[uint32(m.SwIfIndex)] = event{up: linkIsUp(m.Flags), deleted: m.Deleted} })
}

// TakeLease takes a message dhcp_compl_event.
func (e *Events) TakeLease([]byte) { e.leases.wake() }

// Subscribe asks for events on a new connection. What came on the one before is void:
// all is read anew.
func (e *Events) Subscribe(ctx context.Context, c *conn.Conn) error {
	e.orphans.connected(c.PID())
	e.change(func() { clear(e.news) })
	return c.Call(ctx, &vppif.WantInterfaceEvents{EnableDisable: 1}, &vppif.WantInterfaceEventsReply{})
}

func (e *Events) change(do func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	do()
	select {
	case e.ready <- struct{}{}:
	default:
	}
}

// Run tells events until ctx ends. One of an interface that has no name yet waits for it.
func (e *Events) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return e.follow(ctx) })
	group.Go(func() error { return e.leases.run(ctx, e.links) })
	group.Go(func() error {
		for {
			select {
			case <-e.ready:
				e.tell(ctx)
			case <-ctx.Done():
				return nil
			}
		}
	})
	return group.Wait()
}

// follow keeps the names of what stands.
func (e *Events) follow(ctx context.Context) error {
	watch := e.links.Watch()
	defer watch.Close()
	for {
		changes, err := watch.Next(ctx)
		if err != nil {
			return nil // ctx has ended
		}
		e.change(func() {
			for _, c := range changes {
				e.named(c)
			}
		})
	}
}

func (e *Events) named(c scheduler.Meta[Meta]) {
	if was, known := e.indexes[c.Name]; known && e.names[was] == c.Name {
		delete(e.names, was)
	}
	delete(e.indexes, c.Name)
	if !c.Gone {
		e.names[c.Meta.Index], e.indexes[c.Name] = c.Name, c.Meta.Index
	}
}

// tell tells what is news of interfaces that have a name.
func (e *Events) tell(ctx context.Context) {
	e.mu.Lock()
	said := map[string]event{}
	gone := map[uint32]string{}
	for index, one := range e.news {
		name, known := e.names[index]
		if !known {
			if one.deleted {
				delete(e.news, index)
			}
			continue
		}
		delete(e.news, index)
		if one.deleted {
			gone[index] = name
		} else {
			said[name] = one
		}
	}
	e.mu.Unlock()
	var out []scheduler.Observed
	for name, one := range said {
		out = append(out, linkIs(name, one.up)...)
	}
	for index, name := range gone {
		if !e.stands(ctx, index, name) {
			out = append(out, scheduler.Observed{Key: keys.InterfaceKey(name)})
			out = append(out, linkGone(name)...)
		}
	}
	if len(out) > 0 {
		e.observe(out...)
	}
}

// linkIs says that of the two states of a link one stands.
func linkIs(name string, up bool) []scheduler.Observed {
	return []scheduler.Observed{
		{Key: keys.LinkState(name, !up)},
		{Key: keys.LinkState(name, up), Value: &emptypb.Empty{}},
	}
}

// linkGone says that there is no link.
func linkGone(name string) []scheduler.Observed {
	return []scheduler.Observed{{Key: keys.LinkState(name, true)}, {Key: keys.LinkState(name, false)}}
}

// stands looks whether the index is that of the interface again: one that was made anew
// may have it.
func (e *Events) stands(ctx context.Context, index uint32, name string) bool {
	all, err := conn.Dump[vppif.SwInterfaceDetails](ctx, e.api, &vppif.SwInterfaceDump{SwIfIndex: interface_types.InterfaceIndex(index)})
	return err == nil && len(all) == 1 && tags(nil).nameOf(all[0]) == name
}
