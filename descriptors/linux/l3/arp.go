package l3

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/linux/iface"
	"github.com/keyplane/keyplane/descriptors/linux/internal/drift"
	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/keys"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/internal/alloc"
	"github.com/keyplane/keyplane/internal/spelling"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/linux/l3"
	"github.com/keyplane/keyplane/scheduler"
)

// validateARP checks a neighbour. The address may be a reference.
func validateARP(_ string, v *l3.ARPEntry) error {
	var f faults
	if v.GetInterface() == "" {
		f.Add("interface", "", "the name of an interface")
	}
	ip := v.GetIpAddress()
	if ref, ok := alloc.Parse(ip); alloc.Is(ip) && (!ok || ref.Interface == "") {
		f.Add("ip_address", ip, `"alloc:NETWORK/INTERFACE" or "alloc:NETWORK/INTERFACE/GW"`)
	} else if !alloc.Is(ip) {
		if addr, err := netip.ParseAddr(ip); err != nil || addr.Zone() != "" {
			f.Add("ip_address", ip, `an address without prefix length, such as "10.1.0.2" or "fd00::2"`)
		}
	}
	if mac, err := net.ParseMAC(v.GetHwAddress()); err != nil || len(mac) != 6 {
		f.Add("hw_address", v.GetHwAddress(), `a MAC address, such as "02:fe:c0:00:00:02"`)
	}
	return f.Err()
}

// arpIdentity returns the identity of a neighbour: the key that it would have in the notation of the kernel,
// with its reference resolved.
func (h handler) arpIdentity(_ string, v *l3.ARPEntry) scheduler.Claim {
	ip := h.withAddress(v).GetIpAddress()
	if a, err := netip.ParseAddr(ip); err == nil {
		ip = a.Unmap().String()
	}
	return scheduler.Claim{
		Resource: models.For[*l3.ARPEntry]().KeyOf(v.GetInterface() + "/" + ip),
		Field:    "ip_address", Value: v.GetIpAddress(), Want: "an address of this interface that no other entry has",
	}
}

// equivalentARP compares the parsed addresses, not their notation. A reference counts as its address.
func (h handler) equivalentARP(_ string, old, new *l3.ARPEntry) bool {
	old, new = h.withAddress(old), h.withAddress(new)
	a, errA := kernelNeighbour(old, 0)
	b, errB := kernelNeighbour(new, 0)
	// References without an address yet are compared as text.
	if errA != nil || errB != nil {
		return old.GetIpAddress() == new.GetIpAddress() && old.GetHwAddress() == new.GetHwAddress()
	}
	return a.IP == b.IP && a.MAC.String() == b.MAC.String()
}

// arpDependencies: the kernel accepts a neighbour only on a link that is up, and one
// without an address could not be used.
func arpDependencies(_ string, v *l3.ARPEntry) []scheduler.Dependency {
	deps := []scheduler.Dependency{{Label: "interface-is-up", Key: keys.State(v.GetInterface(), true)}}
	if !linkLocal(v.GetIpAddress()) {
		deps = append(deps, scheduler.Dependency{Label: "interface-has-ip-address", Prefixes: []string{keys.Addresses(v.GetInterface())}})
	}
	if ref, ok := alloc.Parse(v.GetIpAddress()); ok {
		deps = append(deps, scheduler.Dependency{Label: v.GetIpAddress(), Key: ref.Key(v.GetInterface())})
	}
	return deps
}

// kernelNeighbour converts v for the kernel.
func kernelNeighbour(v *l3.ARPEntry, link int) (kernel.Neighbour, error) {
	ip, err := netip.ParseAddr(v.GetIpAddress())
	if err != nil {
		return kernel.Neighbour{}, ErrUnallocated
	}
	mac, err := net.ParseMAC(v.GetHwAddress())
	if err != nil {
		return kernel.Neighbour{}, fmt.Errorf("hw_address: %w", err)
	}
	return kernel.Neighbour{Link: link, IP: ip.Unmap(), MAC: mac, Protocol: kernel.Protocol}, nil
}

// createARP adds the neighbour. One of another owner with that address is an error.
func (h handler) createARP(_ context.Context, key string, v *l3.ARPEntry) (ARPMeta, error) {
	return h.putARP(key, v, func(space *netns.Space, n kernel.Neighbour) error { return h.addARP(key, space, n) })
}

// updateARP replaces the neighbour in one request, so it is never missing.
func (h handler) updateARP(_ context.Context, key string, _, v *l3.ARPEntry, was ARPMeta) (ARPMeta, error) {
	h.Watch.Forget(drift.Neighbour(was.NS, was.Neighbour))
	return h.putARP(key, v, func(space *netns.Space, n kernel.Neighbour) error { return space.AddNeighbour(n, true) })
}

// putARP resolves the value, calls put, and records the neighbour for drift detection.
func (h handler) putARP(key string, v *l3.ARPEntry, put func(*netns.Space, kernel.Neighbour) error) (ARPMeta, error) {
	meta, space, err := h.at(v.GetInterface())
	if err != nil {
		return ARPMeta{}, err
	}
	defer space.Close()
	n, err := kernelNeighbour(h.withAddress(v), meta.Index)
	if err != nil {
		return ARPMeta{}, err
	}
	if err := h.hasNeighbours(space, v.GetInterface(), meta, n); err != nil {
		return ARPMeta{}, err
	}
	began := h.Watch.Clock()
	if err := put(space, n); err != nil {
		return ARPMeta{}, err
	}
	h.Watch.Created(space, drift.Neighbour(space.ID, n), entryOfARP(key, n), began)
	return ARPMeta{NS: space.ID, Neighbour: n}, nil
}

// hasNeighbours refuses a neighbour of IPv4 on a loopback or point-to-point link: the kernel has one entry, 0.0.0.0, for all
// addresses there. The links that the agent makes are none of these.
func (h handler) hasNeighbours(space *netns.Space, on string, meta iface.Meta, n kernel.Neighbour) error {
	if !n.IP.Is4() || !meta.Existing && meta.HostName != "lo" {
		return nil
	}
	l, err := space.LinkByIndex(meta.Index)
	if err == nil && l.About.Flags&(unix.IFF_LOOPBACK|unix.IFF_POINTOPOINT) != 0 {
		err = fmt.Errorf("%w: %w", scheduler.ErrInvalid, &models.FieldError{Field: "interface", Value: on,
			Expected: "for IPv4 an interface that is neither a loopback nor a point-to-point link"})
	}
	return err
}

// withAddress returns v with its reference resolved. An unknown reference stays.
func (h handler) withAddress(v *l3.ARPEntry) *l3.ARPEntry {
	if !alloc.Is(v.GetIpAddress()) {
		return v
	}
	v = proto.CloneOf(v)
	v.IpAddress = alloc.Host(h.Allocations, v.GetIpAddress(), v.GetInterface())
	return v
}

// addARP replaces an entry that the kernel has learned, and one that has replaced ours while it stood, but not
// another permanent one of another program.
func (h handler) addARP(key string, space *netns.Space, n kernel.Neighbour) error {
	err := space.AddNeighbour(n, false)
	if !errors.Is(err, unix.EEXIST) {
		return kernel.Refused(err)
	}
	at := drift.Neighbour(space.ID, n)
	if _, lost := h.Watch.Lost(at, key); lost {
		return space.AddNeighbour(n, true)
	}
	have, err := space.Neighbours()
	if err != nil {
		return err
	}
	for _, one := range have {
		if one.Link == n.Link && one.IP == n.IP && one.Protocol != n.Protocol {
			h.Watch.Await(at)
			return fmt.Errorf("neighbour %v: %w: MAC address %v, protocol %d; remove it", n.IP, ErrConflict, one.MAC, one.Protocol)
		}
	}
	return space.AddNeighbour(n, true)
}

// entryOfARP returns the watcher's form: a neighbour is ours while its MAC address is.
func entryOfARP(key string, n kernel.Neighbour) drift.Entry {
	return drift.Entry{Key: key, Link: n.Link, MAC: n.MAC.String()}
}

// deleteARP removes the neighbour as it was written. A missing one is no error.
func (h handler) deleteARP(_ context.Context, _ string, _ *l3.ARPEntry, was ARPMeta) error {
	h.Watch.Forget(drift.Neighbour(was.NS, was.Neighbour))
	space, ok := h.Spaces.ByID(was.NS)
	if !ok {
		return nil // the neighbour vanished with its namespace
	}
	defer space.Close()
	err := space.DelNeighbour(was.Neighbour)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENXIO) {
		return nil
	}
	return err
}

// retrieveARPs yields the permanent neighbours of our protocol on existing interfaces. A
// neighbour that is desired gets the desired key and notation. On an EXISTING interface
// only desired neighbours count.
func (h handler) retrieveARPs(_ context.Context, wanted []scheduler.Desired[*l3.ARPEntry]) scheduler.Retrieved[*l3.ARPEntry, ARPMeta] {
	return func(yield func(scheduler.Found[*l3.ARPEntry, ARPMeta], error) bool) {
		declared := map[string]scheduler.Desired[*l3.ARPEntry]{} // by identity
		for _, w := range wanted {
			declared[h.arpIdentity(w.Key, w.Value).Resource] = w
		}
		for space, links := range h.spaces() {
			have, err := space.Neighbours()
			if err != nil {
				yield(scheduler.Found[*l3.ARPEntry, ARPMeta]{}, err)
				return
			}
			for _, n := range have {
				on := links[n.Link]
				id := models.For[*l3.ARPEntry]().KeyOf(on.name + "/" + n.IP.String())
				w, want := declared[id]
				// The kernel keeps the creator of a neighbour (NDA_PROTOCOL).
				if n.Protocol != kernel.Protocol || on.name == "" || on.existing && !want {
					continue
				}
				v := &l3.ARPEntry{Interface: on.name, IpAddress: cmp.Or(w.Value.GetIpAddress(), n.IP.String()), HwAddress: n.MAC.String()}
				key := cmp.Or(w.Key, id)
				learned := func() { h.Watch.Retrieved(space, drift.Neighbour(space.ID, n), entryOfARP(key, n)) }
				if !yield(scheduler.Found[*l3.ARPEntry, ARPMeta]{Key: key, Value: v, Meta: ARPMeta{space.ID, n}, Learned: learned}, nil) {
					return
				}
			}
		}
	}
}

// normalizeARP removes the prefix length of the address.
func normalizeARP(_ string, v *l3.ARPEntry) (*l3.ARPEntry, []string) {
	if !spelling.HasLength(v.GetIpAddress()) {
		return v, nil
	}
	v = proto.CloneOf(v)
	return v, spelling.Host("ip_address", &v.IpAddress)
}
