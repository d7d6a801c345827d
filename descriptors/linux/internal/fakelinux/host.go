// Package fakelinux is a Linux host in memory. It simulates features that the test kernel
// may lack, and errors that a real kernel does not produce on demand.
//
//	host := fakelinux.New("/proc/thread-self/ns/net", "/run/netns/red")
//	host.Lacks("vrf")
//	... use it as kernel.Host ...
//	fmt.Print(host) // its state, as text
//
// It supports links, addresses, VRFs and sysctls, as far as the interface descriptors use
// them. It rejects what the kernel rejects, such as duplicate names and missing links.
// Safe for use by any goroutine.
package fakelinux

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
)

// A Host is the fake.
type Host struct {
	mu     sync.Mutex // guards the state of all namespaces
	spaces map[string]*space
	lacks  map[string]bool
	next   int    // index of the next link
	made   uint64 // namespaces that Make has made
	left   int    // calls until the caller is killed; see KillAfter
}

// New returns a host with a namespace at each of these paths.
func New(paths ...string) *Host {
	h := &Host{spaces: map[string]*space{}, lacks: map[string]bool{}, next: 2, left: -1}
	for i, p := range paths {
		h.spaces[p] = h.space(kernel.ID{Ino: uint64(i + 1)})
	}
	return h
}

// Remove makes a path lead nowhere, as that of a process that ends. The namespace and its
// links exist for as long as somebody has it open.
func (h *Host) Remove(path string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.spaces, path)
}

// Lacks makes the host reject links of some kinds, as a kernel without the module does.
func (h *Host) Lacks(kinds ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, kind := range kinds {
		h.lacks[kind] = true
	}
}

// KillAfter has the host refuse all calls about single links after n more of them, as if the caller was killed; -1: none.
func (h *Host) KillAfter(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.left = n
}

// call counts a call of one that is killed. The caller holds the lock.
func (h *Host) call() error {
	if h.left == 0 {
		return unix.ESHUTDOWN
	}
	h.left = max(-1, h.left-1)
	return nil
}

// Stat implements kernel.Host.
func (h *Host) Stat(p string) (kernel.ID, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s, ok := h.spaces[p]
	if !ok {
		return kernel.ID{}, &fs.PathError{Op: "stat", Path: p, Err: fs.ErrNotExist}
	}
	return s.id, nil
}

// Open implements kernel.Host.
func (h *Host) Open(p string) (kernel.Kernel, kernel.ID, error) {
	id, err := h.Stat(p)
	if err != nil {
		return nil, id, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.spaces[p], id, nil
}

// Make implements kernel.Host.
func (h *Host) Make(p string) (kernel.ID, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.spaces[p] != nil {
		return kernel.ID{}, &fs.PathError{Op: "open", Path: p, Err: fs.ErrExist}
	}
	h.made++
	h.spaces[p] = h.space(kernel.ID{Dev: 1, Ino: h.made})
	return h.spaces[p].id, nil
}

// Unmake implements kernel.Host.
func (h *Host) Unmake(p string) error {
	h.Remove(p)
	return nil
}

// Used implements kernel.Host: there are no processes.
func (h *Host) Used(func(kernel.ID) bool) map[kernel.ID]string { return nil }

// space returns a new namespace.
func (h *Host) space(id kernel.ID) *space {
	lo := &link{Link: kernel.Link{Index: 1, Name: "lo", MTU: 65536}}
	return &space{host: h, id: id, links: map[int]*link{1: lo}, sysctls: map[string]string{}, announced: map[string]bool{}}
}

// String returns the state of the host, without unmodified loopbacks.
func (h *Host) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var b strings.Builder
	for _, p := range slices.Sorted(maps.Keys(h.spaces)) {
		fmt.Fprintf(&b, "%s:\n", path.Base(p))
		h.spaces[p].write(&b)
	}
	return b.String()
}

// write prints the content in a fixed order, without the loopback as the kernel makes it.
func (s *space) write(b *strings.Builder) {
	for _, name := range slices.Sorted(maps.Keys(s.sysctls)) {
		fmt.Fprintf(b, "  sysctl %s = %s\n", name, s.sysctls[name])
	}
	for _, index := range slices.Sorted(maps.Keys(s.links)) {
		l := s.links[index]
		if l.Name == "lo" && l.Alias == "" {
			continue
		}
		fmt.Fprintf(b, "  %s kind %s mtu %d", l.Name, l.Kind, l.MTU)
		if l.Up {
			b.WriteString(" up")
		}
		if l.Table != 0 {
			fmt.Fprintf(b, " table %d", l.Table)
		}
		if m := s.links[l.Master]; m != nil {
			fmt.Fprintf(b, " in %s", m.Name)
		}
		if l.Alias != "" {
			fmt.Fprintf(b, " alias %s", l.Alias)
		}
		b.WriteByte('\n')
		for _, p := range l.addrs {
			fmt.Fprintf(b, "    %v\n", p)
		}
	}
}
