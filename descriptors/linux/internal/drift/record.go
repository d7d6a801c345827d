package drift

import (
	"maps"
	"slices"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
)

// An Entry is the recorded state of an Object: the key it was created for, and
// the attributes that the agent configured.
type Entry struct {
	Key  string // of the value
	Link int    // the link that a route leaves by
	// Attributes of an interface. A zero field is not managed by the agent, so
	// others may change it.
	Name string
	Up   bool
	MTU  int
	MAC  string // also of a neighbour
	// All attributes of a route.
	Route kernel.Route
	// Master is the index of the VRF, for a membership.
	Master int

	generation uint64 // distinguishes an object from an earlier one with the same identity
	seen       uint64 // when it was added or retrieved last; see record.clock
}

// A record holds all objects that the agent has created and not removed. It is
// not safe for concurrent use: the mutex of the Watcher guards it.
//
// Invariants: byLink and count contain exactly the keys of objects; newest contains
// objects only; an object in replaced is not in objects.
type record struct {
	objects  map[Object]Entry
	byLink   map[link]map[Object]bool
	newest   map[string]Object // object that was added last, by key
	count    map[kernel.ID]int // number of objects in each namespace
	clock    uint64            // counts the additions and retrievals
	replaced map[Object]string // key of each route that another route replaced
}

// A link is identified by its namespace, too: indexes are unique only within one.
type link struct {
	ns    kernel.ID
	index int
}

// newRecord returns a record without objects.
func newRecord() record {
	return record{
		objects: map[Object]Entry{}, byLink: map[link]map[Object]bool{}, newest: map[string]Object{},
		count: map[kernel.ID]int{}, replaced: map[Object]string{},
	}
}

// add records o. A previous entry of o is replaced, with a new generation.
func (r *record) add(o Object, e Entry) {
	r.remove(o)
	r.clock++
	e.generation, e.seen = r.clock, r.clock
	r.objects[o] = e
	r.newest[e.Key] = o
	r.count[o.NS]++
	at := linkOf(o, e)
	if r.byLink[at] == nil {
		r.byLink[at] = map[Object]bool{}
	}
	r.byLink[at][o] = true
}

// saw notes that o was retrieved.
func (r *record) saw(o Object) {
	e := r.objects[o]
	r.clock++
	e.seen = r.clock
	r.objects[o] = e
}

// removeUnseen removes the interfaces that were neither added nor retrieved since the clock
// showed since, and all objects on them. It returns them.
func (r *record) removeUnseen(since uint64) (removed []Object) {
	for o, e := range r.objects {
		if o.Kind == KindInterface && e.seen <= since {
			removed = append(removed, o)
		}
	}
	r.removeLost(removed)
	return removed
}

// remove removes o, if it is recorded.
func (r *record) remove(o Object) {
	delete(r.replaced, o)
	e, ok := r.objects[o]
	if !ok {
		return
	}
	delete(r.objects, o)
	at := linkOf(o, e)
	delete(r.byLink[at], o)
	if len(r.byLink[at]) == 0 {
		delete(r.byLink, at)
	}
	if r.newest[e.Key] == o {
		delete(r.newest, e.Key)
	}
	r.count[o.NS]--
	if r.count[o.NS] == 0 {
		delete(r.count, o.NS)
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
		e, ok := r.objects[o]
		if !ok {
			continue // removed with its interface
		}
		if !r.superseded(o, e) {
			keys = append(keys, e.Key)
		}
		if o.Kind == KindInterface {
			for _, on := range slices.Collect(maps.Keys(r.byLink[linkOf(o, e)])) {
				r.remove(on)
			}
		}
		r.remove(o)
	}
	return keys
}

// superseded reports whether the value of o has a newer object, on another link.
func (r *record) superseded(o Object, e Entry) bool {
	newest, ok := r.newest[e.Key]
	return ok && linkOf(newest, r.objects[newest]) != linkOf(o, e)
}

// interfaces returns the recorded interfaces of a namespace.
func (r *record) interfaces(ns kernel.ID) (out []Object) {
	for o := range r.objects {
		if o.NS == ns && o.Kind == KindInterface {
			out = append(out, o)
		}
	}
	return out
}

// routesIPv4 calls yield with each recorded IPv4 route of the link of o.
func (r *record) routesIPv4(o Object, yield func(Object)) {
	for on := range r.byLink[link{o.NS, o.Link}] {
		if on.Kind == KindRoute && on.Prefix.Addr().Is4() {
			yield(on)
		}
	}
}

// A finding is the difference between the record and the state of the kernel.
type finding struct {
	lost    []Object // objects that do not exist any more
	changed bool     // an interface has an attribute that differs
}

// clean reports whether everything is as the agent has written it.
func (f finding) clean() bool { return len(f.lost) == 0 && !f.changed }

// check compares an event about o with the record.
func (r *record) check(o Object, e kernel.Event) finding {
	if l, ok := e.What.(kernel.Link); ok {
		return r.checkLink(o, l, e.Gone)
	}
	if recorded, ours := r.objects[o]; ours && recorded.lost(e) {
		return finding{lost: []Object{o}}
	}
	return finding{}
}

// lost reports whether an object on a link is gone or was replaced by another.
// A route that vanished from another link is not the recorded one, since the
// kernel may have several routes with one identity.
func (e Entry) lost(now kernel.Event) bool {
	switch actual := now.What.(type) {
	case kernel.Route:
		if now.Gone {
			return actual.Link == 0 || actual.Link == e.Link
		}
		return actual != e.Route
	case kernel.Neighbour:
		return now.Gone || actual.Protocol != kernel.Protocol || actual.MAC.String() != e.MAC
	}
	return now.Gone
}

// confirm removes the objects that are lost according to e, the actual state of
// o, and returns their keys. It notes a route whose place another route has
// taken, so that its owner may take the place back.
func (r *record) confirm(o Object, e kernel.Event) (lost []string, changed bool) {
	key, f := r.objects[o].Key, r.check(o, e)
	lost = r.removeLost(f.lost)
	if o.Kind == KindRoute && len(lost) > 0 && !e.Gone {
		r.replaced[o] = key
	}
	return lost, f.changed
}

// checkLink checks the interface and its VRF membership, which the kernel
// reports in one message.
func (r *record) checkLink(o Object, l kernel.Link, gone bool) (f finding) {
	recorded, ours := r.objects[o]
	if ours && gone {
		return finding{lost: []Object{o}}
	}
	f.changed = ours && recorded.differs(l)
	member := Membership(o.NS, o.Link)
	if m, ok := r.objects[member]; ok && m.Master != l.Master {
		f.lost = append(f.lost, member)
	}
	return f
}

// differs compares the managed attributes only.
func (e Entry) differs(l kernel.Link) bool {
	return e.Up && !l.Up || e.Name != "" && e.Name != l.Name || e.MTU != 0 && e.MTU != l.MTU ||
		e.MAC != "" && e.MAC != l.MAC.String()
}
