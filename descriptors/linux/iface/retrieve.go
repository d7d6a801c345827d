package iface

import (
	"cmp"
	"context"
	"iter"

	"golang.org/x/sync/errgroup"

	"github.com/keyplane/keyplane/descriptors/linux/internal/drift"
	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/keys"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/linux/namespace"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/reading"
)

// found is the form in which interfaces are retrieved.
type found = scheduler.Found[*interfaces.Interface, Meta]

// retrieve reads the agent's own namespace, named namespaces, and namespaces that desired
// values refer to. It yields the links that carry the agent's mark.
func (h *handler) retrieve(ctx context.Context, wanted []scheduler.Desired[*interfaces.Interface]) iter.Seq2[found, error] {
	return reading.Of(func(learns bool, yield func(found, error) bool) {
		values, byName := make([]*interfaces.Interface, len(wanted)), map[string]*interfaces.Interface{}
		refs := make([]*namespace.NetNamespace, len(wanted))
		for i, w := range wanted {
			values[i], byName[w.Value.GetName()], refs[i] = w.Value, w.Value, w.Value.GetNamespace()
		}
		began := h.Watch.Clock()
		spaces, err := h.Spaces.Places(refs)
		if err != nil {
			yield(found{}, err)
			return
		}
		// Also if the reader stops early: each space is an open file.
		defer spaces.Close()
		places, err := h.dump(ctx, spaces, learns)
		if err != nil {
			yield(found{}, err)
			return
		}
		all := h.recognise(places, values, learns)
		for _, one := range all {
			learned := func() {
				h.refreshMark(one)
				h.record(one, byName[one.value.GetName()])
				h.members.enter(one.value.GetName(), one.value.GetVrfMasterInterface())
			}
			if !yield(found{Value: one.value, Meta: metaOf(one.place.Space, one.link, one.value), Learned: learned, Details: detailsOf(one.link)}, nil) {
				return
			}
		}
		yield(found{Learned: func() {
			h.Watch.Unseen(began)
			if h.holders.replace(all) {
				h.followAll(places)
			}
			for _, p := range places {
				h.forgetVanished(p)
			}
			h.forgetSpaces()
		}}, nil)
	})
}

// place is the dump of one namespace.
type place struct {
	*netns.Place
	links   []kernel.Link         // with the marks that the agent knows
	aliases map[int]string        // as the kernel has them, by index of the link
	addrs   map[int][]kernel.Addr // by index of the link
	// bare are the addresses whose connected route is missing. A declared one is not there as declared.
	bare map[kernel.Addr]bool
}

// dump reads the namespaces. What an earlier life of the agent did not finish goes, unless somebody only looks.
func (h *handler) dump(ctx context.Context, spaces netns.Places, learns bool) ([]*place, error) {
	places, err := h.readPlaces(ctx, spaces)
	if err == nil && learns && h.removeUnfinished(places) {
		return h.readPlaces(ctx, spaces)
	}
	return places, err
}

// readPlaces reads several namespaces at a time.
func (h *handler) readPlaces(ctx context.Context, spaces netns.Places) ([]*place, error) {
	places := make([]*place, len(spaces))
	g, _ := errgroup.WithContext(ctx)
	g.SetLimit(h.Readers)
	for i, space := range spaces {
		places[i] = &place{Place: space}
		g.Go(func() error { return h.readPlace(places[i]) })
	}
	return places, g.Wait()
}

// readPlace reads links and addresses of one namespace, each with one dump.
func (h *handler) readPlace(p *place) (err error) {
	p.links, err = p.Links()
	if err != nil {
		return err
	}
	p.aliases = make(map[int]string, len(p.links))
	for i, l := range p.links {
		p.aliases[l.Index] = kernel.JoinAlias(l.Alias, l.Owner)
		p.links[i] = h.known(p.Space, l)
	}
	addrs, err := p.Addrs(0)
	p.addrs = map[int][]kernel.Addr{}
	for _, a := range addrs {
		p.addrs[a.Link] = append(p.addrs[a.Link], a)
	}
	if err != nil {
		return err
	}
	bare, err := p.Bare()
	p.bare = map[kernel.Addr]bool{}
	for _, a := range bare {
		p.bare[a] = true
	}
	return err
}

// record passes the interface and its derived objects to the Watcher, with the desired
// attributes: a difference is then detected as drift.
func (h *handler) record(s observed, want *interfaces.Interface) {
	space, at := s.place.Space, s.link.Index
	if s.value.GetType() != interfaces.Interface_EXISTING {
		h.Watch.Retrieved(space, drift.Interface(space.ID, at), h.entryOf(keyOf(s.value.GetName()), s.link, cmp.Or(want, s.value)))
	}
	for _, kv := range derived("", s.value) {
		part, _ := kv.Value.(*interfaces.Interface)
		if a, ok := keys.ParseAddress(kv.Key); ok && a.Source != keys.Existing && stateOf(part) == "" {
			if p, ok := h.prefix(a); ok {
				addr := kernel.Addr{Link: at, Prefix: p}
				h.inherit(linkID{space.ID, at}, p, a.Interface)
				h.Watch.Retrieved(space, drift.Address(space.ID, addr), drift.Entry{Key: kv.Key, Link: at})
			}
		}
		if _, _, ok := keys.ParseVRF(kv.Key); ok {
			h.Watch.Retrieved(space, drift.Membership(space.ID, at), drift.Entry{Key: kv.Key, Link: at, Master: s.link.Master})
		}
	}
}
