package iface

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/descriptors/linux/internal/drift"
	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// tries is the number of attempts of Create if a link vanishes meanwhile.
const tries = 3

// create finds or creates the link, configures it, and records it for drift detection.
func (h *handler) create(_ context.Context, key string, v *interfaces.Interface) (meta Meta, err error) {
	space, err := h.Spaces.Enter(v.GetNamespace())
	if err != nil {
		return Meta{}, err
	}
	defer space.Close()
	defer h.Watch.Announce(space)()
	for range tries {
		var l kernel.Link
		l, err = h.ensure(space, v)
		if err == nil {
			l, err = h.configure(space, l, v)
		}
		if err == nil {
			return h.created(space, key, l, v), nil
		}
		h.letGo(linkID{space.ID, l.Index}, v)
		if !errors.Is(err, unix.ENODEV) {
			break
		}
	}
	return Meta{}, err
}

// ensure finds or creates the link of v, in its namespace, with its name and our mark.
func (h *handler) ensure(space *netns.Space, v *interfaces.Interface) (kernel.Link, error) {
	if !sharedType(v.GetType()) {
		return h.findOrCreate(space, v)
	}
	l, err := space.LinkByName(hostName(v))
	if err == nil {
		err = h.hold(space, l, v)
	}
	if err == nil && v.GetType() == interfaces.Interface_LOOPBACK {
		return h.ensureLoopback(space, l, v)
	}
	return l, err
}

// findOrCreate is ensure for the types of which the agent creates the link.
func (h *handler) findOrCreate(space *netns.Space, v *interfaces.Interface) (kernel.Link, error) {
	l, found, err := h.find(space, v)
	if found && l.Name != hostName(v) { // somebody has made the name an alternative one
		return h.adopt(space, l, v, h.known(space, l).Alias)
	}
	if found || err != nil {
		return l, err
	}
	switch v.GetType() {
	case interfaces.Interface_VETH:
		return h.ensureVETH(space, v)
	case interfaces.Interface_TAP_TO_VPP:
		return h.ensureTAP(space, v)
	default:
		return h.ensureDevice(space, v)
	}
}

// find finds the link of v in its namespace. It fails if a link of another owner has the
// name, unless that link is the TAP that v is about to adopt.
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
		return kernel.Link{}, false, h.conflict(space, hostName(v), l, v)
	}
	return l, true, nil
}

// adoptable reports whether a link is the host side of the TAP that v names, where VPP has
// created it. It may already have the name that v requires.
func (h *handler) adoptable(space *netns.Space, l kernel.Link, v *interfaces.Interface) bool {
	if v.GetType() != interfaces.Interface_TAP_TO_VPP || l.Kind != "tun" || strings.HasPrefix(l.Alias, agentMark) || !l.Has(h.TAPHost(v.GetTap().GetVppTapIfName())) {
		return false
	}
	return h.isOwn(space)
}

// conflict returns an error that names the owner of a link with the required name.
func (h *handler) conflict(space *netns.Space, name string, l kernel.Link, v *interfaces.Interface) error {
	remedy := "remove or rename that link"
	if l.Name != name {
		remedy = fmt.Sprintf("it is an alternative name of link %s: remove it there", l.Name)
	}
	return fmt.Errorf("host name %s in %s: %w by %s (index %d, kind %q, alias %q): %s, or set another host_if_name",
		name, netns.Text(v.GetNamespace()), ErrConflict, h.ownerOf(space, l), l.Index, l.Kind, l.Alias, remedy)
}

// adopt sets the mark and name of v. The mark comes first: if the agent stops in between,
// Retrieve still finds the link.
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

// rename sets the name. Kernels before 6.2 require the link to be down meanwhile, which
// drops its addresses and routes; Flushed reports that.
func (h *handler) rename(space *netns.Space, l kernel.Link, name string) error {
	if l.Name == name {
		return nil
	}
	if slices.Contains(l.Others, name) {
		if err := space.DelOther(l.Index, name); err != nil {
			return err
		}
	}
	err := space.SetName(l.Index, name)
	if errors.Is(err, unix.EBUSY) && l.Up {
		defer h.Flushed()
		err = errors.Join(space.SetUp(l.Index, false), space.SetName(l.Index, name), space.SetUp(l.Index, true))
	}
	if errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("%w: %w: remove or rename that link, or set another host_if_name", ErrConflict, err)
	}
	return err
}

// configure applies the settings of v that differ. It does not touch other settings, since
// some drivers reset the link for each write.
func (h *handler) configure(space *netns.Space, l kernel.Link, v *interfaces.Interface) (kernel.Link, error) {
	if v.GetType() == interfaces.Interface_EXISTING {
		return l, nil
	}
	if want := mtu(v); l.MTU != want && setsMTU(v) {
		if err := h.setMTU(space, l, want); err != nil {
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

// setMTU sets the MTU, unless others would lose by it.
func (h *handler) setMTU(space *netns.Space, l kernel.Link, mtu int) error {
	if err := h.keepsIPv6(space, l, mtu); err != nil {
		return err
	}
	err := space.SetMTU(l.Index, mtu)
	if errors.Is(err, unix.EINVAL) {
		return scheduler.Terminal(fmt.Errorf("the driver of link %s does not accept mtu %d: %w", l.Name, mtu, err))
	}
	return err
}

// keepsIPv6 refuses an MTU with which the kernel would remove IPv6 from a link that has addresses of others.
func (h *handler) keepsIPv6(space *netns.Space, l kernel.Link, mtu int) error {
	if mtu >= kernel.MinMTUIPv6 {
		return nil
	}
	addrs, err := space.Addrs(l.Index)
	if err != nil {
		return err
	}
	var theirs []string
	for _, a := range addrs {
		ours := a.Protocol == kernel.Protocol || h.marks.madeFor(linkID{space.ID, l.Index}, a.Prefix) != ""
		if ip := a.Prefix.Addr(); ip.Is6() && !ip.IsLinkLocalUnicast() && !ours { // the kernel makes link-local ones again
			theirs = append(theirs, a.Prefix.String())
		}
	}
	if len(theirs) == 0 {
		return nil
	}
	return fmt.Errorf("mtu %d would remove IPv6 from link %s, which has addresses of others: %s; with them it is at least %d",
		mtu, l.Name, strings.Join(theirs, ", "), kernel.MinMTUIPv6)
}

// setsDown is false for a loopback: all programs in its namespace use it.
func setsDown(v *interfaces.Interface) bool { return v.GetType() != interfaces.Interface_LOOPBACK }

// setsMTU is false for a VRF device without an MTU in v: the driver's default stays.
func setsMTU(v *interfaces.Interface) bool {
	return v.GetMtu() != 0 || v.GetType() != interfaces.Interface_VRF_DEVICE
}

// macOf returns the MAC address of v, and whether the agent sets it.
func macOf(v *interfaces.Interface) (net.HardwareAddr, bool) {
	if v.GetLinkOnly() || v.GetPhysAddress() == "" {
		return nil, false
	}
	mac, err := net.ParseMAC(v.GetPhysAddress())
	return mac, err == nil
}

// setOffload sets the checksum offload by ethtool, if it differs.
func setOffload(space *netns.Space, l kernel.Link, veth *interfaces.VethLink) error {
	want := offloadOf(veth)
	if have, err := space.Offload(l.Name); err != nil || have == want {
		return err
	}
	return space.SetOffload(l.Name, want)
}

func offloadOf(veth *interfaces.VethLink) kernel.Offload {
	return kernel.Offload{RX: offloads(veth.GetRxChecksumOffloading()), TX: offloads(veth.GetTxChecksumOffloading())}
}

// created records the interface for drift detection, and returns its metadata. EXISTING
// interfaces are not recorded: package hostnames reports their removal.
func (h *handler) created(space *netns.Space, key string, l kernel.Link, v *interfaces.Interface) Meta {
	if v.GetType() != interfaces.Interface_EXISTING {
		if v.GetType() == interfaces.Interface_LOOPBACK {
			l.Alias = h.aliasOf(v, "")
		} else {
			l = h.known(space, l) // somebody may have overwritten it just now
		}
		h.marks.put(linkID{space.ID, l.Index}, l.Alias, l.MAC.String())
		h.Watch.Created(space, drift.Interface(space.ID, l.Index), h.entryOf(key, l, v), 0)
	}
	return metaOf(space, l, v)
}

// entryOf returns the attributes that the verbs set, for drift detection. They are the declared ones: l was read some
// time after they were set, and somebody may have changed them in between.
func (h *handler) entryOf(key string, l kernel.Link, v *interfaces.Interface) drift.Entry {
	e := drift.Entry{Key: key, Link: l.Index, Name: hostName(v)}
	if v.GetType() != interfaces.Interface_LOOPBACK {
		e.Alias = kernel.JoinAlias(l.Alias, h.Installation)
	}
	if v.GetEnabled() || setsDown(v) {
		e.State = drift.StateOf(v.GetEnabled())
	}
	if setsMTU(v) {
		e.MTU = mtu(v)
	}
	if mac, set := macOf(v); set {
		e.MAC = mac.String()
	}
	if veth := v.GetVeth(); veth != nil {
		offload := offloadOf(veth)
		e.Offload = &offload
	}
	return e
}

// metaOf returns the metadata of a link: Delete and other descriptors need nothing else.
func metaOf(space *netns.Space, l kernel.Link, v *interfaces.Interface) Meta {
	return Meta{
		Index: l.Index, HostName: l.Name, Namespace: v.GetNamespace(), NS: space.ID,
		Existing: v.GetType() == interfaces.Interface_EXISTING,
		TAP:      v.GetTap().GetVppTapIfName(), Table: v.GetVrfDev().GetRoutingTable(),
	}
}

// update changes the link in place. The link leaves the drift record first, so that our
// own changes are not reported.
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
	if v.GetType() != interfaces.Interface_EXISTING && v.GetType() != interfaces.Interface_LOOPBACK {
		alias := h.known(space, l).Alias
		if !h.is(space, l, v) {
			alias = h.aliasOf(v, l.Name)
		}
		l, err = h.adopt(space, l, v, alias)
		if err != nil {
			return Meta{}, err
		}
	}
	l, err = h.configure(space, l, v)
	if err != nil {
		return Meta{}, err
	}
	meta = h.created(space, key, l, v)
	defer h.orders.Hold(linkID{meta.NS, meta.Index})()
	h.edits.put(v)
	return meta, h.inOrder(space, meta, v)
}

// delete releases the link. It leaves a link alone that another agent has marked
// meanwhile.
func (h *handler) delete(_ context.Context, _ string, v *interfaces.Interface, meta Meta) error {
	h.Watch.Forget(drift.Interface(meta.NS, meta.Index))
	h.edits.drop(v.GetName())
	defer h.letGo(linkID{meta.NS, meta.Index}, v)
	space, ok := h.Spaces.ByID(meta.NS)
	if !ok { // the link vanished with its namespace
		h.marks.gone(meta.NS, 0)
		return nil
	}
	defer space.Close()
	l, err := space.LinkByIndex(meta.Index)
	if err == nil && v.GetType() != interfaces.Interface_EXISTING && h.ours(space, l, true) {
		l = h.known(space, l)
		err = h.release(space, l, v)
	}
	if err == nil {
		h.marks.drop(linkID{meta.NS, meta.Index})
	}
	if errors.Is(err, unix.ENODEV) {
		return nil
	}
	return err
}

// release reverts ensure: it deletes the link, or restores it for its other users.
func (h *handler) release(space *netns.Space, l kernel.Link, v *interfaces.Interface) error {
	// What only has a copy of our mark must not get into the agent's own namespace.
	switch made := h.hasMade(space, l); {
	case made:
	case v.GetType() == interfaces.Interface_VETH:
		return space.DelLink(l.Index)
	case v.GetType() == interfaces.Interface_TAP_TO_VPP && !h.Watch.MovedAway(keyOf(v.GetName())):
		return h.unmark(space, l.Index)
	}
	// The mark goes with a link that is parked or given back. Somebody may have overwritten it.
	if l.Name != loopback {
		if err := h.setAlias(space, l.Index, l.Alias); err != nil {
			return err
		}
	}
	switch {
	case v.GetType() == interfaces.Interface_LOOPBACK:
		return restoreLoopback(space, l, v)
	case v.GetType() == interfaces.Interface_TAP_TO_VPP:
		return h.restoreTAP(space, l, v)
	case v.GetType() == interfaces.Interface_VETH && !leftover(v):
		return h.restoreVETH(space, l, v)
	}
	return space.DelLink(l.Index)
}

// leftover reports whether a value has a name that only Retrieve gives, for links to
// remove.
func leftover(v *interfaces.Interface) bool {
	return strings.HasSuffix(v.GetName(), missingPeer) || strings.Contains(v.GetName(), duplicate)
}
