// Package hostnames announces what other programs, and the agent, have in the agent's own network namespace.
package hostnames

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/keyplane/keyplane/descriptors/linux/internal/drift"
	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/keys"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/scheduler"
)

// Name is the name of the descriptor.
const Name = "linux-interface-watcher"

// Names announces the links of the agent's own namespace that are up, with their
// addresses and VRFs, as values of linux-interface-watcher.
//
//	event                         announced values
//	a link or address appears     announced at once
//	a link is deleted             withdrawn at once
//	another value vanishes        withdrawn after drift.Debounce, if it is still missing
//
// The delay hides the short gap while a link is renamed. The scheduler sees only the newest announcement of
// a key, so it may miss that another link has the name now. Who follows a name is told of each link that has it: see OnNamed.
//
// Names is a drift.Follower; the calling goroutine owns its state. The descriptor's
// Retrieve reads the kernel independently, so it needs no lock.
type Names struct {
	spaces  *netns.Set
	log     *slog.Logger
	observe func(...scheduler.Observed)
	named   func(name string, link int)

	// The kernel's state as events have shown it, and the keys that were announced for it.
	links     map[int]kernel.Link
	addrs     map[int]map[netip.Prefix]bool
	announced map[int]map[string]bool // keys, by index of the link
	due       map[int]time.Time       // when to withdraw vanished keys, by index of the link
}

// New returns Names that are announced through observe.
func New(spaces *netns.Set, log *slog.Logger, observe func(...scheduler.Observed)) *Names {
	return &Names{spaces: spaces, log: log, observe: observe, named: func(string, int) {}, announced: map[int]map[string]bool{}, due: map[int]time.Time{}}
}

// OnNamed has f called with each name of a link that is announced, and the link's index. Call it before Apply and Reload,
// whose goroutine calls f.
func (n *Names) OnNamed(f func(name string, link int)) { n.named = f }

// Register adds linux-interface-watcher to s.
func (n *Names) Register(s *scheduler.Scheduler, connection string) error {
	_, err := scheduler.Register(s.OnConnection(connection), scheduler.Descriptor[*emptypb.Empty, struct{}]{
		Name: Name, Prefix: keys.HostNames, Retrieve: n.retrieve, Absent: absentHostName,
	})
	return err
}

// absentHostName says why a link has no key.
func absentHostName(key string) string {
	if host, addr, ok := keys.ParseHostAddress(key); ok {
		text := fmt.Sprintf("no link %s that is up has the address %s", host, addr)
		if strings.Contains(addr, ":") {
			text += " in use (another host may have it: state dadfailed)"
		}
		return text
	}
	if host, vrf, ok := keys.ParseHostVRF(key); ok {
		return fmt.Sprintf("no link %s that is up is in VRF %s", host, vrf)
	}
	return fmt.Sprintf("no link %s is up in the agent's namespace", strings.TrimPrefix(key, keys.HostNames))
}

// retrieve reads the kernel, not the state that events have built: a lost event must not
// last.
func (n *Names) retrieve(context.Context, []scheduler.Desired[*emptypb.Empty]) scheduler.Retrieved[*emptypb.Empty, struct{}] {
	return func(yield func(scheduler.Found[*emptypb.Empty, struct{}], error) bool) {
		now := Names{spaces: n.spaces}
		if err := now.load(); err != nil {
			yield(scheduler.Found[*emptypb.Empty, struct{}]{}, err)
			return
		}
		for index := range now.links {
			for key := range now.keysOf(index) {
				if !yield(scheduler.Found[*emptypb.Empty, struct{}]{Key: key, Value: &emptypb.Empty{}, Foreign: true}, nil) {
					return
				}
			}
		}
	}
}

// load reads the links and addresses of the own namespace.
func (n *Names) load() error {
	own, err := n.spaces.Own()
	if err != nil {
		return err
	}
	defer own.Close()
	links, err := own.Links()
	if err != nil {
		return err
	}
	addrs, err := own.Addrs(0)
	if err != nil {
		return err
	}
	n.links, n.addrs = map[int]kernel.Link{}, map[int]map[netip.Prefix]bool{}
	for _, l := range links {
		n.links[l.Index] = l
	}
	for _, a := range addrs {
		n.address(a, false)
	}
	return nil
}

// keysOf returns the keys of one link, for each of its names. A link that is down has none.
func (n *Names) keysOf(index int) map[string]bool {
	l, ok := n.links[index]
	if !ok || !l.Up {
		return nil
	}
	out := map[string]bool{}
	for _, name := range l.Names() {
		out[keys.HostName(name)] = true
		for p := range n.addrs[index] {
			out[keys.HostAddress(name, p.String())] = true
		}
		if vrf := n.links[l.Master]; l.Master != 0 && vrf.Kind == "vrf" {
			for _, of := range vrf.Names() {
				out[keys.HostVRF(name, of)] = true
			}
		}
	}
	return out
}

// Reload implements drift.Follower.
func (n *Names) Reload(now time.Time) {
	if err := n.load(); err != nil {
		n.log.Error("cannot read the links of the agent's own namespace", "err", fmt.Errorf("%s: %w", Name, err))
		return
	}
	for index := range n.links {
		n.announce(index, now)
	}
	for index := range n.announced {
		n.announce(index, now)
	}
}

// Apply implements drift.Follower.
func (n *Names) Apply(events []kernel.Event, now time.Time) {
	for _, e := range events {
		switch what := e.What.(type) {
		case kernel.Link:
			n.link(what, e.Gone, now)
		case kernel.Addr:
			n.address(what, e.Gone)
			n.announce(what.Link, now)
		}
	}
}

// link updates the state of a link. A new name of a VRF changes the keys of its members.
func (n *Names) link(l kernel.Link, gone bool, now time.Time) {
	before, known := n.links[l.Index]
	if gone {
		delete(n.links, l.Index)
		delete(n.addrs, l.Index)
	} else {
		n.links[l.Index] = l
	}
	n.announce(l.Index, now)
	if l.Kind != "vrf" || known && !gone && slices.Equal(before.Names(), l.Names()) {
		return
	}
	for index, member := range n.links { // the keys of members contain the name of the VRF
		if member.Master == l.Index {
			n.announce(index, now)
		}
	}
}

// address enters an address of a link, or removes it. One that another host has is not usable, and so not there.
func (n *Names) address(a kernel.Addr, gone bool) {
	if gone || a.Duplicate {
		delete(n.addrs[a.Link], a.Prefix)
		return
	}
	if n.addrs[a.Link] == nil {
		n.addrs[a.Link] = map[netip.Prefix]bool{}
	}
	n.addrs[a.Link][a.Prefix] = true
}

// announce publishes the keys of a link, and schedules the withdrawal of stale ones. It
// publishes unchanged keys too: a concurrent Retrieve may have reported them as missing.
func (n *Names) announce(index int, now time.Time) {
	current := n.keysOf(index)
	var so []scheduler.Observed
	// No entry is made for links that are down, of which there may be many.
	if len(current) > 0 && n.announced[index] == nil {
		n.announced[index] = map[string]bool{}
	}
	for _, key := range slices.Sorted(maps.Keys(current)) {
		n.announced[index][key] = true
		so = append(so, scheduler.Observed{Key: key, Value: &emptypb.Empty{}})
	}
	if len(so) > 0 {
		n.observe(so...)
		for _, name := range n.links[index].Names() {
			n.named(name, index)
		}
	}
	_, there := n.links[index]
	switch {
	// All that is announced exists.
	case len(n.announced[index]) == len(current):
		delete(n.due, index)
	// A deleted link does not come back under its index, so there is no gap to hide.
	case !there:
		n.withdraw(index)
	case n.due[index].IsZero():
		n.due[index] = now.Add(drift.Debounce)
	}
}

// withdraw withdraws the stale keys of a link.
func (n *Names) withdraw(index int) {
	delete(n.due, index)
	current := n.keysOf(index)
	var old []scheduler.Observed
	for _, key := range slices.Sorted(maps.Keys(n.announced[index])) {
		if !current[key] {
			delete(n.announced[index], key)
			if !n.announcedElsewhere(key) {
				old = append(old, scheduler.Observed{Key: key})
			}
		}
	}
	if len(n.announced[index]) == 0 {
		delete(n.announced, index)
	}
	if len(old) > 0 {
		n.observe(old...)
	}
}

// announcedElsewhere reports whether another link has the key, since it has the name now.
func (n *Names) announcedElsewhere(key string) bool {
	for _, has := range n.announced {
		if has[key] {
			return true
		}
	}
	return false
}

// Due implements drift.Follower.
func (n *Names) Due(now time.Time) (next time.Time) {
	for index, due := range n.due {
		if !due.After(now) {
			n.withdraw(index)
		} else if next.IsZero() || due.Before(next) {
			next = due
		}
	}
	return next
}
