package iface

import (
	"context"
	"log/slog"
	"maps"
	"sync"

	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/leftovers"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/internal/wake"
	"github.com/keyplane/keyplane/scheduler"
)

// Events tells the scheduler which links VPP says are up, which interfaces somebody
// else has deleted, and what DHCP servers have given. Of one interface the newest event counts, and none is lost.
type Events struct {
	api         conn.API
	links       directory
	unconfirmed *leftovers.Unconfirmed
	table       *ifindex.Table
	leases      *leases
	observe     func(...scheduler.Observed)
	changed     func(name string)
	again       func()                                        // has all be read back
	newcome     func(ctx context.Context, index uint32) error // is called when an index has a new interface
	awaited     func(name string) bool                        // whether sub-interfaces wait for an interface
	enable      func()                                        // enables those that can be
	drop        func(why error)                               // ends the connection
	log         *slog.Logger

	mu      sync.Mutex
	news    map[uint32]event           // by sw_if_index; not told yet
	names   map[uint32]string          // of interfaces that stand
	indexes map[string]uint32          // of the same
	doubted map[string]uint32          // whose index another one has got, or which VPP says is free
	parents map[uint32]uint32          // of those that are sub-interfaces
	subs    map[uint32]map[uint32]bool // by their parent
	ready   wake.Signal                // set when there may be events to report
}

// An event is how the interface of an index is; deleted: the one that had it before may be
// gone. Of a link that was up before VPP does not say that it is: what is not said to be up
// is looked at.
type event struct{ there, up, deleted bool }

func newEvents(h *handler, links directory, s *scheduler.Scheduler) *Events {
	return &Events{
		api: h.API, links: links, unconfirmed: &h.unconfirmed, table: &h.table, leases: h.leases, observe: s.Observe, changed: h.LinkChanged,
		again: func() { _ = s.Refresh(beside(s, h.Southbound)...) }, newcome: func(ctx context.Context, index uint32) error { return h.leftovers.Sweep(ctx, h.API, index) }, log: h.Log,
		awaited: h.env.AwaitedParents.Has, enable: func() { _ = s.Refresh(Name) }, drop: h.Drop,
		news: map[uint32]event{}, names: map[uint32]string{}, indexes: map[string]uint32{}, doubted: map[string]uint32{},
		parents: map[uint32]uint32{}, subs: map[uint32]map[uint32]bool{}, ready: wake.New(),
	}
}

// beside are the descriptors of a southbound.
func beside(s *scheduler.Scheduler, southbound string) (names []string) {
	for _, d := range s.Descriptors() {
		if d.Connection == southbound {
			names = append(names, d.Name)
		}
	}
	return names
}

// Take takes a message sw_interface_event.
func (e *Events) Take(message []byte) {
	var m vppif.SwInterfaceEvent
	if vppwire.Decode(message, &m) != nil {
		return
	}
	e.table.Reported(uint32(m.SwIfIndex), !m.Deleted)
	e.change(func() {
		before := e.news[uint32(m.SwIfIndex)]
		e.news[uint32(m.SwIfIndex)] = event{there: !m.Deleted, up: linkIsUp(m.Flags), deleted: before.deleted || m.Deleted}
	})
}

// TakeLease takes a message dhcp_compl_event.
func (e *Events) TakeLease([]byte) { e.leases.wake() }

// Subscribe asks for events on a new connection. What came on the one before is void:
// all is read anew.
func (e *Events) Subscribe(ctx context.Context, c *conn.Conn) error {
	if e.unconfirmed.Connected(c.PID()) {
		e.links.h.startedAnew()
	}
	e.change(func() { clear(e.news) })
	return c.Call(ctx, &vppif.WantInterfaceEvents{EnableDisable: 1}, &vppif.WantInterfaceEventsReply{})
}

func (e *Events) change(do func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	do()
	e.ready.Set()
}

// Run tells events until ctx ends. One of an interface that has no name yet waits for it.
func (e *Events) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, run := range []func(context.Context) error{
		e.follow, e.tellAll, func(ctx context.Context) error { return e.leases.run(ctx, e.links) },
	} {
		group.Go(func() error { return e.keep(ctx, run) })
	}
	return group.Wait()
}

// keep runs run until ctx ends. A panic in it ends the connection: with the next one all is read back.
func (e *Events) keep(ctx context.Context, run func(context.Context) error) error {
	for {
		err := conn.Safely(func() error { return run(ctx) })
		if err == nil || ctx.Err() != nil {
			return nil
		}
		e.drop(err)
	}
}

// tellAll tells events until ctx ends.
func (e *Events) tellAll(ctx context.Context) error {
	for {
		select {
		case <-e.ready.C():
			e.tell(ctx)
		case <-ctx.Done():
			return nil
		}
	}
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

func (e *Events) named(c scheduler.IndexChange[Meta]) {
	if was, known := e.indexes[c.Name]; known && e.names[was] == c.Name {
		delete(e.names, was)
		e.belongs(was, was)
	}
	delete(e.indexes, c.Name)
	delete(e.doubted, c.Name)
	if c.Gone {
		return
	}
	if other, taken := e.names[c.Meta.Index]; taken {
		e.doubted[other] = c.Meta.Index
	}
	e.names[c.Meta.Index], e.indexes[c.Name] = c.Name, c.Meta.Index
	e.belongs(c.Meta.Index, c.Meta.Parent)
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
	said, doubted, strange := e.take()
	for _, index := range strange {
		if err := e.newcome(ctx, index); err != nil {
			e.log.Warn("an interface may have what one before it had", "sw_if_index", index, "err", err)
		}
	}
	var out []scheduler.Observed
	for index, one := range said {
		if up, known := e.look(ctx, index, one); known {
			out = append(out, linkIs(one.name, up)...)
		}
	}
	gone := false
	for name, index := range doubted {
		if e.isGone(ctx, name, index) {
			gone = true
			out = append(out, scheduler.Observed{Key: keys.InterfaceKey(name)})
			out = append(out, linkGone(name)...)
		}
	}
	if len(out) > 0 {
		e.observe(out...)
		e.unsay(ctx, said)
	}
	if gone {
		e.again() // what was done meanwhile may have met who got the index
	}
	for _, one := range said {
		e.changed(one.name)
		if e.awaited(one.name) {
			e.enable()
		}
	}
	if len(doubted) > 0 {
		e.change(func() {}) // what is told of those who have their indexes now
	}
}

// unsay takes back what was said of links whose interfaces we have deleted meanwhile: VPP tells
// that they go down before.
func (e *Events) unsay(ctx context.Context, said map[uint32]namedEvent) {
	for index, one := range said {
		if !e.table.DeletedByUs(one.name, index) {
			continue
		}
		if stands, err := hasName(ctx, e.api, interface_types.InterfaceIndex(index), one.name); err == nil && !stands {
			e.observe(linkGone(one.name)...)
		}
	}
}

// A namedEvent is what is said of the link of an interface that has a name.
type namedEvent struct {
	name string
	up   bool
}

// take takes out what is said of links, by index, and which interfaces may be gone. What
// happens to an interface happens to the links of its sub-interfaces. What there is to tell
// of an interface without a name (strange) waits until it has one.
func (e *Events) take() (said map[uint32]namedEvent, doubted map[string]uint32, strange []uint32) {
	e.mu.Lock()
	defer e.mu.Unlock()
	said, doubted = map[uint32]namedEvent{}, e.doubted
	e.doubted = map[string]uint32{}
	for index, one := range e.news {
		name, known := e.names[index]
		switch {
		case one.deleted && known:
			doubted[name], one.deleted = index, false
		case known:
			said[index] = namedEvent{name, one.up}
			one.there = false // all is told
		}
		if one.there {
			strange = append(strange, index)
		}
		if one.there || one.deleted { // a name that is not known yet may be of who was deleted
			e.news[index] = one
		} else {
			delete(e.news, index)
		}
	}
	for index := range maps.Clone(said) {
		e.saySubs(index, said)
	}
	return said, doubted, strange
}

// saySubs adds the sub-interfaces of an interface of which nothing is said.
func (e *Events) saySubs(index uint32, said map[uint32]namedEvent) {
	for sub := range e.subs[index] {
		name, known := e.names[sub]
		if _, already := said[sub]; known && !already && e.news[sub] == (event{}) {
			said[sub] = namedEvent{name: name}
		}
	}
}

// look tells whether a link is up, which is looked at unless it is said to be. It is not
// known of one that has not its index any more.
func (e *Events) look(ctx context.Context, index uint32, one namedEvent) (up, known bool) {
	if one.up {
		return true, true
	}
	all, err := conn.Dump[vppif.SwInterfaceDetails](ctx, e.api, &vppif.SwInterfaceDump{SwIfIndex: interface_types.InterfaceIndex(index)})
	if err != nil || len(all) != 1 || ifindex.Tags(nil).NameOf(all[0]) != one.name {
		return false, false
	}
	return linkIsUp(all[0].Flags), true
}

// isGone tells whether an interface does not have its index any more: one that was made
// anew may have it. If so, it has no name for what comes.
func (e *Events) isGone(ctx context.Context, name string, index uint32) bool {
	meta, known := e.links.Index.Get(name)
	if !known || meta.Index != index || e.table.DeletedByUs(name, index) {
		return false
	}
	if stands, err := hasName(ctx, e.api, meta.SwIfIndex(), name); stands || err != nil {
		return false // of a connection that is lost all is read anew
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.names[index] == name {
		delete(e.names, index)
	}
	return true
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

// hasName tells whether VPP has an interface of that index and name.
func hasName(ctx context.Context, a conn.API, index interface_types.InterfaceIndex, name string) (bool, error) {
	all, err := conn.Dump[vppif.SwInterfaceDetails](ctx, a, &vppif.SwInterfaceDump{SwIfIndex: index})
	return len(all) == 1 && ifindex.Tags(nil).NameOf(all[0]) == name, err
}
