package standing

import (
	"maps"
	"slices"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
)

// An Entry says what stands as a thing, for whom, and how it should look.
type Entry struct {
	Key  string // of the value
	Link int    // the link that a route leaves by
	// Of an interface: what it should look like. What is zero is anybody's.
	Name string
	Up   bool
	MTU  int
	MAC  string // of a neighbour, too
	// Of a route: all of it.
	Route kernel.Route
	// Of a membership: the index of the VRF.
	Master int

	made uint64 // tells what is made again from what was before
}

// book is what stands. It is not safe for concurrent use.
type book struct {
	things map[Thing]Entry
	onLink map[link]map[Thing]bool
	in     map[kernel.ID]int // number of things in each namespace
	made   uint64            // how much was ever added
	taken  map[Thing]string  // keys of routes in whose place others were put
}

type link struct {
	ns    kernel.ID
	index int
}

func newBook() book {
	return book{things: map[Thing]Entry{}, onLink: map[link]map[Thing]bool{}, in: map[kernel.ID]int{}, taken: map[Thing]string{}}
}

func (b *book) add(t Thing, e Entry) {
	b.remove(t)
	b.made++
	e.made = b.made
	b.things[t] = e
	b.in[t.NS]++
	at := linkOf(t, e)
	if b.onLink[at] == nil {
		b.onLink[at] = map[Thing]bool{}
	}
	b.onLink[at][t] = true
}

func (b *book) remove(t Thing) {
	delete(b.taken, t)
	e, ok := b.things[t]
	if !ok {
		return
	}
	delete(b.things, t)
	at := linkOf(t, e)
	delete(b.onLink[at], t)
	if len(b.onLink[at]) == 0 {
		delete(b.onLink, at)
	}
	if b.in[t.NS]--; b.in[t.NS] == 0 {
		delete(b.in, t.NS)
	}
}

func linkOf(t Thing, e Entry) link {
	if t.Sort == ARoute {
		return link{t.NS, e.Link}
	}
	return link{t.NS, t.Link}
}

// lose takes out things that are gone and returns their keys. With an interface
// goes, without a word, what is on it: whoever makes it again makes that too.
func (b *book) lose(things []Thing) (keys []string) {
	for _, t := range things {
		e, ok := b.things[t]
		if !ok {
			continue // went with its interface
		}
		keys = append(keys, e.Key)
		if t.Sort == AnInterface {
			for _, on := range slices.Collect(maps.Keys(b.onLink[linkOf(t, e)])) {
				b.remove(on)
			}
		}
		b.remove(t)
	}
	return keys
}

// interfaces returns those in a namespace.
func (b *book) interfaces(ns kernel.ID) (out []Thing) {
	for t := range b.things {
		if t.NS == ns && t.Sort == AnInterface {
			out = append(out, t)
		}
	}
	return out
}

// verdict is what the state of the kernel means for what stands.
type verdict struct {
	lost    []Thing // what is gone
	changed bool    // something looks other than it should
}

func (v verdict) fine() bool { return len(v.lost) == 0 && !v.changed }

// judge compares what the kernel says of a thing with what should be.
func (b *book) judge(t Thing, e kernel.Event) verdict {
	if l, ok := e.What.(kernel.Link); ok {
		return b.judgeLink(t, l, e.Gone)
	}
	if have, ours := b.things[t]; ours && have.lost(e) {
		return verdict{lost: []Thing{t}}
	}
	return verdict{}
}

// lost tells whether what stands on a link is gone, or is not what was made. A
// route that has gone from another link was another.
func (e Entry) lost(now kernel.Event) bool {
	switch what := now.What.(type) {
	case kernel.Route:
		if now.Gone {
			return what.Link == 0 || what.Link == e.Link
		}
		return what != e.Route
	case kernel.Neighbour:
		return now.Gone || what.Protocol != kernel.Protocol || what.MAC.String() != e.MAC
	}
	return now.Gone
}

// convict takes out what is lost, given what the kernel says of t now, and returns
// the keys.
func (b *book) convict(t Thing, e kernel.Event) (lost []string, changed bool) {
	key, v := b.things[t].Key, b.judge(t, e)
	lost = b.lose(v.lost)
	if t.Sort == ARoute && len(lost) > 0 && !e.Gone {
		b.taken[t] = key
	}
	return lost, v.changed
}

func (b *book) judgeLink(t Thing, l kernel.Link, gone bool) (v verdict) {
	have, ours := b.things[t]
	if ours && gone {
		return verdict{lost: []Thing{t}}
	}
	v.changed = ours && have.differs(l)
	member := Membership(t.NS, t.Link)
	if m, ok := b.things[member]; ok && m.Master != l.Master {
		v.lost = append(v.lost, member)
	}
	return v
}

func (e Entry) differs(l kernel.Link) bool {
	return e.Up && !l.Up || e.Name != "" && e.Name != l.Name || e.MTU != 0 && e.MTU != l.MTU ||
		e.MAC != "" && e.MAC != l.MAC.String()
}
