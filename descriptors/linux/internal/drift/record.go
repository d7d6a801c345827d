package drift

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
)

// An Entry is the recorded state of an Object: the key it was created for, and
// the attributes that the agent configured.
type Entry struct {
	Key  string // of the value
	Link int    // the link that a route leaves by
	// Attributes of an interface. A zero field is not managed by the agent, so
	// others may change it.
	Name  string
	State LinkState
	MTU   int
	MAC   string // also of a neighbour
	Alias string // the mark of a link
	// Checksum offloading of a link.
	Offload *kernel.Offload
	// All attributes of a route.
	Route kernel.Route
	// Master is the index of the VRF, for a membership.
	Master int
}

// A LinkState is the administrative state in which the agent keeps a link.
type LinkState uint8

// States of a link.
const (
	AnyState LinkState = iota // the agent does not manage it
	Up
	Down
)

// StateOf returns Up for an enabled interface, otherwise Down.
func StateOf(enabled bool) LinkState {
	if enabled {
		return Up
	}
	return Down
}

// A record holds all objects that the agent has created and not removed. It is
// not safe for concurrent use: the mutex of the Watcher guards it.
//
// Invariants: byLink, newest and count contain objects only; an object in losses is not in objects.
type record struct {
	objects map[Object]*recorded
	byLink  map[link]*recorded   // the last one that was added; the others follow it
	newest  map[string]*recorded // the last one that was added, by key
	count   map[kernel.ID]int    // number of objects in each namespace
	clock   uint64               // counts the additions and retrievals, and what is added to past
	losses  map[Object]loss      // the routes and neighbours that were lost while others stand in their place
	awaited map[Object]bool      // places that values wait for; see Watcher.Await
	doubted map[Object]doubt     // addresses that another host has; see Watcher.Doubt
	past    past
}

// A recorded is an object in the record.
type recorded struct {
	Object
	Entry
	generation uint64 // distinguishes it from an earlier one with the same identity; never 0
	seen       uint64 // when it was added or retrieved last; see record.clock
	// What was heard about the loss of a route; nil: nothing.
	fate *fate
	// Others on the same link. Routes come and go by the thousands, and another map of objects would take
	// more time than all else here.
	before, after *recorded
}

// A link is identified by its namespace, too: indexes are unique only within one.
type link struct {
	ns    kernel.ID
	index int
}

// A doubt is about an address that the kernel has found on another host.
type doubt struct {
	tested time.Time // when the kernel last tested it
	free   bool      // somebody else has lost it since
}

// newRecord returns a record without objects.
func newRecord() record {
	return record{
		objects: map[Object]*recorded{}, byLink: map[link]*recorded{}, newest: map[string]*recorded{},
		count: map[kernel.ID]int{}, losses: map[Object]loss{}, awaited: map[Object]bool{}, doubted: map[Object]doubt{},
	}
}

// add records o. A previous entry of o is replaced, with a new generation.
func (r *record) add(o Object, e Entry) {
	r.remove(o)
	r.clock++
	at := linkOf(o, e)
	one := &recorded{Object: o, Entry: e, generation: r.clock, seen: r.clock, after: r.byLink[at]}
	if one.after != nil {
		one.after.before = one
	}
	r.objects[o], r.byLink[at], r.newest[e.Key] = one, one, one
	r.count[o.NS]++
}

// key returns the key that o was created for; "" if it is not recorded.
func (r *record) key(o Object) string {
	if one := r.objects[o]; one != nil {
		return one.Key
	}
	return ""
}

// generation returns the generation of o; 0 if it is not recorded.
func (r *record) generation(o Object) uint64 {
	if one := r.objects[o]; one != nil {
		return one.generation
	}
	return 0
}

// saw notes that an object was retrieved.
func (r *record) saw(one *recorded) {
	r.clock++
	one.seen = r.clock
}

// unseen returns the interfaces that were neither added nor retrieved since the clock showed since.
func (r *record) unseen(since uint64) (out []Object) {
	for o, one := range r.objects {
		if o.Kind == KindInterface && one.seen <= since {
			out = append(out, o)
		}
	}
	return out
}

// remove removes o, if it is recorded.
func (r *record) remove(o Object) {
	if len(r.losses) > 0 {
		delete(r.losses, o)
	}
	one := r.objects[o]
	if one == nil {
		return
	}
	delete(r.objects, o)
	if one.after != nil {
		one.after.before = one.before
	}
	if one.before != nil {
		one.before.after = one.after
	} else if at := linkOf(o, one.Entry); one.after != nil {
		r.byLink[at] = one.after
	} else {
		delete(r.byLink, at)
	}
	if r.newest[one.Key] == one {
		delete(r.newest, one.Key)
	}
	r.count[o.NS]--
	if r.count[o.NS] == 0 {
		delete(r.count, o.NS)
	}
}

// on yields the objects on a link. One that is yielded may be removed.
func (r *record) on(at link) iter.Seq[*recorded] {
	return func(yield func(*recorded) bool) {
		for one := r.byLink[at]; one != nil; {
			after := one.after
			if !yield(one) {
				return
			}
			one = after
		}
	}
}

// linkOf returns the link that o belongs to. An Object of a route has no link,
// because the kernel does not identify routes by it.
func linkOf(o Object, e Entry) link {
	if o.Kind == KindRoute {
		return link{o.NS, e.Link}
	}
	return link{o.NS, o.Link}
}

// removeLost removes vanished objects and returns their keys. An interface takes
// all objects on it along. Their keys are not returned: they depend on the
// interface, so the scheduler re-creates them after the interface. Neither is the key of an
// object whose value has a newer object on another link: that one exists.
func (r *record) removeLost(objects []Object) (keys []string) {
	for _, o := range objects {
		one := r.objects[o]
		if one == nil {
			continue // removed with its interface
		}
		if !r.superseded(one) {
			keys = append(keys, one.Key)
		}
		if o.Kind == KindInterface {
			for other := range r.on(linkOf(o, one.Entry)) {
				r.remove(other.Object)
			}
			maps.DeleteFunc(r.doubted, func(on Object, _ doubt) bool { return on.NS == o.NS && on.Link == o.Link })
		}
		r.remove(o)
	}
	return keys
}

// settles takes in an event about an address. It reports whether a value that waits may succeed now: its address is
// in use, so the doubt has ended, or somebody else who used it has lost it.
func (r *record) settles(o Object, a kernel.Addr, gone bool) bool {
	if a.Duplicate || a.Tentative || len(r.doubted) == 0 {
		return false
	}
	if !gone {
		_, waits := r.doubted[o]
		delete(r.doubted, o)
		return waits
	}
	waits := false
	for one, d := range r.doubted {
		if one.Prefix.Addr() == a.Prefix.Addr() {
			d.free, waits = true, true
			r.doubted[one] = d
		}
	}
	return waits
}

// superseded reports whether the value of an object has a newer one, on another link.
func (r *record) superseded(one *recorded) bool {
	newest := r.newest[one.Key]
	return newest != nil && linkOf(newest.Object, newest.Entry) != linkOf(one.Object, one.Entry)
}

// awaits reports whether a value waits for something in the namespace.
func (r *record) awaits(ns kernel.ID) bool {
	for o := range r.awaited {
		if o.NS == ns {
			return true
		}
	}
	return false
}

// all returns the recorded objects of a kind in a namespace.
func (r *record) all(ns kernel.ID, kind Kind) (out []Object) {
	for o := range r.objects {
		if o.NS == ns && o.Kind == kind {
			out = append(out, o)
		}
	}
	return out
}

// routes calls yield with each recorded route of the link of o.
func (r *record) routes(o Object, yield func(Object)) {
	for on := range r.on(link{o.NS, o.Link}) {
		if on.Kind == KindRoute {
			yield(on.Object)
		}
	}
}

// in yields the recorded addresses of a link with which the kernel adds a route to the network of o.
func (r *record) in(o Object) iter.Seq[*recorded] {
	return func(yield func(*recorded) bool) {
		for on := range r.on(link{o.NS, o.Link}) {
			if on.Kind == KindAddress && on.connects(o.Prefix) && !yield(on) {
				return
			}
		}
	}
}

// A finding is the difference between the record and the state of the kernel.
type finding struct {
	lost     []Object // objects that do not exist any more
	changed  bool     // an interface has an attribute that differs, or another host has an address
	unmarked bool     // an interface has another alias
}

// clean reports whether everything is as the agent has written it.
func (f finding) clean() bool { return len(f.lost) == 0 && !f.changed && !f.unmarked }

// check compares an event about o with the record.
func (r *record) check(o Object, e kernel.Event) finding {
	if l, ok := e.What.(kernel.Link); ok {
		f := r.checkLink(o, l, e.Gone)
		f.changed = f.changed || e.Features && r.offloads(o)
		return f
	}
	one := r.objects[o]
	switch a, address := e.What.(kernel.Addr); {
	case one == nil:
		return finding{}
	case one.lost(e):
		return finding{lost: []Object{o}}
	default:
		return finding{changed: address && a.Duplicate}
	}
}

// offloads reports whether the agent has set the checksum offloading of an interface.
func (r *record) offloads(o Object) bool {
	one := r.objects[o]
	return one != nil && one.Offload != nil
}

// lost reports whether an object on a link is gone or was replaced by another. Of a route, the event has
// all routes that stand in its place.
func (e Entry) lost(now kernel.Event) bool {
	switch actual := now.What.(type) {
	case []kernel.Route:
		return !slices.ContainsFunc(actual, e.Route.Is)
	case kernel.Neighbour:
		return now.Gone || actual.Protocol != kernel.Protocol || actual.MAC.String() != e.MAC
	}
	return now.Gone
}

// confirm removes the objects that are lost according to e, the actual state of
// o, and returns their keys. It notes how a route or neighbour was lost that has left others in its
// place, so that it may return there.
func (r *record) confirm(o Object, e kernel.Event) (lost []string, f finding) {
	key := r.key(o)
	f = r.check(o, e)
	how, _ := r.loss(o, key)
	lost = r.removeLost(f.lost)
	if (o.Kind == KindRoute || o.Kind == KindNeighbour) && len(lost) > 0 && !e.Gone {
		if len(r.losses) >= mostLost {
			clear(r.losses)
		}
		r.losses[o] = loss{key, how}
	}
	return lost, f
}

// checkLink checks the interface and its VRF membership, which the kernel
// reports in one message.
func (r *record) checkLink(o Object, l kernel.Link, gone bool) (f finding) {
	one := r.objects[o]
	if one != nil && gone {
		return finding{lost: []Object{o}}
	}
	f.changed = one != nil && one.differs(l)
	f.unmarked = one != nil && one.Alias != "" && one.Alias != kernel.JoinAlias(l.Alias, l.Owner)
	member := Membership(o.NS, o.Link)
	switch m := r.objects[member]; {
	case m != nil && m.Master != l.Master:
		f.lost = append(f.lost, member)
	case m == nil && one != nil && r.objects[VRFRules(o.NS, l.Master)] != nil: // in a VRF of the agent, and declared in none
		f.changed = true
	}
	return f
}

// differs compares the managed attributes only.
func (e Entry) differs(l kernel.Link) bool {
	return e.State != AnyState && e.State != StateOf(l.Up) || e.Name != "" && e.Name != l.Name || e.MTU != 0 && e.MTU != l.MTU ||
		e.MAC != "" && e.MAC != l.MAC.String() || e.Offload != nil && l.Offload != nil && *e.Offload != *l.Offload
}
