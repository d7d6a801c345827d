package iface

import (
	"fmt"
	"maps"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/descriptors/linux/internal/drift"
	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
)

// holders are the values that have a link which the agent does not make: an EXISTING link, or a loopback. Each such link has
// one value, since two would take away each other's addresses and routes. Claims see that two values name one link in the same way;
// here it shows that they name it in two ways, such as by an alternative name, or a namespace by its name and by a process.
type holders struct {
	mu    sync.Mutex        // guards the fields below
	by    map[linkID]string // names of the values
	named map[string]linkID // the links of EXISTING values in the agent's own namespace, by the names that these follow
}

// take has v hold the link, unless another value does, whose name it returns.
func (h *holders) take(id linkID, v *interfaces.Interface) (holder string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if holder = h.by[id]; holder != "" && holder != v.GetName() {
		return holder
	}
	h.add(id, v, true)
	return ""
}

// add notes that v holds the link, in the agent's own namespace or not. The caller holds mu.
func (h *holders) add(id linkID, v *interfaces.Interface, own bool) {
	if h.by == nil {
		h.by, h.named = map[linkID]string{}, map[string]linkID{}
	}
	h.by[id] = v.GetName()
	if v.GetType() == interfaces.Interface_EXISTING && own {
		h.named[hostName(v)] = id
	}
}

// drop takes a link from the value with this name, and reports whether it held it.
func (h *holders) drop(id linkID, name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	held := h.by[id] == name
	if held {
		delete(h.by, id)
		maps.DeleteFunc(h.named, func(_ string, at linkID) bool { return at == id })
	}
	return held
}

// replace notes what a read-back has found, and reports whether an EXISTING value has another link than before. No verb
// runs meanwhile. Others on a link than the first are what is left of undeclared values.
func (h *holders) replace(all []observed) (news bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.named
	h.by, h.named = nil, nil
	for _, s := range all {
		if id := (linkID{s.place.ID, s.link.Index}); sharedType(s.value.GetType()) && h.by[id] == "" {
			h.add(id, s.value, s.place.Own)
		}
	}
	for name, id := range h.named {
		news = news || before[name] != id
	}
	return news
}

// haveLost reports whether an EXISTING value follows a name and has another link than the one that has the name now.
func (h *holders) haveLost(name string, link int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	id, followed := h.named[name]
	return followed && id.index != link
}

// follow has all read back if an EXISTING value has another link than the one with its name. Announcements of host names do not
// show that.
func (h *handler) follow(name string, link int) {
	if h.holders.haveLost(name, link) {
		h.again()
	}
}

// followAll is follow for the names in the agent's own namespace, after a read-back: they may have moved during it.
func (h *handler) followAll(places []*place) {
	for _, p := range places {
		if !p.Own {
			continue
		}
		links, err := p.Links()
		if err != nil {
			h.again()
		}
		for _, l := range links {
			for _, name := range l.Names() {
				h.follow(name, l.Index)
			}
		}
	}
}

// hold has v hold its link. While another value does, v waits for that to leave.
func (h *handler) hold(space *netns.Space, l kernel.Link, v *interfaces.Interface) error {
	holder := h.holders.take(linkID{space.ID, l.Index}, v)
	if holder == "" {
		if v.GetType() != interfaces.Interface_EXISTING {
			return nil
		}
		now, err := space.LinkByName(hostName(v)) // after this, follow sees another link with the name
		if err == nil && now.Index != l.Index {
			err = fmt.Errorf("%w: another link has the name %s now", unix.ENODEV, hostName(v))
		}
		return err
	}
	h.Watch.Await(drift.Interface(space.ID, l.Index))
	return fmt.Errorf("link %s in %s: %w by %s, which names it in another way; remove one of the two",
		l.Name, netns.Text(v.GetNamespace()), ErrConflict, keyOf(holder))
}

// letGo ends hold, and lets another value try that waits for the link.
func (h *handler) letGo(id linkID, v *interfaces.Interface) {
	if sharedType(v.GetType()) && h.holders.drop(id, v.GetName()) {
		h.Watch.Left(drift.Interface(id.ns, id.index))
	}
}
