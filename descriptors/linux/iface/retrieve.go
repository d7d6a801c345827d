package iface

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"net/netip"

	"golang.org/x/sync/errgroup"

	"github.com/keyplane/keyplane/descriptors/linux/internal/drift"
	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/keys"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/linux/namespace"
	"github.com/keyplane/keyplane/scheduler"
)

// found is the form in which interfaces are retrieved.
type found = scheduler.Found[*interfaces.Interface, Meta]

// retrieve reads the agent's own namespace, named namespaces, and namespaces that desired
// values refer to. It yields the links that carry the agent's mark.
func (h *handler) retrieve(ctx context.Context, wanted []scheduler.Desired[*interfaces.Interface]) iter.Seq2[found, error] {
	return func(yield func(found, error) bool) {
		values, byName := make([]*interfaces.Interface, len(wanted)), map[string]*interfaces.Interface{}
		for i, w := range wanted {
			values[i], byName[w.Value.GetName()] = w.Value, w.Value
		}
		places, err := h.dump(ctx, values)
		// Also if the reader stops early: each space is an open file.
		defer func() {
			for _, p := range places {
				p.space.Close()
			}
		}()
		if err != nil {
			yield(found{}, err)
			return
		}
		for _, one := range h.recognise(places, values) {
			h.record(one, byName[one.value.GetName()])
			h.members.enter(one.value.GetName(), one.value.GetVrfMasterInterface())
			if !yield(found{Value: one.value, Meta: metaOf(one.place.space, one.link, one.value)}, nil) {
				return
			}
		}
	}
}

// place is the dump of one namespace.
type place struct {
	space *netns.Space
	refs  []*namespace.NetNamespace // all references that lead to this namespace
	own   bool
	links []kernel.Link
	addrs map[int][]netip.Prefix // by index of the link
}

// dump opens and reads all namespaces that may contain links of this agent. The caller
// closes the spaces, also after an error.
func (h *handler) dump(ctx context.Context, wanted []*interfaces.Interface) ([]*place, error) {
	places, err := h.places(wanted)
	if err != nil {
		return places, err
	}
	g, _ := errgroup.WithContext(ctx)
	g.SetLimit(h.Readers)
	for _, p := range places {
		g.Go(p.read)
	}
	return places, g.Wait()
}

// places opens the namespaces without reading them. Several references may lead to the
// same namespace; it is opened once.
func (h *handler) places(wanted []*interfaces.Interface) (places []*place, err error) {
	named, err := h.Spaces.Named()
	if err != nil {
		return nil, err
	}
	// The agent's own namespace is always read, and comes first.
	refs := []*namespace.NetNamespace{nil}
	for _, v := range wanted {
		refs = append(refs, v.GetNamespace())
	}
	tried, byID := map[string]bool{}, map[kernel.ID]*place{}
	for i, ns := range append(refs, named...) {
		// Thousands of interfaces may refer to one namespace.
		if tried[netns.Text(ns)] {
			continue
		}
		tried[netns.Text(ns)] = true
		space, err := h.Spaces.Open(ns)
		if errors.Is(err, netns.ErrNotFound) || errors.Is(err, netns.ErrDisabled) {
			continue // a missing namespace has no links
		}
		if err != nil {
			return places, err
		}
		if p := byID[space.ID]; p != nil {
			p.refs = append(p.refs, ns)
			space.Close()
			continue
		}
		p := &place{space: space, refs: []*namespace.NetNamespace{ns}, own: i == 0}
		byID[space.ID] = p
		places = append(places, p)
	}
	return places, nil
}

// read reads links and addresses of one namespace, each with one dump.
func (p *place) read() (err error) {
	p.links, err = p.space.Links()
	if err != nil {
		return err
	}
	addrs, err := p.space.Addrs(0)
	p.addrs = map[int][]netip.Prefix{}
	for _, a := range addrs {
		p.addrs[a.Link] = append(p.addrs[a.Link], a.Prefix)
	}
	return err
}

// ref returns a reference to the namespace: the desired one if it leads here, so that the
// value does not differ by notation only.
func (p *place) ref(want *interfaces.Interface) *namespace.NetNamespace {
	for _, ref := range p.refs {
		if want != nil && netns.Equal(ref, want.GetNamespace()) {
			return want.GetNamespace()
		}
	}
	return p.refs[0]
}

// record passes the interface and its derived objects to the Watcher, with the desired
// attributes: a difference is then detected as drift.
func (h *handler) record(s observed, want *interfaces.Interface) {
	space, at := s.place.space, s.link.Index
	if s.value.GetType() != interfaces.Interface_EXISTING {
		h.Watch.Retrieved(space, drift.Interface(space.ID, at), entryOf(keyOf(s.value.GetName()), s.link, cmp.Or(want, s.value)))
	}
	for _, kv := range derived("", s.value) {
		if a, ok := keys.ParseAddress(kv.Key); ok && a.Source != keys.Existing {
			if p, ok := h.prefix(a); ok {
				addr := kernel.Addr{Link: at, Prefix: p}
				h.Watch.Retrieved(space, drift.Address(space.ID, addr), drift.Entry{Key: kv.Key, Link: at})
			}
		}
		if _, _, ok := keys.ParseVRF(kv.Key); ok {
			h.Watch.Retrieved(space, drift.Membership(space.ID, at), drift.Entry{Key: kv.Key, Link: at, Master: s.link.Master})
		}
	}
}
