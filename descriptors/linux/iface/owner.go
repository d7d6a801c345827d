package iface

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
)

// The owner of a link is the label and the installation in its alias. A link of our label
// is ours if
//
//   - its installation is ours, or it has none: an older release made it;
//   - its installation is another one that does not live: the state folder was lost, or the
//     agent was moved. It is adopted, and gets our installation.
//
// An installation that lives announces itself in each namespace where it has something.
// One that was seen to live stays another agent, also while it is down.

// others are the installations of our label that were seen to live. The zero value has none.
type others struct {
	mu   sync.Mutex // guards seen
	seen map[string]bool
}

func (o *others) has(installation string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.seen[installation]
}

func (o *others) add(installation string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seen == nil {
		o.seen = map[string]bool{}
	}
	o.seen[installation] = true
}

// otherLives says that a link of our label is that of another agent.
func (h *handler) otherLives(space *netns.Space, l kernel.Link) bool {
	if l.Owner == "" || l.Owner == h.Installation {
		return false
	}
	if h.others.has(l.Owner) {
		return true
	}
	if !space.Announced(l.Owner) {
		return false
	}
	h.others.add(l.Owner)
	h.Log.Warn("another agent of this label lives and has links here: they are left alone", "label", h.Label, "installation", l.Owner, "link", l.Name)
	return true
}

// lives tells whether an installation was seen to live: in the agent's own namespace or,
// before, in another one.
func (h *handler) lives(installation string) bool {
	if h.others.has(installation) {
		return true
	}
	own, err := h.Spaces.Own()
	if err != nil {
		return false
	}
	defer own.Close()
	if !own.Announced(installation) {
		return false
	}
	h.others.add(installation)
	return true
}

// setAlias marks a link with an alias and our installation.
func (h *handler) setAlias(space *netns.Space, index int, alias string) error {
	return space.SetAlias(index, kernel.JoinAlias(alias, h.Installation))
}

// takeOver marks a link of ours that still carries an older mark.
func (h *handler) takeOver(space *netns.Space, l kernel.Link) {
	if l.Owner == h.Installation {
		return
	}
	if err := h.setAlias(space, l.Index, l.Alias); err != nil && !errors.Is(err, unix.ENODEV) {
		h.Log.Warn("a link keeps the mark of an earlier installation", "link", l.Name, "err", err)
	}
}

// ownerOf says whose a link is.
func (h *handler) ownerOf(space *netns.Space, l kernel.Link) string {
	rest, marked := strings.CutPrefix(l.Alias, agentMark)
	label, _, whole := strings.Cut(rest, "/")
	switch {
	case h.ours(space, l):
		return "another link of ours"
	case !marked || !whole:
		return "a link that is not ours"
	case l.Owner == "":
		return fmt.Sprintf("a link that is not ours but of the agent with label %s", label)
	}
	return fmt.Sprintf("a link that is not ours but of the agent with label %s, installation %s", label, l.Owner)
}
