package iface

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/descriptors/linux/internal/drift"
	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// tries is how often a verb starts over when a link vanishes under its hands,
// such as one that somebody is just removing.
const tries = 3

func (h *handler) create(_ context.Context, key string, v *interfaces.Interface) (meta Meta, err error) {
	space, err := h.Spaces.Open(v.GetNamespace())
	if err != nil {
		return Meta{}, err
	}
	defer space.Close()
	h.Watch.Announce(space)
	for range tries {
		var l kernel.Link
		if l, err = h.bring(space, v); err == nil {
			l, err = h.configure(space, l, v)
		}
		if err == nil {
			return h.made(space, key, l, v), nil
		}
		if !errors.Is(err, unix.ENODEV) {
			break
		}
	}
	return Meta{}, err
}

// bring finds or makes the link of v, in its namespace, under its name and with
// our mark.
func (h *handler) bring(space *netns.Space, v *interfaces.Interface) (kernel.Link, error) {
	switch v.GetType() {
	case interfaces.Interface_LOOPBACK:
		return h.bringLoopback(space, v)
	case interfaces.Interface_EXISTING:
		return space.LinkByName(hostName(v))
	}
	l, found, err := h.find(space, v)
	if found || err != nil {
		return l, err
	}
	switch v.GetType() {
	case interfaces.Interface_VETH:
		return h.bringVETH(space, v)
	case interfaces.Interface_TAP_TO_VPP:
		return h.bringTAP(space, v)
	default:
		return h.bringDevice(space, v)
	}
}

// find looks for the link of v in its namespace. It is an error if a link that
// is not its has its name, unless that is the TAP that v is about to adopt.
func (h *handler) find(space *netns.Space, v *interfaces.Interface) (l kernel.Link, found bool, err error) {
	l, err = space.LinkByName(hostName(v))
	switch {
	case errors.Is(err, unix.ENODEV):
		return kernel.Link{}, false, nil
	case err != nil:
		return kernel.Link{}, false, err
	case !h.is(space, l, v) && h.adoptable(space, l, v):
		return kernel.Link{}, false, nil
	case !h.is(space, l, v):
		return kernel.Link{}, false, h.inTheWay(space, l, v)
	}
	return l, true, nil
}

// adoptable says that a link is the host side of the TAP that v names, still where VPP made it. It
// may already have the name that v gives it.
func (h *handler) adoptable(space *netns.Space, l kernel.Link, v *interfaces.Interface) bool {
	if v.GetType() != interfaces.Interface_TAP_TO_VPP || l.Kind != "tun" || strings.HasPrefix(l.Alias, agentMark) || l.Name != h.TAPHost(v.GetTap().GetVppTapIfName()) {
		return false
	}
	own, err := h.Spaces.Own()
	if err != nil {
		return false
	}
	defer own.Close()
	return own.ID == space.ID
}

// inTheWay says who has the name that v needs.
func (h *handler) inTheWay(space *netns.Space, l kernel.Link, v *interfaces.Interface) error {
	return fmt.Errorf("host name %s in %s: %w by %s (index %d, kind %q, alias %q): expected it removed or renamed, or another host_if_name",
		l.Name, netns.Text(v.GetNamespace()), ErrInTheWay, h.ownerOf(space, l), l.Index, l.Kind, l.Alias)
}

// adopt gives a link the name and mark of v.
func (h *handler) adopt(space *netns.Space, l kernel.Link, v *interfaces.Interface, alias string) (kernel.Link, error) {
	if l.Alias != alias || l.Owner != h.Installation {
		if err := h.setAlias(space, l.Index, alias); err != nil {
			return kernel.Link{}, err
		}
	}
	if err := h.rename(space, l, hostName(v)); err != nil {
		return kernel.Link{}, err
	}
	return space.LinkByIndex(l.Index)
}

// rename sets the name. Kernels before 6.2 want the link to be down meanwhile.
func (h *handler) rename(space *netns.Space, l kernel.Link, name string) error {
	if l.Name == name {
		return nil
	}
	err := space.SetName(l.Index, name)
	if errors.Is(err, unix.EBUSY) && l.Up {
		defer h.Flushed()
		err = errors.Join(space.SetUp(l.Index, false), space.SetName(l.Index, name), space.SetUp(l.Index, true))
	}
	if errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("%w: %w: expected it removed or renamed, or another host_if_name", ErrInTheWay, err)
	}
	return err
}

// configure brings the settings of a link in line with v. Only what differs is
// touched.
func (h *handler) configure(space *netns.Space, l kernel.Link, v *interfaces.Interface) (kernel.Link, error) {
	if v.GetType() == interfaces.Interface_EXISTING {
		return l, nil
	}
	if want := mtu(v); l.MTU != want && setsMTU(v) {
		err := space.SetMTU(l.Index, want)
		if errors.Is(err, unix.EINVAL) {
			err = scheduler.Terminal(fmt.Errorf("the driver of link %s does not accept mtu %d: %w", l.Name, want, err))
		}
		if err != nil {
			return l, err
		}
	}
	if mac, set := macOf(v); set && mac.String() != l.MAC.String() {
		if err := space.SetMAC(l.Index, mac); err != nil {
			return l, err
		}
	}
	if veth := v.GetVeth(); veth != nil {
		if err := setOffload(space, l, veth); err != nil {
			return l, err
		}
	}
	if l.Up != v.GetEnabled() && (v.GetEnabled() || setsDown(v)) {
		if err := space.SetUp(l.Index, v.GetEnabled()); err != nil {
			return l, err
		}
	}
	return space.LinkByIndex(l.Index)
}

// setsDown: a loopback serves all in its namespace, whoever set it up.
func setsDown(v *interfaces.Interface) bool { return v.GetType() != interfaces.Interface_LOOPBACK }

// setsMTU: without one in v, what the VRF driver has chosen stays.
func setsMTU(v *interfaces.Interface) bool {
	return v.GetMtu() != 0 || v.GetType() != interfaces.Interface_VRF_DEVICE
}

// macOf is the address that we set, if we do.
func macOf(v *interfaces.Interface) (net.HardwareAddr, bool) {
	if v.GetLinkOnly() || v.GetPhysAddress() == "" {
		return nil, false
	}
	mac, err := net.ParseMAC(v.GetPhysAddress())
	return mac, err == nil
}

func setOffload(space *netns.Space, l kernel.Link, veth *interfaces.VethLink) error {
	want := kernel.Offload{RX: offloads(veth.GetRxChecksumOffloading()), TX: offloads(veth.GetTxChecksumOffloading())}
	if have, err := space.Offload(l.Name); err != nil || have == want {
		return err
	}
	return space.SetOffload(l.Name, want)
}

// made notes that the interface stands, and returns what is known of it. Of an
// EXISTING one, HostNames tells when it goes.
func (h *handler) made(space *netns.Space, key string, l kernel.Link, v *interfaces.Interface) Meta {
	if v.GetType() != interfaces.Interface_EXISTING {
		h.Watch.Created(space, drift.Interface(space.ID, l.Index), entryOf(key, l, v))
	}
	return metaOf(space, l, v)
}

// entryOf is what the link should look like.
func entryOf(key string, l kernel.Link, v *interfaces.Interface) drift.Entry {
	e := drift.Entry{Key: key, Link: l.Index, Name: l.Name, Up: v.GetEnabled(), MTU: int(v.GetMtu())}
	if mac, set := macOf(v); set {
		e.MAC = mac.String()
	}
	return e
}

func metaOf(space *netns.Space, l kernel.Link, v *interfaces.Interface) Meta {
	return Meta{
		Index: l.Index, HostName: l.Name, Namespace: v.GetNamespace(), NS: space.ID,
		Existing: v.GetType() == interfaces.Interface_EXISTING,
		TAP:      v.GetTap().GetVppTapIfName(), Table: v.GetVrfDev().GetRoutingTable(),
	}
}

func (h *handler) update(_ context.Context, key string, _, v *interfaces.Interface, meta Meta) (Meta, error) {
	space, ok := h.Spaces.ByID(meta.NS)
	if !ok {
		return Meta{}, fmt.Errorf("%s: %w", netns.Text(v.GetNamespace()), netns.ErrNotFound)
	}
	defer space.Close()
	l, err := space.LinkByIndex(meta.Index)
	if err != nil {
		return Meta{}, err
	}
	h.Watch.Forget(drift.Interface(meta.NS, meta.Index))
	if v.GetType() != interfaces.Interface_EXISTING {
		alias := l.Alias
		if !h.is(space, l, v) {
			alias = h.aliasOf(v, l.Name)
		}
		if l, err = h.adopt(space, l, v, alias); err != nil {
			return Meta{}, err
		}
	}
	if l, err = h.configure(space, l, v); err != nil {
		return Meta{}, err
	}
	return h.made(space, key, l, v), nil
}

func (h *handler) delete(_ context.Context, _ string, v *interfaces.Interface, meta Meta) error {
	h.Watch.Forget(drift.Interface(meta.NS, meta.Index))
	space, ok := h.Spaces.ByID(meta.NS)
	if !ok {
		return nil // with the namespace went the link
	}
	defer space.Close()
	l, err := space.LinkByIndex(meta.Index)
	if err == nil && v.GetType() != interfaces.Interface_EXISTING && h.ours(space, l) {
		err = h.undo(space, l, v)
	}
	if errors.Is(err, unix.ENODEV) {
		return nil
	}
	return err
}

// undo takes back what bring did.
func (h *handler) undo(space *netns.Space, l kernel.Link, v *interfaces.Interface) error {
	switch {
	case v.GetType() == interfaces.Interface_LOOPBACK:
		return returnLoopback(space, l, v)
	case v.GetType() == interfaces.Interface_TAP_TO_VPP:
		return h.returnTAP(space, l)
	case v.GetType() == interfaces.Interface_VETH && !leftover(v):
		return h.returnVETH(space, l, v)
	}
	return space.DelLink(l.Index)
}

// leftover tells values that only Retrieve makes, for links that are to go.
func leftover(v *interfaces.Interface) bool {
	return strings.HasSuffix(v.GetName(), missingPeer) || strings.Contains(v.GetName(), duplicate)
}
