package iface

import (
	"fmt"
	"iter"
	"log/slog"
	"net/netip"
	"strings"
	"sync"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/internal/bootid"
	"github.com/keyplane/keyplane/scheduler"
)

// The mark of a link is its alias, which anybody may overwrite, and an address has no mark in kernels before
// 5.18. So the agent itself knows too what it has marked, and the state folder knows it across restarts.
//
//	known                      counts while
//	the alias of a link        the link has another alias that is not that of an agent. In an earlier run of
//	                           the agent, the link must have had the same MAC address: a namespace may be another one
//	                           that has the same number
//	an address that was made   it is on a loopback or an EXISTING link, which others use too

// A linkID identifies a link during one boot of the host.
type linkID struct {
	ns    kernel.ID
	index int
}

// A mark is what is known about a link.
type mark struct {
	alias, mac string
	earlier    bool // it comes from an earlier run of the agent
}

// A madeAddr is an address that the agent has made.
type madeAddr struct {
	linkID
	prefix netip.Prefix
}

// marks are what the agent knows about its links. The zero value knows nothing, and saves nothing.
type marks struct {
	saved scheduler.Memory // nil: nothing is saved
	boot  string
	log   *slog.Logger

	mu    sync.Mutex // guards the fields below
	links map[linkID]mark
	made  map[madeAddr]string // the name of the interface
}

// newMarks returns what is saved about links of this boot.
func newMarks(saved scheduler.Memory, log *slog.Logger) *marks {
	m := &marks{log: log, links: map[linkID]mark{}, made: map[madeAddr]string{}}
	boot := bootid.Read()
	if saved == nil || boot == "" {
		return m
	}
	m.saved, m.boot = saved, boot
	var old []string
	for key, value := range saved.Load() {
		if !m.load(key, string(value)) {
			old = append(old, key)
		}
	}
	for _, key := range old {
		m.save(key, nil)
	}
	return m
}

// load takes one saved entry, and reports false if it is of another boot.
func (m *marks) load(key, value string) bool {
	var id linkID
	boot, rest, _ := strings.Cut(key, "/")
	where, prefix, isAddr := strings.Cut(rest, "=")
	if _, err := fmt.Sscanf(where, "%d.%d/%d", &id.ns.Dev, &id.ns.Ino, &id.index); boot != m.boot || err != nil {
		return false
	}
	if !isAddr {
		mac, alias, _ := strings.Cut(value, " ")
		m.links[id] = mark{alias: alias, mac: mac, earlier: true}
		return true
	}
	p, err := netip.ParsePrefix(prefix)
	if err != nil {
		return false
	}
	m.made[madeAddr{id, p}] = value
	return true
}

// keyOf returns the key under which a link is saved; an address adds "=" and itself.
func (m *marks) keyOf(id linkID) string {
	return fmt.Sprintf("%s/%d.%d/%d", m.boot, id.ns.Dev, id.ns.Ino, id.index)
}

// save saves one entry; nil removes it.
func (m *marks) save(key string, value []byte) {
	if m.saved == nil {
		return
	}
	one := func(yield func(string, []byte) bool) { yield(key, value) }
	if err := m.saved.Save(iter.Seq2[string, []byte](one)); err != nil {
		m.log.Warn("cannot save what is known about a link; after a restart its alias alone says that it is ours", "err", err)
	}
}

// of returns the known alias of a link.
func (m *marks) of(id linkID, mac string) (alias string, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	one, known := m.links[id]
	return one.alias, known && (!one.earlier || one.mac == mac)
}

// note notes the alias that a link of ours gets. It is not saved before its MAC address is known.
func (m *marks) note(id linkID, alias string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	one := m.links[id]
	m.links[id] = mark{alias: alias, mac: one.mac}
}

// put saves the alias and the MAC address of a link of ours.
func (m *marks) put(id linkID, alias, mac string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := mark{alias: alias, mac: mac}
	if before := m.links[id]; before.alias != alias || before.mac != mac || before.mac == "" {
		m.save(m.keyOf(id), []byte(mac+" "+alias))
	}
	m.links[id] = now
}

// drop forgets a link that is not ours any more, or is gone.
func (m *marks) drop(id linkID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.links[id]; known {
		delete(m.links, id)
		m.save(m.keyOf(id), nil)
	}
}

// in returns the known links of a namespace, and those with addresses.
func (m *marks) in(ns kernel.ID) map[int]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[int]bool{}
	for id := range m.links {
		if id.ns == ns {
			out[id.index] = true
		}
	}
	for a := range m.made {
		if a.ns == ns {
			out[a.index] = true
		}
	}
	return out
}

// putAddr notes that the agent has made an address for an interface; "": not any more, or somebody else has.
func (m *marks) putAddr(id linkID, p netip.Prefix, name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := madeAddr{id, p}
	switch before, known := m.made[a]; {
	case name == "" && known:
		delete(m.made, a)
		m.save(m.keyOf(id)+"="+p.String(), nil)
	case name != "" && name != before:
		m.made[a] = name
		m.save(m.keyOf(id)+"="+p.String(), []byte(name))
	}
}

// inherit notes the new name of the interface for which the agent has made an address.
func (h *handler) inherit(id linkID, p netip.Prefix, name string) {
	if h.marks.madeFor(id, p) != "" {
		h.marks.putAddr(id, p, name)
	}
}

// madeFor returns the name of the interface for which the agent has made an address; "": it has not.
func (m *marks) madeFor(id linkID, p netip.Prefix) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.made[madeAddr{id, p}]
}

// known returns a link with the mark that the agent knows, if somebody has overwritten that in the kernel. A
// loopback belongs to nobody: its mark is never written into the kernel, except by earlier releases.
func (h *handler) known(space *netns.Space, l kernel.Link) kernel.Link {
	alias, known := h.marks.of(linkID{space.ID, l.Index}, l.MAC.String())
	switch {
	case known && (l.Name == loopback || !strings.HasPrefix(l.Alias, agentMark)):
		l.Alias, l.Owner = alias, h.Installation
	case l.Name == loopback && !strings.HasPrefix(l.Alias, h.mark()):
		l.Alias, l.Owner = "", ""
	}
	return l
}

// forgetVanished forgets the links of a namespace that do not exist any more.
func (h *handler) forgetVanished(p *place) {
	for index := range h.marks.in(p.ID) {
		if _, read := p.aliases[index]; read {
			continue
		}
		if _, err := p.LinkByIndex(index); err == nil {
			continue // it was made meanwhile
		}
		h.marks.gone(p.ID, index)
	}
}

// forgetSpaces forgets the links of namespaces that the agent does not know any more.
func (h *handler) forgetSpaces() {
	for ns := range h.marks.spaces() {
		if space, known := h.Spaces.ByID(ns); known {
			space.Close()
		} else {
			h.marks.gone(ns, 0)
		}
	}
}

// spaces returns the namespaces with known links or addresses.
func (m *marks) spaces() map[kernel.ID]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[kernel.ID]bool{}
	for id := range m.links {
		out[id.ns] = true
	}
	for a := range m.made {
		out[a.ns] = true
	}
	return out
}

// gone forgets a link that does not exist any more, with its addresses; 0: all of the namespace. The kernel gives the numbers of
// namespaces and links to others.
func (m *marks) gone(ns kernel.ID, link int) {
	links := map[int]bool{link: true}
	if link == 0 {
		links = m.in(ns)
	}
	for index := range links {
		m.drop(linkID{ns, index})
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for a := range m.made {
		if a.ns == ns && links[a.index] {
			delete(m.made, a)
			m.save(m.keyOf(a.linkID)+"="+a.prefix.String(), nil)
		}
	}
}
