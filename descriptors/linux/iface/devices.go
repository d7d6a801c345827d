package iface

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// ensureLoopback removes the mark that earlier releases gave a loopback. All programs of its namespace use it: it gets none,
// and the alias that somebody has given it stays.
func (h *handler) ensureLoopback(space *netns.Space, l kernel.Link, v *interfaces.Interface) (_ kernel.Link, err error) {
	if strings.HasPrefix(l.Alias, h.mark()) || l.Alias == unconfigured {
		err = space.SetAlias(l.Index, "")
	}
	l.Alias = h.aliasOf(v, "")
	return l, err
}

// restoreLoopback removes an MTU that v has set.
func restoreLoopback(space *netns.Space, l kernel.Link, v *interfaces.Interface) error {
	if v.GetMtu() != 0 && l.MTU != loopbackMTU {
		return space.SetMTU(l.Index, loopbackMTU)
	}
	return nil
}

// ensureDevice creates a DUMMY or VRF_DEVICE.
func (h *handler) ensureDevice(space *netns.Space, v *interfaces.Interface) (kernel.Link, error) {
	want := kernel.Link{Name: hostName(v), Kind: "dummy", Group: h.unfinished()}
	if v.GetType() == interfaces.Interface_VRF_DEVICE {
		want.Kind, want.Table = "vrf", v.GetVrfDev().GetRoutingTable()
	}
	if err := space.AddLink(want); err != nil {
		return kernel.Link{}, kernel.Refused(lacks(want.Kind, err))
	}
	l, err := space.LinkByName(want.Name)
	if err == nil {
		if l, err = h.adopt(space, l, v, h.aliasOf(v, "")); err == nil {
			err = finish(space, l)
		}
	}
	if err == nil && want.Kind == "vrf" { // sockets outside the VRF accept connections from inside
		err = space.Sysctl("ipv4/tcp_l3mdev_accept", "1")
	}
	if err != nil { // an unmarked link would block the next attempt
		return l, errors.Join(err, space.DelLink(l.Index))
	}
	return l, nil
}

// lacks explains an EOPNOTSUPP: the kernel has no links of this kind. Such an error is
// terminal, since a retry cannot succeed. It names no link, so thousands of values share one text.
func lacks(kind string, err error) error {
	if !errors.Is(err, unix.EOPNOTSUPP) {
		return err
	}
	option := strings.ToUpper(strings.Replace(kind, "vrf", "net_vrf", 1))
	return scheduler.Terminal(fmt.Errorf("this kernel has no %s interfaces: it needs CONFIG_%s; try modprobe %[1]s: %[3]w", kind, option, unix.EOPNOTSUPP))
}

// ensureTAP moves the host side of a VPP TAP from the agent's own namespace. The alias
// keeps the original name, so that restoreTAP can restore it.
func (h *handler) ensureTAP(space *netns.Space, v *interfaces.Interface) (kernel.Link, error) {
	own, err := h.Spaces.Own()
	if err != nil {
		return kernel.Link{}, err
	}
	defer own.Close()
	host := h.TAPHost(v.GetTap().GetVppTapIfName())
	if host == "" {
		return kernel.Link{}, fmt.Errorf("VPP has no TAP %s: %w", v.GetTap().GetVppTapIfName(), unix.ENODEV)
	}
	l, err := h.movedTAP(space, host, v)
	if err == nil {
		return h.adopt(space, l, v, h.known(space, l).Alias)
	}
	// Not moved yet: it is still where VPP has made it.
	l, err = own.LinkByName(host)
	if errors.Is(err, unix.ENODEV) {
		return h.strayTAP(space, v)
	}
	if err != nil {
		return l, fmt.Errorf("host side of %s, a TAP of VPP: %w", v.GetTap().GetVppTapIfName(), err)
	}
	if l.Kind != "tun" || strings.HasPrefix(l.Alias, agentMark) && !h.is(own, l, v) {
		return l, h.conflict(own, host, l, v)
	}
	alias := h.aliasOf(v, l.Name)
	// Before the move, so that a link that is moved and not renamed yet is found again.
	if err := h.setAlias(own, l.Index, alias); err != nil {
		return l, err
	}
	l, err = h.move(own, space, l)
	if err != nil {
		return l, err
	}
	return h.adopt(space, l, v, alias)
}

// strayTAP moves a TAP back that another program has moved to a namespace which the agent can see, as Retrieve finds it
// there, too. A mark alone is no proof, see trust. If it is in none of them, it was deleted, perhaps with its namespace,
// unless the kernel has said that it was moved: then a new TAP would leave the other program with a dead link.
func (h *handler) strayTAP(space *netns.Space, v *interfaces.Interface) (kernel.Link, error) {
	moved := h.Watch.MovedAway(keyOf(v.GetName()))
	places, err := h.Spaces.Places(nil)
	if err != nil {
		return kernel.Link{}, err
	}
	defer places.Close()
	for _, p := range places {
		links, err := p.Links()
		if err != nil {
			return kernel.Link{}, err
		}
		i := slices.IndexFunc(links, func(l kernel.Link) bool {
			return l.Kind == "tun" && h.is(p.Space, l, v) && (moved || h.hasMade(p.Space, l))
		})
		if i < 0 {
			continue
		}
		alias := h.known(p.Space, links[i]).Alias
		l, err := h.move(p.Space, space, links[i])
		if err != nil {
			return l, err
		}
		return h.adopt(space, l, v, alias)
	}
	err = fmt.Errorf("host side of %s, a TAP of VPP: %w", v.GetTap().GetVppTapIfName(), unix.ENODEV)
	if moved {
		return kernel.Link{}, fmt.Errorf("another program has moved it to a namespace that the agent does not see; move it back: %w", err)
	}
	return kernel.Link{}, scheduler.NeedsNew(vppTAP(v), err)
}

// movedTAP finds a TAP that an earlier attempt has moved but not renamed.
func (h *handler) movedTAP(space *netns.Space, host string, v *interfaces.Interface) (kernel.Link, error) {
	l, err := space.LinkByName(host)
	if err == nil && !h.is(space, l, v) {
		err = fmt.Errorf("link %s: %w", host, unix.ENODEV)
	}
	return l, err
}

// restoreTAP moves the host side of a TAP back to the own namespace, under the name that VPP has for it, and removes an
// MTU that v has set. The name in its alias counts only while VPP does not answer, since anybody may have written it.
func (h *handler) restoreTAP(space *netns.Space, l kernel.Link, v *interfaces.Interface) error {
	own, err := h.Spaces.Own()
	if err != nil {
		return err
	}
	defer own.Close()
	name := cmp.Or(h.TAPHost(v.GetTap().GetVppTapIfName()), original(l))
	if v.GetMtu() != 0 && l.MTU != defaultMTU {
		if err := space.SetMTU(l.Index, defaultMTU); err != nil {
			return err
		}
	}
	if err := errors.Join(space.SetUp(l.Index, false), h.rename(space, kernel.Link{Index: l.Index, Name: l.Name, Others: l.Others}, name)); err != nil {
		return err
	}
	l.Name = name
	l, err = h.move(space, own, l)
	if err != nil {
		return err
	}
	return h.unmark(own, l.Index)
}

// move moves a link to another namespace. It does nothing if the link is there already. What is known about the link
// goes: any link may get its index there. So do its alternative names, also those that it gets meanwhile: whoever is root
// where it was could give it names that others wait for where it comes to, or keep it by one that is taken there.
func (h *handler) move(from, to *netns.Space, l kernel.Link) (kernel.Link, error) {
	if from.ID == to.ID {
		return l, nil
	}
	if len(l.Others) > 0 {
		if err := dropOthers(from, l.Index); err != nil {
			return l, err
		}
	}
	if err := from.Move(l.Index, to.Kernel); err != nil {
		return l, err
	}
	h.marks.drop(linkID{from.ID, l.Index})
	moved, err := to.LinkByName(l.Name)
	if err == nil && len(moved.Others) > 0 {
		moved.Others, err = nil, dropOthers(to, moved.Index)
	}
	return moved, err
}

// dropOthers removes the alternative names that a link has now.
func dropOthers(space *netns.Space, index int) error {
	l, err := space.LinkByIndex(index)
	for _, name := range l.Others {
		err = errors.Join(err, space.DelOther(index, name))
	}
	return err
}
