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
	changed func(name string)
	hasLeft func(name string, index uint32) bool // whether we have deleted an interface

	mu      sync.Mutex
	news    map[uint32]event           // by sw_if_index; not told yet
	names   map[uint32]string          // of interfaces that stand
	indexes map[string]uint32          // of the same
	parents map[uint32]uint32          // of those that are sub-interfaces
	subs    map[uint32]map[uint32]bool // by their parent
	ready   chan struct{}              // holds a token while there may be something to tell
}

// An event is how an interface is. Of a link that was up before VPP does not say that it is:
// what is not said to be up is looked at.
type event struct{ up, deleted bool }

func newEvents(h *handler, links *scheduler.Index[Meta], s *scheduler.Scheduler) *Events {
	return &Events{
		api: h.API, links: links, orphans: &h.orphans, leases: h.leases, observe: s.Observe, changed: h.LinkChanged, hasLeft: h.hasLeft,
		news: map[uint32]event{}, names: map[uint32]string{}, indexes: map[string]uint32{}, parents: map[uint32]uint32{}, subs: map[uint32]map[uint32]bool{}, ready: make(chan struct{}, 1),
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
		e.belongs(was, was)
	}
	delete(e.indexes, c.Name)
	if !c.Gone {
		e.names[c.Meta.Index], e.indexes[c.Name] = c.Name, c.Meta.Index
		e.belongs(c.Meta.Index, c.Meta.Parent)
	}
}

// belongs notes what an interface is a sub-interface of; of itself it is none.
func (e *Events) belongs(index, parent uint32) {
	if was, sub := e.parents[index]; sub {
		delete(e.subs[was], index)
	}
	delete(e.parents, index)
	if parent == index {
		return
	}
	if e.subs[parent] == nil {
		e.subs[parent] = map[uint32]bool{}
	}
	e.parents[index], e.subs[parent][index] = parent, true
}

// tell tells what is news of interfaces that have a name.
func (e *Events) tell(ctx context.Context) {
	var out []scheduler.Observed
	news := e.takeNews()
	for index, one := range news {
		d, stands := e.look(ctx, index, one)
		switch {
		case one.up:
			out = append(out, linkIs(one.name, true)...)
		case stands:
			out = append(out, linkIs(one.name, linkIsUp(d.Flags))...)
		case one.deleted && !e.hasLeft(one.name, index): // another of that name may stand by now
			out = append(out, scheduler.Observed{Key: keys.InterfaceKey(one.name)})
			out = append(out, linkGone(one.name)...)
		}
	}
	if len(out) > 0 {
		e.observe(out...)
	}
	for _, one := range news {
		e.changed(one.name)
	}
}

// A named event is of an interface that has a name.
type namedEvent struct {
	event
	name string
}

// takeNews takes what can be told, by index. What happens to an interface happens to the
// links of its sub-interfaces.
func (e *Events) takeNews() map[uint32]namedEvent {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := map[uint32]namedEvent{}
	for index, one := range e.news {
		name, known := e.names[index]
		if !known {
			if one.deleted {
				delete(e.news, index)
			}
			continue
		}
		delete(e.news, index)
		out[index] = namedEvent{one, name}
		for sub := range e.subs[index] {
			if name, known := e.names[sub]; known && e.news[sub] == (event{}) && out[sub].name == "" {
				out[sub] = namedEvent{name: name}
			}
		}
	}
	return out
}

// look reads the interface of an event that does not say it all: one that is up needs no
// look. Another one may have its index by now.
func (e *Events) look(ctx context.Context, index uint32, one namedEvent) (vppif.SwInterfaceDetails, bool) {
	if one.up {
		return vppif.SwInterfaceDetails{}, false
	}
	all, err := conn.Dump[vppif.SwInterfaceDetails](ctx, e.api, &vppif.SwInterfaceDump{SwIfIndex: interface_types.InterfaceIndex(index)})
	if err != nil || len(all) != 1 || tags(nil).nameOf(all[0]) != one.name {
		return vppif.SwInterfaceDetails{}, false
	}
	return all[0], true
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
