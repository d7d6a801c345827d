package iface

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
)

// The alias of a link contains the label and the installation of its owner.
//
//	label    installation        owner
//	other    any                 another agent; the link is left alone
//	ours     ours, or none       this agent; an older release wrote no installation
//	ours     another, running    another agent with our label; the link is left alone
//	ours     another, stopped    this agent; it adopts the link and updates the alias
//
// The last case occurs after the state folder was lost or the agent was moved. A running
// installation announces itself in each namespace in which it has links. An installation
// that was once seen running counts as another agent even while it is down.
//
// The kernel takes no alias for a new link (rtnl_create_link), but a group. So the agent makes a
// link in a group of its own, and takes it from that when it has its alias. A link that is still
// in the group was made by an agent that was killed meanwhile: a read-back removes it.

// others is the set of installations with our label that were seen running. The zero value
// is empty.
type others struct {
	mu   sync.Mutex // guards seen
	seen map[string]bool
}

// has reports whether the installation was seen running.
func (o *others) has(installation string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.seen[installation]
}

// add notes a running installation. It stays in the set while it is down, see above.
func (o *others) add(installation string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seen == nil {
		o.seen = map[string]bool{}
	}
	o.seen[installation] = true
}

// otherLives reports whether a link with our label belongs to another running agent. Without learns, somebody
// only looks, and a running agent is not noted.
func (h *handler) otherLives(space *netns.Space, l kernel.Link, learns bool) bool {
	if l.Owner == "" || l.Owner == h.Installation {
		return false
	}
	if h.others.has(l.Owner) {
		return true
	}
	// It does not run, or not in a namespace of this host: the link is ours to adopt.
	if !space.Announced(l.Owner) {
		return false
	}
	if !learns {
		return true
	}
	h.others.add(l.Owner)
	h.Log.Warn("another agent with this label is running; its links are left alone", "label", h.Label, "installation", l.Owner, "link", l.Name)
	return true
}

// lives reports whether an installation was seen running: now in the agent's own
// namespace, or earlier in another one. Without learns it is not noted.
func (h *handler) lives(installation string, learns bool) bool {
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
	if learns {
		h.others.add(installation)
	}
	return true
}

// setAlias writes an alias with our installation.
func (h *handler) setAlias(space *netns.Space, index int, alias string) error {
	h.marks.note(linkID{space.ID, index}, alias)
	return space.SetAlias(index, kernel.JoinAlias(alias, h.Installation))
}

// refreshMark writes our installation into the alias of an adopted link, and puts an alias back that somebody
// has overwritten. Earlier releases marked a loopback too; it belongs to nobody.
func (h *handler) refreshMark(s observed) {
	l, alias := s.link, s.place.aliases[s.link.Index]
	var err error
	switch want := kernel.JoinAlias(l.Alias, h.Installation); {
	case s.value.GetType() == interfaces.Interface_EXISTING:
		return
	case l.Name == loopback && strings.HasPrefix(alias, h.mark()):
		err = s.place.SetAlias(l.Index, "")
	case l.Name != loopback && alias != want && s.trust == stranger:
		err = s.place.SetAlias(l.Index, want)
	case l.Name != loopback && alias != want:
		err = h.setAlias(s.place.Space, l.Index, l.Alias)
	}
	if err != nil && !errors.Is(err, unix.ENODEV) {
		h.Log.Warn("cannot update the mark of a link", "link", l.Name, "err", err)
	}
	if s.trust != stranger { // the mark may be a copy
		h.marks.put(linkID{s.place.ID, l.Index}, l.Alias, l.MAC.String())
	}
}

// unfinished is the group of the links that this agent makes. The kernel shows it as a signed number.
func (h *handler) unfinished() uint32 {
	sum := fnv.New32a()
	sum.Write([]byte(kernel.JoinAlias(h.mark(), h.Installation)))
	return sum.Sum32()>>1 | 1<<30
}

// finish takes a link that has its alias from the group of new links.
func finish(space *netns.Space, l kernel.Link) error { return space.SetGroup(l.Index, 0) }

// removeUnfinished removes the links that an earlier life of the agent did not finish, and reports whether there
// were any. No verb runs meanwhile.
func (h *handler) removeUnfinished(places []*place) (removed bool) {
	for _, p := range places {
		for _, l := range p.links {
			if l.Group != h.unfinished() {
				continue
			}
			removed = true
			if err := p.DelLink(l.Index); err != nil && !errors.Is(err, unix.ENODEV) {
				h.Log.Warn("cannot remove a link that the agent has not finished before it was killed", "link", l.Name, "err", err)
			}
		}
	}
	return removed
}

// ownerOf describes the owner of a link in an error.
func (h *handler) ownerOf(space *netns.Space, l kernel.Link) string {
	rest, marked := strings.CutPrefix(l.Alias, agentMark)
	label, _, whole := strings.Cut(rest, "/")
	switch {
	case h.ours(space, l, true):
		return "another link of this agent"
	case !marked || !whole:
		return "a link of another owner"
	case l.Owner == "":
		return fmt.Sprintf("a link of the agent with label %s", label)
	}
	return fmt.Sprintf("a link of the agent with label %s, installation %s", label, l.Owner)
}
