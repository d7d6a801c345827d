// Package events tells the scheduler about changes of interfaces that VPP reports: links
// that go up or down, interfaces that other clients delete, and DHCP leases.
//
// VPP sends sw_interface_event with a sw_if_index, so Events translates indexes to names.
// The names are those that the scheduler has committed (Options.Links). An event of an
// interface without a name waits until the interface has one. Of one interface only the
// newest event counts.
//
// The state of a link is one of two keys, for up and for down. VPP does not report a link
// that was up before the agent subscribed. So a link that is not reported as up is read.
//
// Take, TakeLease and Subscribe are for the connection's goroutines; all else runs in Run.
//
// Tests: package iface and descriptors/vpp, through the scheduler and a simulated VPP.
package events

import (
	"cmp"
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

// Options are all required.
type Options struct {
	API         conn.API
	Links       *scheduler.Index[ifindex.Meta] // the interfaces that the scheduler has committed
	Table       *ifindex.Table
	Unconfirmed *leftovers.Unconfirmed
	Leftovers   *leftovers.Registry
	Leases      *Leases
	Observe     func(...scheduler.Observed)
	// LinkChanged is told the interfaces whose links changed.
	LinkChanged func(name string)
	// RefreshAll makes the scheduler read everything back.
	RefreshAll func()
	// RefreshInterfaces makes the scheduler read interfaces back, and enable those that wait.
	RefreshInterfaces func()
	// Awaited tells whether sub-interfaces wait for a parent to be enabled.
	Awaited func(parent string) bool
	// Drop ends the connection to VPP.
	Drop func(why error)
	Log  *slog.Logger
}

// Events takes events from VPP and reports them to the scheduler.
type Events struct {
	Options
	decoder vppwire.Decoder

	mu      sync.Mutex                 // guards all fields below
	pending map[uint32]event           // by sw_if_index: not reported yet
	names   map[uint32]string          // of committed interfaces
	former  map[uint32]string          // of those that have lost their indexes, until the scheduler has handled that
	indexes map[string]uint32          // of the same interfaces
	suspect map[string]uint32          // interfaces that may be gone: VPP reported their index as free, or it has a new holder
	parents map[uint32]uint32          // of sub-interfaces
	subs    map[uint32]map[uint32]bool // sub-interfaces by parent
	ready   wake.Signal                // set when there may be something to report
}

// An event is the newest report about an index. deleted: the interface that had the index
// before may be gone.
type event struct{ exists, up, deleted bool }

// New returns Events, which Run reports.
func New(o Options) *Events {
	return &Events{
		Options: o,
		pending: map[uint32]event{}, names: map[uint32]string{}, former: map[uint32]string{}, indexes: map[string]uint32{}, suspect: map[string]uint32{},
		parents: map[uint32]uint32{}, subs: map[uint32]map[uint32]bool{}, ready: wake.New(),
	}
}

// Take takes a message sw_interface_event.
func (e *Events) Take(message []byte) {
	var m vppif.SwInterfaceEvent
	if e.decoder.Decode(message, &m) != nil {
		return
	}
	index := uint32(m.SwIfIndex)
	e.Table.Reported(index, !m.Deleted)
	e.change(func() {
		deleted := e.pending[index].deleted || m.Deleted
		e.pending[index] = event{exists: !m.Deleted, up: LinkIsUp(m.Flags), deleted: deleted}
	})
}

// TakeLease takes a message dhcp_compl_event.
func (e *Events) TakeLease([]byte) { e.Leases.Wake() }

// Subscribe requests events on a new connection. Events of the connection before are
// dropped, as everything is read back.
func (e *Events) Subscribe(ctx context.Context, c *conn.Conn) error {
	if e.Unconfirmed.Connected(c.PID(), c.RunOfVPP()) {
		e.Leftovers.Restarted()
		e.Table.Restarted()
	}
	e.change(func() { clear(e.pending) })
	return c.Call(ctx, &vppif.WantInterfaceEvents{EnableDisable: 1}, &vppif.WantInterfaceEventsReply{})
}

// change changes the state with mu held, and wakes the reporting goroutine.
func (e *Events) change(do func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	do()
	e.ready.Set()
}

// Run reports events and leases until ctx ends.
func (e *Events) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, run := range []func(context.Context) error{e.followNames, e.reportAll, e.Leases.run} {
		group.Go(func() error { return e.keepRunning(ctx, run) })
	}
	return group.Wait()
}

// keepRunning calls run until ctx ends. A panic in it ends the connection: the next
// connection reads everything back.
func (e *Events) keepRunning(ctx context.Context, run func(context.Context) error) error {
	for {
		err := conn.Safely(func() error { return run(ctx) })
		if err == nil || ctx.Err() != nil {
			return nil
		}
		e.Drop(err)
	}
}

// reportAll reports changes that were collected. Events come faster than the scheduler
// takes them when many links change, and only the newest state of each link matters.
func (e *Events) reportAll(ctx context.Context) error {
	for {
		select {
		case <-e.ready.C():
			e.report(ctx)
		case <-ctx.Done():
			return nil
		}
	}
}

// followNames keeps names and indexes in step with the scheduler.
func (e *Events) followNames(ctx context.Context) error {
	watch := e.Links.Watch()
	defer watch.Close()
	for {
		changes, err := watch.Next(ctx)
		if err != nil {
			return nil // ctx has ended
		}
		e.change(func() {
			for _, c := range changes {
				e.setName(c)
			}
		})
	}
}

// setName takes a change of the scheduler's index. It is called with mu held.
func (e *Events) setName(c scheduler.IndexChange[ifindex.Meta]) {
	if old, known := e.indexes[c.Name]; known && e.names[old] == c.Name {
		delete(e.names, old)
		e.setParent(old, old)
	}
	if old, known := e.indexes[c.Name]; known && e.former[old] == c.Name {
		delete(e.former, old)
	}
	delete(e.indexes, c.Name)
	delete(e.suspect, c.Name)
	if c.Gone {
		return
	}
	if other, taken := e.names[c.Meta.Index]; taken {
		e.suspect[other] = c.Meta.Index
	}
	e.names[c.Meta.Index], e.indexes[c.Name] = c.Name, c.Meta.Index
	e.setParent(c.Meta.Index, c.Meta.Parent)
}

// setParent records the parent of a sub-interface. Other interfaces are their own parents.
func (e *Events) setParent(index, parent uint32) {
	if old, isSub := e.parents[index]; isSub {
		delete(e.subs[old], index)
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

// report reports the pending events of interfaces that have names.
func (e *Events) report(ctx context.Context) {
	links, suspect, unnamed := e.takePending()
	for _, index := range unnamed {
		if e.isBack(ctx, index) {
			continue
		}
		if err := e.Leftovers.EndStale(ctx, e.API, index); err != nil {
			e.Log.Warn("a new interface may have state of an earlier one", "sw_if_index", index, "err", err)
		}
	}
	var out []scheduler.Observed
	for index, one := range links {
		if up, known := e.readLink(ctx, index, one); known {
			out = append(out, linkState(one.name, up)...)
		}
	}
	if len(out) > 0 {
		e.Observe(out...)
		e.correct(ctx, links)
	}
	gone := false
	for name, index := range suspect {
		gone = e.isGone(ctx, name, index) || gone
	}
	// All is read back: the agent may have made the interface again by now, with the same index. And recent requests
	// can have reached the next interface with the index.
	if gone {
		e.RefreshAll()
	}
	for _, one := range links {
		e.LinkChanged(one.name)
		if e.Awaited(one.name) {
			e.RefreshInterfaces()
		}
	}
	if len(suspect) > 0 {
		e.Wake() // report events of the interfaces that have the indexes now
	}
}

// correct corrects the reports about interfaces that were deleted meanwhile: the links of their
// names are withdrawn. If the agent has created an interface of that name again, its link is
// reported, too: the withdrawal may have come after its own report.
func (e *Events) correct(ctx context.Context, links map[uint32]namedEvent) {
	for index, one := range links {
		if e.Table.Has(one.name, index) {
			continue
		}
		if exists, err := hasName(ctx, e.API, interface_types.InterfaceIndex(index), one.name); err != nil || exists {
			continue
		}
		e.Observe(LinkGone(one.name)...)
		if now, known := e.Table.Index(one.name); known && now != index {
			e.change(func() {
				again := e.pending[now]
				again.exists = true
				e.pending[now] = again
			})
		}
	}
}

// Wake reports events that waited for the end of a deletion which VPP has refused.
func (e *Events) Wake() { e.change(func() {}) }

// A namedEvent is a report about the link of an interface with a name.
type namedEvent struct {
	name string
	up   bool
}

// takePending takes out the link reports by index, the interfaces that may be gone, and the
// indexes of new interfaces without a name. Events of the last stay pending. An event of an
// interface is also one of its sub-interfaces.
func (e *Events) takePending() (links map[uint32]namedEvent, suspect map[string]uint32, unnamed []uint32) {
	e.mu.Lock()
	defer e.mu.Unlock()
	links = map[uint32]namedEvent{}
	for index, one := range e.pending {
		name, known := e.names[index]
		switch {
		case one.deleted && known:
			e.suspect[name], one.deleted = index, false
		case known && one.exists && e.Table.LostByUs(name, index):
			// It may be about the next interface with the index: it waits until that one has a name.
			continue
		case known:
			links[index] = namedEvent{name, one.up}
			one.exists = false // reported completely
		}
		if one.exists {
			unnamed = append(unnamed, index)
		}
		// A deletion of an unnamed index can concern an interface whose name is not committed yet.
		if one.exists || one.deleted {
			e.pending[index] = one
		} else {
			delete(e.pending, index)
		}
	}
	suspect = maps.Clone(e.suspect)
	for index := range maps.Clone(links) {
		e.addSubs(index, links)
	}
	return links, suspect, unnamed
}

// addSubs adds the sub-interfaces of an interface that have no report of their own.
func (e *Events) addSubs(index uint32, links map[uint32]namedEvent) {
	for sub := range e.subs[index] {
		name, known := e.names[sub]
		if _, already := links[sub]; known && !already && e.pending[sub] == (event{}) {
			links[sub] = namedEvent{name: name}
		}
	}
}

// readLink tells whether a link is up. It asks VPP unless the link is reported as up. known is
// false if the interface does not have its index any more.
func (e *Events) readLink(ctx context.Context, index uint32, one namedEvent) (up, known bool) {
	if one.up {
		return true, true
	}
	all, err := conn.Dump[vppif.SwInterfaceDetails](ctx, e.API, &vppif.SwInterfaceDump{SwIfIndex: interface_types.InterfaceIndex(index)})
	if err != nil || len(all) != 1 || ifindex.Tags(nil).NameOf(all[0]) != one.name {
		return false, false
	}
	return LinkIsUp(all[0].Flags), true
}

// Holder returns the name of the interface that has, or had, an index according to the scheduler, of which it is a moment behind;
// empty: none. Any goroutine may call it.
func (e *Events) Holder(index uint32) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return cmp.Or(e.names[index], e.former[index])
}

// isBack tells whether the interface that has lost an index has it again, and names the index if so: somebody has deleted it and
// made it again, and to the scheduler, which has read it back, it has always been there.
func (e *Events) isBack(ctx context.Context, index uint32) bool {
	e.mu.Lock()
	name, was := e.former[index]
	e.mu.Unlock()
	if !was {
		return false
	}
	if exists, err := hasName(ctx, e.API, interface_types.InterfaceIndex(index), name); err != nil || !exists {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if now, known := e.indexes[name]; !known || now != index || e.former[index] != name {
		return false
	}
	delete(e.former, index)
	e.names[index] = name
	e.ready.Set() // its event waits
	return true
}

// isGone tells whether an interface lost its index without the agent deleting it. If so,
// later events of the index do not get its name, unless it has the index again by now.
func (e *Events) isGone(ctx context.Context, name string, index uint32) bool {
	meta, known := e.Links.Get(name)
	lost := known && meta.Index == index && !e.Table.LostByUs(name, index)
	if lost {
		exists, err := hasName(ctx, e.API, meta.SwIfIndex(), name)
		lost = !exists && err == nil // after a lost connection everything is read back
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if now, still := e.suspect[name]; still && now == index {
		delete(e.suspect, name)
		if lost && e.names[index] == name {
			delete(e.names, index)
			e.former[index] = name
		}
	}
	return lost
}

// hasName tells whether VPP has an interface of that index and name.
func hasName(ctx context.Context, a conn.API, index interface_types.InterfaceIndex, name string) (bool, error) {
	all, err := conn.Dump[vppif.SwInterfaceDetails](ctx, a, &vppif.SwInterfaceDump{SwIfIndex: index})
	return len(all) == 1 && ifindex.Tags(nil).NameOf(all[0]) == name, err
}

// LinkIsUp tells whether the flags of an interface say that its link is up.
func LinkIsUp(flags interface_types.IfStatusFlags) bool {
	return flags&interface_types.IF_STATUS_API_FLAG_LINK_UP != 0
}

// linkState observes one of the two states of a link, and the absence of the other.
func linkState(name string, up bool) []scheduler.Observed {
	return []scheduler.Observed{
		{Key: keys.Interface(name).LinkState(!up)},
		{Key: keys.Interface(name).LinkState(up), Value: &emptypb.Empty{}},
	}
}

// LinkGone observes that an interface has no link.
func LinkGone(name string) []scheduler.Observed {
	return []scheduler.Observed{{Key: keys.Interface(name).LinkState(true)}, {Key: keys.Interface(name).LinkState(false)}}
}
