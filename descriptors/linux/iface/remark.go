package iface

import (
	"strings"
	"sync"
	"time"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/scheduler/flaps"
)

// remarks are the links whose alias others overwrite. The zero value has none.
type remarks struct {
	mu    sync.Mutex // guards the fields below
	flaps flaps.Flaps
	waits map[linkID]bool // the alias is put back after a pause
}

// remark puts the alias of a link back that another program has overwritten: at once, or after a pause if that
// program insists.
func (h *handler) remark(ns kernel.ID, link int) {
	id := linkID{ns, link}
	if !h.unmarked(id) {
		return
	}
	h.remarks.mu.Lock()
	defer h.remarks.mu.Unlock()
	if h.remarks.waits[id] {
		return
	}
	pause, begun := h.remarks.flaps.Lost(h.marks.keyOf(id), time.Now())
	if begun {
		alias, _ := h.marks.of(id, "")
		h.Log.Warn("another program overwrites the alias of a link repeatedly; it is put back after growing pauses", "index", link, "alias", alias)
	}
	if pause == 0 {
		h.putBack(id)
		return
	}
	if h.remarks.waits == nil {
		h.remarks.waits = map[linkID]bool{}
	}
	h.remarks.waits[id] = true
	time.AfterFunc(pause, func() {
		h.remarks.mu.Lock()
		defer h.remarks.mu.Unlock()
		delete(h.remarks.waits, id)
		h.putBack(id)
	})
}

// unmarked reports whether a link of ours has an alias that is not that of any agent.
func (h *handler) unmarked(id linkID) bool {
	space, ok := h.Spaces.ByID(id.ns)
	if !ok {
		return false
	}
	defer space.Close()
	l, err := space.LinkByIndex(id.index)
	if err != nil || strings.HasPrefix(l.Alias, agentMark) {
		return false
	}
	_, known := h.marks.of(id, l.MAC.String())
	return known && l.Name != loopback
}

// putBack writes the alias, if the link is ours still.
func (h *handler) putBack(id linkID) {
	if !h.unmarked(id) {
		return
	}
	space, ok := h.Spaces.ByID(id.ns)
	if !ok {
		return
	}
	defer space.Close()
	alias, _ := h.marks.of(id, "")
	if err := h.setAlias(space, id.index, alias); err != nil {
		h.Log.Warn("cannot put the alias of a link back", "index", id.index, "alias", alias, "err", err)
	}
}

// unmark takes our mark from a link that stays. What is known goes first, or the event of it would bring the mark back.
func (h *handler) unmark(space *netns.Space, link int) error {
	h.remarks.mu.Lock()
	defer h.remarks.mu.Unlock()
	h.marks.drop(linkID{space.ID, link})
	return space.SetAlias(link, unconfigured)
}
