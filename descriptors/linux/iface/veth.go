package iface

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
)

// tempName returns the name of a parked VETH end. Both ends are created together, but
// their values come and go separately. An end without its value is parked in the agent's
// own namespace under this name.
//
//	          first end desired       second end desired
//	(no pair) ---------------> parked ------------------> configured
//	   ^   \                   |   ^                         |
//	   |    `-- other end -----'   `------ deleted ----------'
//	   '-- deleted while the other end is parked --'
func tempName(name string) string { return hash("veth-", name) }

// otherEnd returns the value of the peer, as far as needed to identify its link.
func otherEnd(v *interfaces.Interface) *interfaces.Interface {
	return &interfaces.Interface{
		Name: v.GetVeth().GetPeerIfName(), Type: interfaces.Interface_VETH,
		Link: &interfaces.Interface_Veth{Veth: &interfaces.VethLink{PeerIfName: v.GetName()}},
	}
}

// ensureVETH takes the parked end or creates the pair.
func (h *handler) ensureVETH(space *netns.Space, v *interfaces.Interface) (kernel.Link, error) {
	own, err := h.Spaces.Own()
	if err != nil {
		return kernel.Link{}, err
	}
	defer own.Close()
	if space.ID != own.ID {
		if l, err := h.waitingEnd(space, v); err == nil { // moved by an earlier attempt
			return h.adopt(space, l, v, h.aliasOf(v, ""))
		}
	}
	l, err := h.endOfPair(own, space, v)
	if err != nil {
		return l, err
	}
	return h.adopt(space, l, v, h.aliasOf(v, ""))
}

// waitingEnd finds a parked end of v. The error is ENODEV if there is none.
func (h *handler) waitingEnd(space *netns.Space, v *interfaces.Interface) (kernel.Link, error) {
	l, err := space.LinkByName(tempName(v.GetName()))
	if err == nil && (l.Kind != "veth" || l.Alias != "" && !h.is(space, l, v)) {
		return l, h.conflict(space, l.Name, l, v)
	}
	return l, err
}

// endOfPair moves the parked end of v to its namespace, or creates the pair. The mutex
// prevents that the verbs of both ends create a pair each.
func (h *handler) endOfPair(own, space *netns.Space, v *interfaces.Interface) (kernel.Link, error) {
	defer h.pairs.Hold(pairOf(v))()
	l, err := h.waitingEnd(own, v)
	switch {
	case err == nil:
		return h.move(own, space, l)
	case !errors.Is(err, unix.ENODEV):
		return l, err
	}
	if err := h.dropLost(own, v); err != nil {
		return l, err
	}
	return h.makePair(own, space, v)
}

// dropLost removes a peer of which the other end, that of v, is missing. Such a pair
// remains if a program moved one end, or if the namespace of one end lost its name.
func (h *handler) dropLost(own *netns.Space, v *interfaces.Interface) error {
	other := otherEnd(v)
	if l, err := h.waitingEnd(own, other); err == nil {
		return own.DelLink(l.Index)
	}
	meta, ok := h.index.Get(other.GetName())
	if !ok {
		return nil
	}
	space, ok := h.Spaces.ByID(meta.NS)
	if !ok {
		return nil
	}
	defer space.Close()
	l, err := space.LinkByIndex(meta.Index)
	switch {
	case errors.Is(err, unix.ENODEV) || err == nil && !h.is(space, l, other):
		return nil
	case err != nil:
		return err
	}
	return space.DelLink(l.Index)
}

// makePair creates both ends under temporary names, and marks both. The end of v is created
// in its namespace: to move it there takes the kernel some 20 ms, in which it waits for all
// readers of its network (RCU), and nothing else may change the network.
func (h *handler) makePair(own, space *netns.Space, v *interfaces.Interface) (kernel.Link, error) {
	other := otherEnd(v)
	name, otherName := tempName(v.GetName()), tempName(other.GetName())
	if err := space.AddVETH(kernel.Link{Name: name, Group: h.unfinished()}, otherName, own.Kernel); err != nil {
		if errors.Is(err, unix.EEXIST) {
			return kernel.Link{}, fmt.Errorf("cannot create a VETH pair with the temporary names %s and %s: %w: %w", name, otherName, ErrConflict, err)
		}
		return kernel.Link{}, kernel.Refused(lacks("veth", err))
	}
	l, err := h.markEnd(space, v)
	if err == nil {
		_, err = h.markEnd(own, other)
	}
	if err == nil {
		err = finish(space, l)
	}
	if err != nil { // the next attempt would take the ends as they are
		return l, errors.Join(err, space.DelLink(l.Index))
	}
	return l, nil
}

// markEnd marks an end of a new pair, which still has its temporary name, as one of v.
func (h *handler) markEnd(in *netns.Space, v *interfaces.Interface) (kernel.Link, error) {
	l, err := in.LinkByName(tempName(v.GetName()))
	if err != nil {
		return l, err
	}
	l.Alias = h.aliasOf(v, "")
	l.Owner = h.Installation
	return l, h.setAlias(in, l.Index, l.Alias)
}

// restoreVETH parks an end again, or removes the pair if the other end is parked.
func (h *handler) restoreVETH(space *netns.Space, l kernel.Link, v *interfaces.Interface) error {
	defer h.pairs.Hold(pairOf(v))()
	own, err := h.Spaces.Own()
	if err != nil {
		return err
	}
	defer own.Close()
	if _, err := h.waitingEnd(own, otherEnd(v)); err == nil {
		return space.DelLink(l.Index)
	}
	if l.Up {
		if err := space.SetUp(l.Index, false); err != nil {
			return err
		}
		l.Up = false
	}
	if err := h.rename(space, l, tempName(v.GetName())); err != nil {
		return err
	}
	l.Name = tempName(v.GetName())
	_, err = h.move(space, own, l)
	return err
}

// A pair is the names of both ends of a VETH, the same for both.
type pair [2]string

func pairOf(v *interfaces.Interface) pair {
	a, b := v.GetName(), otherEnd(v).GetName()
	return pair{min(a, b), max(a, b)}
}
