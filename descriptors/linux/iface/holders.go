package iface

import (
	"fmt"
	"sync"

	"github.com/keyplane/keyplane/descriptors/linux/internal/drift"
	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
)

// holders are the values that have a link which the agent does not make: an EXISTING link, or a loopback. Each such link has
// one value, since two would take away each other's addresses and routes. Claims see that two values name one link in the same way;
// here it shows that they name it in two ways, such as by an alternative name, or a namespace by its name and by a process.
type holders struct {
	mu sync.Mutex // guards by
	by map[linkID]string
}

// take has the value with this name hold the link, unless another one does, which it returns.
func (h *holders) take(id linkID, name string) (holder string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.by == nil {
		h.by = map[linkID]string{}
	}
	if holder = h.by[id]; holder == "" || holder == name {
		h.by[id] = name
		return ""
	}
	return holder
}

// drop takes a link from the value with this name, and reports whether it held it.
func (h *holders) drop(id linkID, name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	held := h.by[id] == name
	if held {
		delete(h.by, id)
	}
	return held
}

// replace notes what a read-back has found. No verb runs meanwhile.
func (h *holders) replace(by map[linkID]string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.by = by
}

// hold has v hold its link. While another value does, v waits for that to leave.
func (h *handler) hold(space *netns.Space, l kernel.Link, v *interfaces.Interface) error {
	holder := h.holders.take(linkID{space.ID, l.Index}, v.GetName())
	if holder == "" {
		return nil
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

// heldBy returns the links that values hold, as they were read back.
func heldBy(all []observed) map[linkID]string {
	by := map[linkID]string{}
	for _, s := range all {
		id := linkID{s.place.ID, s.link.Index}
		if sharedType(s.value.GetType()) && by[id] == "" { // others on it are what is left of undeclared values
			by[id] = s.value.GetName()
		}
	}
	return by
}
