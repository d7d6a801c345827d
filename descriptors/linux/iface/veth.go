package iface

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
)

// An end of a VETH pair that is not configured waits for that, or for the end of
// the other one, in the agent's own namespace under the name that tempName makes.
//
//	          first end wanted        second end wanted
//	(nothing) ---------------> waits ------------------> configured
//	   ^   \                   |   ^                         |
//	   |    `-- other end -----'   `------ unwanted ---------'
//	   '-- unwanted, and the other end waits --'
func tempName(name string) string { return hash("veth-", name) }

// end is the value of the other end, as far as its link can be known by it.
func otherEnd(v *interfaces.Interface) *interfaces.Interface {
	return &interfaces.Interface{
		Name: v.GetVeth().GetPeerIfName(), Type: interfaces.Interface_VETH,
		Link: &interfaces.Interface_Veth{Veth: &interfaces.VethLink{PeerIfName: v.GetName()}},
	}
}

// bringVETH takes the end that waits, or makes the pair, and moves the end where
// it is wanted.
func (h *handler) bringVETH(space *netns.Space, v *interfaces.Interface) (kernel.Link, error) {
	own, err := h.Spaces.Own()
	if err != nil {
		return kernel.Link{}, err
	}
	defer own.Close()
	if space.ID != own.ID {
		if l, err := h.waitingEnd(space, v); err == nil { // moved by an earlier try
			return h.adopt(space, l, v, h.aliasOf(v, ""))
		}
	}
	l, err := h.endOfPair(own, v)
	if err != nil {
		return l, err
	}
	if l, err = move(own, space, l); err != nil {
		return l, err
	}
	return h.adopt(space, l, v, h.aliasOf(v, ""))
}

// waitingEnd finds an end of v's under its temporary name. The error is ENODEV
// where there is none.
func (h *handler) waitingEnd(space *netns.Space, v *interfaces.Interface) (kernel.Link, error) {
	l, err := space.LinkByName(tempName(v.GetName()))
	if err == nil && (l.Kind != "veth" || l.Alias != "" && !h.is(space, l, v)) {
		return l, h.inTheWay(space, l, v)
	}
	return l, err
}

func (h *handler) endOfPair(own *netns.Space, v *interfaces.Interface) (kernel.Link, error) {
	h.pairs.Lock()
	defer h.pairs.Unlock()
	l, err := h.waitingEnd(own, v)
	if !errors.Is(err, unix.ENODEV) {
		return l, err
	}
	if err := h.dropLost(own, v); err != nil {
		return l, err
	}
	return h.makePair(own, v)
}

// dropLost removes an end whose other one, v's, is nowhere to be found: what is
// left of a pair that somebody moved, or of one whose namespace has no name any
// more.
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

func (h *handler) makePair(own *netns.Space, v *interfaces.Interface) (kernel.Link, error) {
	other := otherEnd(v)
	name, otherName := tempName(v.GetName()), tempName(other.GetName())
	if err := own.AddLink(kernel.Link{Name: name, Kind: "veth"}, otherName); err != nil {
		if errors.Is(err, unix.EEXIST) {
			return kernel.Link{}, fmt.Errorf("a VETH pair with temporary names %s and %s: %w: %w", name, otherName, ErrInTheWay, err)
		}
		return kernel.Link{}, lacks("veth", err)
	}
	l, err := h.markEnd(own, v)
	if err != nil {
		return l, err
	}
	_, err = h.markEnd(own, other)
	return l, err
}

func (h *handler) markEnd(own *netns.Space, v *interfaces.Interface) (kernel.Link, error) {
	l, err := own.LinkByName(tempName(v.GetName()))
	if err != nil {
		return l, err
	}
	l.Alias = h.aliasOf(v, "")
	l.Owner = h.Installation
	return l, h.setAlias(own, l.Index, l.Alias)
}

// returnVETH has an end wait again, or removes the pair if the other one waits.
func (h *handler) returnVETH(space *netns.Space, l kernel.Link, v *interfaces.Interface) error {
	h.pairs.Lock()
	defer h.pairs.Unlock()
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
	_, err = move(space, own, l)
	return err
}
