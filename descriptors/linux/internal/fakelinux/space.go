package fakelinux

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
)

// mtuVRF is the default and the largest MTU of a VRF.
const mtuVRF = 65575

// space is one namespace.
type space struct {
	kernel.Kernel // unsupported methods; a call panics

	host    *Host
	id      kernel.ID
	links   map[int]*link
	sysctls map[string]string
	hadVRF  bool // a VRF brings the rules only once
	rules   bool // of VRFs

	announced map[string]bool // installations
}

// A link is a link of the kernel with its addresses and, of a VETH, its other end.
type link struct {
	kernel.Link
	addrs []netip.Prefix
	peer  *link
}

// change calls f with the link. It returns ENODEV if the link does not exist.
func (s *space) change(index int, f func(*link) error) error {
	s.host.mu.Lock()
	defer s.host.mu.Unlock()
	if err := s.host.call(); err != nil {
		return err
	}
	l := s.links[index]
	if l == nil {
		return fmt.Errorf("link %d: %w", index, unix.ENODEV)
	}
	return f(l)
}

// named returns the link with this name, or nil. The caller holds the host's lock.
func (s *space) named(name string) *link {
	for _, l := range s.links {
		if l.Name == name {
			return l
		}
	}
	return nil
}

// Close does nothing: a space lives as long as its host.
func (s *space) Close() error { return nil }

// Links returns all links by ascending index, as a dump of the kernel does.
func (s *space) Links() ([]kernel.Link, error) {
	s.host.mu.Lock()
	defer s.host.mu.Unlock()
	var out []kernel.Link
	for _, index := range slices.Sorted(maps.Keys(s.links)) {
		out = append(out, s.links[index].Link)
	}
	return out, nil
}

// LinkByName returns ENODEV for a missing link, as the kernel does.
func (s *space) LinkByName(name string) (kernel.Link, error) {
	s.host.mu.Lock()
	defer s.host.mu.Unlock()
	if l := s.named(name); l != nil {
		return l.Link, nil
	}
	return kernel.Link{}, fmt.Errorf("link %s: %w", name, unix.ENODEV)
}

// LinkByIndex returns ENODEV for a missing link.
func (s *space) LinkByIndex(index int) (out kernel.Link, err error) {
	err = s.change(index, func(l *link) error { out = l.Link; return nil })
	return out, err
}

// AddLink creates a link.
func (s *space) AddLink(want kernel.Link) error {
	s.host.mu.Lock()
	defer s.host.mu.Unlock()
	err := s.host.call()
	if err == nil {
		_, err = s.add(want)
	}
	return err
}

// AddVETH creates both ends; it never leaves one end alone.
func (s *space) AddVETH(end kernel.Link, peer string, in kernel.Kernel) error {
	there := in.(*space)
	s.host.mu.Lock()
	defer s.host.mu.Unlock()
	if err := s.host.call(); err != nil {
		return err
	}
	a, err := s.add(kernel.Link{Kind: "veth", Name: end.Name, Group: end.Group})
	if err != nil {
		return err
	}
	a.peer, err = there.add(kernel.Link{Kind: "veth", Name: peer})
	if err != nil {
		delete(s.links, a.Index)
		return err
	}
	a.peer.peer = a
	return nil
}

// add adds a link with the kernel's default MTU. Indexes are unique on the host, so one
// that was used is never used again. The caller holds the host's lock.
func (s *space) add(want kernel.Link) (*link, error) {
	if s.host.lacks[want.Kind] {
		return nil, fmt.Errorf("making %s link %s: %w", want.Kind, want.Name, unix.EOPNOTSUPP)
	}
	if s.named(want.Name) != nil {
		return nil, fmt.Errorf("link %s: %w", want.Name, unix.EEXIST)
	}
	want.Index, want.MTU = s.host.next, 1500
	if want.Kind == "vrf" {
		want.MTU = mtuVRF
		s.rules = s.rules || !s.hadVRF
		s.hadVRF = true
	}
	s.host.next++
	l := &link{Link: want}
	s.links[l.Index] = l
	return l, nil
}

// DelLink removes the link and, of a VETH, the other end in its namespace. Its ports leave it.
func (s *space) DelLink(index int) error {
	return s.change(index, func(l *link) error {
		for _, port := range s.links {
			if port.Master == index {
				port.Master = 0
				port.loseIPv6()
			}
		}
		for _, o := range s.host.spaces {
			maps.DeleteFunc(o.links, func(_ int, one *link) bool { return one == l || one == l.peer })
		}
		return nil
	})
}

// SetName returns EEXIST if another link has the name.
func (s *space) SetName(index int, name string) error {
	return s.change(index, func(l *link) error {
		if o := s.named(name); o != nil && o != l {
			return fmt.Errorf("naming link %d %s: %w", index, name, unix.EEXIST)
		}
		l.Name = name
		return nil
	})
}

// SetAlias also takes the owner from the text, as the reader of a real alias does.
func (s *space) SetAlias(index int, alias string) error {
	return s.change(index, func(l *link) error {
		l.Alias, l.Owner = kernel.SplitAlias(alias)
		return nil
	})
}

// SetGroup takes any group.
func (s *space) SetGroup(index int, group uint32) error {
	return s.change(index, func(l *link) error { l.Group = group; return nil })
}

// loseIPv6 removes the addresses of IPv6, as the kernel does when a link is set down, enters or leaves a master, or has
// an MTU below that of IPv6.
func (l *link) loseIPv6() {
	l.addrs = slices.DeleteFunc(l.addrs, func(p netip.Prefix) bool { return p.Addr().Is6() })
}

// SetUp sets the administrative state.
func (s *space) SetUp(index int, up bool) error {
	return s.change(index, func(l *link) error {
		if !up {
			l.loseIPv6()
		}
		l.Up = up
		return nil
	})
}

// SetMTU returns EINVAL outside of the range of a VRF, and accepts every MTU of other links.
func (s *space) SetMTU(index, mtu int) error {
	return s.change(index, func(l *link) error {
		if l.Kind == "vrf" && (mtu < kernel.MinMTUIPv6 || mtu > mtuVRF) {
			return fmt.Errorf("giving link %d the MTU %d: %w", index, mtu, unix.EINVAL)
		}
		if mtu < kernel.MinMTUIPv6 {
			l.loseIPv6()
		}
		l.MTU = mtu
		return nil
	})
}

// SetMAC returns EADDRNOTAVAIL for zero and for multicast addresses.
func (s *space) SetMAC(index int, mac net.HardwareAddr) error {
	return s.change(index, func(l *link) error {
		if mac[0]&1 != 0 || !slices.ContainsFunc(mac, func(b byte) bool { return b != 0 }) {
			return fmt.Errorf("giving link %d the address %v: %w", index, mac, unix.EADDRNOTAVAIL)
		}
		l.MAC = mac
		return nil
	})
}

// SetMaster puts the link into a VRF; 0 takes it out. It leaves the old one before the new one may refuse it.
func (s *space) SetMaster(index, master int) error {
	return s.change(index, func(l *link) error {
		if l.Master == master {
			return nil
		}
		l.Master = 0
		l.loseIPv6()
		if master != 0 && (s.links[master] == nil || l.Kind == "vrf") {
			return fmt.Errorf("putting link %d under link %d: %w", index, master, unix.EINVAL)
		}
		l.Master = master
		return nil
	})
}

// Move drops the addresses and the master and sets the link down, as the kernel does. A VRF cannot be moved.
func (s *space) Move(index int, to kernel.Kernel) error {
	return s.change(index, func(l *link) error {
		if l.Kind == "vrf" {
			return fmt.Errorf("moving link %d to another namespace: %w", index, unix.EINVAL)
		}
		delete(s.links, index)
		to.(*space).links[index] = l
		l.addrs, l.Up, l.Master = nil, false, 0
		return nil
	})
}

// Offload returns the kernel's default.
func (s *space) Offload(string) (kernel.Offload, error) {
	return kernel.Offload{RX: true, TX: true}, nil
}

// Addrs returns the addresses of a link, or of all links for index 0, sorted.
func (s *space) Addrs(index int) (out []kernel.Addr, err error) {
	s.host.mu.Lock()
	defer s.host.mu.Unlock()
	for _, l := range s.links {
		for _, p := range l.addrs {
			if index == 0 || index == l.Index {
				out = append(out, kernel.Addr{Link: l.Index, Prefix: p})
			}
		}
	}
	slices.SortFunc(out, func(a, b kernel.Addr) int { return cmp.Compare(a.Prefix.String(), b.Prefix.String()) })
	return out, nil
}

// AddAddr returns EEXIST for an address that the link has; for IPv6, with any prefix length.
func (s *space) AddAddr(a kernel.Addr) error {
	return s.change(a.Link, func(l *link) error {
		if slices.ContainsFunc(l.addrs, func(p netip.Prefix) bool { return p == a.Prefix || p.Addr().Is6() && p.Addr() == a.Prefix.Addr() }) {
			return unix.EEXIST
		}
		l.addrs = append(l.addrs, a.Prefix)
		return nil
	})
}

// DelAddr returns EADDRNOTAVAIL for an address that the link lacks.
func (s *space) DelAddr(a kernel.Addr) error {
	return s.change(a.Link, func(l *link) error {
		if !slices.Contains(l.addrs, a.Prefix) {
			return unix.EADDRNOTAVAIL
		}
		l.addrs = slices.DeleteFunc(l.addrs, func(p netip.Prefix) bool { return p == a.Prefix })
		return nil
	})
}

// HasVRFRules reports whether the rules are there that the first VRF of the namespace brings.
func (s *space) HasVRFRules() (bool, error) {
	s.host.mu.Lock()
	defer s.host.mu.Unlock()
	return s.rules, nil
}

// AddVRFRules adds them.
func (s *space) AddVRFRules() error {
	s.host.mu.Lock()
	defer s.host.mu.Unlock()
	s.rules = true
	return nil
}

// Bare returns none: the fake has no routes.
func (*space) Bare() ([]kernel.Addr, error) { return nil, nil }

// Connect does nothing.
func (*space) Connect(kernel.Addr) error { return nil }

// Sysctl records the value.
func (s *space) Sysctl(name, value string) error {
	s.host.mu.Lock()
	defer s.host.mu.Unlock()
	s.sysctls[name] = value
	return nil
}

// Announce returns EADDRINUSE while the installation is announced, as an abstract socket
// does.
func (s *space) Announce(installation string) (io.Closer, error) {
	s.host.mu.Lock()
	defer s.host.mu.Unlock()
	if s.announced[installation] {
		return nil, fmt.Errorf("announcing %s: %w", installation, unix.EADDRINUSE)
	}
	s.announced[installation] = true
	return closer(func() {
		s.host.mu.Lock()
		defer s.host.mu.Unlock()
		delete(s.announced, installation)
	}), nil
}

// A closer is an io.Closer from a function.
type closer func()

// Close ends the announcement.
func (c closer) Close() error { c(); return nil }

// Announced reports whether the installation is announced.
func (s *space) Announced(installation string) bool {
	s.host.mu.Lock()
	defer s.host.mu.Unlock()
	return s.announced[installation]
}

// Subscribe returns a subscription without events.
func (s *space) Subscribe() (kernel.Events, error) { return make(silence), nil }

// HasRules implements kernel.Filter: the fake has no packet filter.
func (*space) HasRules() (bool, error) { return false, nil }

// A silence is a subscription to events that never come.
type silence chan struct{}

// Close ends Next.
func (c silence) Close() error { close(c); return nil }

// Next returns no event: the fake has no watchers.
func (c silence) Next() ([]kernel.Event, error) {
	<-c
	return nil, net.ErrClosed
}
