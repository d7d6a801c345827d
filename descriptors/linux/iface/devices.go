package iface

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// bringLoopback marks the loopback as ours. It has one owner at a time.
func (h *handler) bringLoopback(space *netns.Space, v *interfaces.Interface) (kernel.Link, error) {
	l, err := space.LinkByName(loopback)
	if err != nil {
		return l, err
	}
	if l.Alias != "" && l.Alias != unconfigured && !h.is(space, l, v) {
		return l, scheduler.Terminal(fmt.Errorf("the loopback of %s: %w by whoever gave it the alias %q: expected one LOOPBACK for each namespace",
			netns.Text(v.GetNamespace()), ErrInTheWay, l.Alias))
	}
	return h.adopt(space, l, v, h.aliasOf(v, ""))
}

// returnLoopback takes back the mark, and an MTU that v asked for.
func returnLoopback(space *netns.Space, l kernel.Link, v *interfaces.Interface) error {
	if v.GetMtu() != 0 && l.MTU != loopbackMTU {
		if err := space.SetMTU(l.Index, loopbackMTU); err != nil {
			return err
		}
	}
	return space.SetAlias(l.Index, unconfigured)
}

// bringDevice makes a link that is there for itself: a DUMMY or VRF_DEVICE.
func (h *handler) bringDevice(space *netns.Space, v *interfaces.Interface) (kernel.Link, error) {
	want := kernel.Link{Name: hostName(v), Kind: "dummy"}
	if v.GetType() == interfaces.Interface_VRF_DEVICE {
		want.Kind, want.Table = "vrf", v.GetVrfDev().GetRoutingTable()
	}
	if err := space.AddLink(want, ""); err != nil {
		return kernel.Link{}, lacks(want.Kind, err)
	}
	l, err := space.LinkByName(want.Name)
	if err == nil {
		l, err = h.adopt(space, l, v, h.aliasOf(v, ""))
	}
	if err == nil && want.Kind == "vrf" { // servers outside the VRF answer connections from inside
		err = space.Sysctl("ipv4/tcp_l3mdev_accept", "1")
	}
	if err != nil { // without our mark it would be in our own way
		return l, errors.Join(err, space.DelLink(l.Index))
	}
	return l, nil
}

// lacks says which part of the kernel is missing, if that is why a link of this
// kind cannot be made.
func lacks(kind string, err error) error {
	if !errors.Is(err, unix.EOPNOTSUPP) {
		return err
	}
	option := map[string]string{"veth": "CONFIG_VETH", "dummy": "CONFIG_DUMMY", "vrf": "CONFIG_NET_VRF"}[kind]
	return scheduler.Terminal(fmt.Errorf("this kernel has no %s interfaces: expected %s, with: modprobe %s: %w", kind, option, kind, err))
}

// bringTAP fetches the host side of a TAP of VPP from the agent's own namespace.
// The name it had there is kept in its alias.
func (h *handler) bringTAP(space *netns.Space, v *interfaces.Interface) (kernel.Link, error) {
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
		return h.adopt(space, l, v, l.Alias)
	}
	if l, err = own.LinkByName(host); err != nil {
		return l, fmt.Errorf("host side of %s, a TAP of VPP: %w", v.GetTap().GetVppTapIfName(), err)
	}
	if l.Kind != "tun" || strings.HasPrefix(l.Alias, agentMark) && !h.is(own, l, v) {
		return l, h.inTheWay(own, l, v)
	}
	alias := h.aliasOf(v, l.Name)
	if err := h.setAlias(own, l.Index, alias); err != nil {
		return l, err
	}
	if l, err = move(own, space, l); err != nil {
		return l, err
	}
	return h.adopt(space, l, v, alias)
}

// movedTAP finds a TAP that an earlier try has moved, and not renamed.
func (h *handler) movedTAP(space *netns.Space, host string, v *interfaces.Interface) (kernel.Link, error) {
	l, err := space.LinkByName(host)
	if err == nil && !h.is(space, l, v) {
		err = fmt.Errorf("link %s: %w", host, unix.ENODEV)
	}
	return l, err
}

// returnTAP takes the host side of a TAP back where it was found.
func (h *handler) returnTAP(space *netns.Space, l kernel.Link) error {
	own, err := h.Spaces.Own()
	if err != nil {
		return err
	}
	defer own.Close()
	if err := errors.Join(space.SetUp(l.Index, false), h.rename(space, kernel.Link{Index: l.Index, Name: l.Name}, original(l))); err != nil {
		return err
	}
	l.Name = original(l)
	if l, err = move(space, own, l); err != nil {
		return err
	}
	return own.SetAlias(l.Index, unconfigured)
}

// move takes a link to another namespace, unless it is there.
func move(from, to *netns.Space, l kernel.Link) (kernel.Link, error) {
	if from.ID == to.ID {
		return l, nil
	}
	if err := from.Move(l.Index, to.Kernel); err != nil {
		return l, err
	}
	return to.LinkByName(l.Name)
}
