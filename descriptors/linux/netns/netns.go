// Package netns finds and opens the network namespaces that values refer to, and reports
// named namespaces that appear or vanish. It makes those that are missing, and removes
// them; see make.go and tidy.go.
//
//	set := netns.New(netns.Options{})
//	space, err := set.Open(value.GetNamespace()) // nil: the agent's own
//	...
//	defer space.Close()
//	links, err := space.Links()
//
// A Space is an open namespace: sockets inside it, shared by all users. Some time after
// the last user closes it, the sockets are closed. A Space belongs to the namespace, not
// to its name: if a name is reused for a new namespace, Open returns a new Space, and the
// old one works until it is closed.
//
// An open Space keeps its namespace alive. A user that holds a Space for a long time must
// close it when Watch reports that the name is gone.
//
// All functions are safe for use by any goroutine. Tests use private namespaces of the
// real kernel.
package netns

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/proto/ligato/linux/namespace"
	"github.com/keyplane/keyplane/scheduler"
)

var (
	// ErrNotFound reports that the namespace does not exist now.
	ErrNotFound = errors.New("network namespace does not exist")
	// ErrDisabled reports that only the agent's own namespace may be used.
	ErrDisabled = errors.New("network namespaces are disabled")
)

// Options configure a Set; the zero value works.
type Options struct {
	Host     kernel.Host // Defaults to this host
	Own      string      // the agent's own namespace. Defaults to that of the calling thread
	Dir      string      // folder of named namespaces. Defaults to /var/run/netns, which mostly is /run/netns
	Idle     int         // maximum of open spaces without a user. Defaults to 16
	Disabled bool        // Open fails for any namespace but the agent's own
	Wait     bool        // the agent makes no namespace: values wait for its name
	// Known keeps across restarts who made the namespaces. Defaults to none.
	Known scheduler.Memory
	Log   *slog.Logger // Defaults to slog.Default()
	// Container returns the file of the namespace of the container with a label, or "".
	// Defaults to none.
	Container func(label string) string
}

// ownPath is the namespace of the calling thread. /proc/self shows the first thread, which
// may be in another namespace for a moment (kernel.Kernel.Sysctl).
const ownPath = "/proc/thread-self/ns/net"

// A Set opens namespaces.
type Set struct {
	opts  Options
	sched *scheduler.Scheduler // nil: not registered
	notes *notes               // who made the namespaces
	users *users               // values that name them

	tidying sync.Mutex        // guards kept, and that one goroutine removes namespaces
	kept    map[string]string // names that stay as long as a process uses them

	mu     sync.Mutex // guards the fields below, and the counters of each Space
	open   map[kernel.ID]*Space
	unused []*Space           // open spaces without a user; the longest unused first
	warned map[reference]bool // desired references that the agent had no right to open
}

// New returns a Set with nothing open.
func New(o Options) *Set {
	if o.Host == nil {
		o.Host = kernel.This{}
	}
	o.Own = cmp.Or(o.Own, ownPath)
	o.Dir = cmp.Or(o.Dir, namesDir())
	o.Idle = cmp.Or(o.Idle, 16)
	o.Log = cmp.Or(o.Log, slog.Default())
	return &Set{opts: o, notes: newNotes(o.Known), users: newUsers(), open: map[kernel.ID]*Space{}, warned: map[reference]bool{}}
}

// usualDir is the folder in which iproute2 keeps names.
const usualDir = "/var/run/netns"

// namesDir returns usualDir with symbolic links resolved, because inotify does not follow them.
func namesDir() string {
	run, err := filepath.EvalSymlinks(filepath.Dir(usualDir))
	if err != nil {
		run = "/run"
	}
	return filepath.Join(run, "netns")
}

// A Space is one open namespace.
type Space struct {
	kernel.Kernel
	ID kernel.ID

	set     *Set
	users   int
	named   bool // was opened by a name
	kept    bool // stays open without a user: Watch tells when its name goes, or it is the own one
	dropped bool // closed when its last user closes it
}

// Own opens the agent's own namespace.
func (s *Set) Own() (*Space, error) { return s.Open(nil) }

// Open opens the namespace that ns refers to now. nil, or type UNDEFINED, is the agent's
// own namespace. The error is ErrNotFound if the namespace does not exist.
func (s *Set) Open(ns *namespace.NetNamespace) (*Space, error) {
	path := s.path(ns)
	if s.opts.Disabled && path != s.opts.Own {
		return nil, fmt.Errorf("%s: %w: remove the namespace, or \"disabled: true\" from linux-nsplugin.conf", Text(ns), ErrDisabled)
	}
	id, err := s.opts.Host.Stat(path)
	if err != nil {
		return nil, s.explain(ns, err)
	}
	_, named := s.nameOf(ns)
	kept := named || path == s.opts.Own
	if space, ok := s.find(id, named, kept); ok {
		return space, nil
	}
	// The lock is not held here: a path on a dead file server can block forever, and must
	// not block access to other namespaces.
	k, id, err := s.opts.Host.Open(path)
	if err != nil {
		return nil, s.explain(ns, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.use(s.keep(k, id), named, kept), nil
}

// find returns a space that is open already.
func (s *Set) find(id kernel.ID, named, kept bool) (*Space, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	space := s.open[id]
	if space == nil {
		return nil, false
	}
	return s.use(space, named, kept), true
}

// keep stores k, opened as id. Another caller may have opened the same namespace
// meanwhile; its space wins, and k is closed.
func (s *Set) keep(k kernel.Kernel, id kernel.ID) *Space {
	if space := s.open[id]; space != nil {
		s.close(k)
		return space
	}
	space := &Space{Kernel: k, ID: id, set: s}
	s.open[id] = space
	return space
}

// use counts a user. The mutex is held.
func (s *Set) use(space *Space, named, kept bool) *Space {
	space.users++
	space.named = space.named || named
	space.kept = space.kept || kept
	s.unused = slices.DeleteFunc(s.unused, func(o *Space) bool { return o == space })
	return space
}

// ByID opens a namespace that is open already, such as one that contains a link.
func (s *Set) ByID(id kernel.ID) (*Space, bool) { return s.find(id, false, false) }

// Kept reports whether the space may be held for a long time: it has a name, and Watch tells when that goes, or it
// is the agent's own.
func (sp *Space) Kept() bool {
	sp.set.mu.Lock()
	defer sp.set.mu.Unlock()
	return sp.kept
}

// Close ends one use of the space.
func (sp *Space) Close() {
	s := sp.set
	s.mu.Lock()
	defer s.mu.Unlock()
	sp.users--
	switch {
	case sp.users > 0:
	case sp.dropped:
		s.close(sp.Kernel)
	case !sp.kept:
		// Nobody tells when the process or container ends: an open space would keep its
		// namespace, and the links in it.
		delete(s.open, sp.ID)
		s.close(sp.Kernel)
	default:
		s.unused = append(s.unused, sp)
		s.trim()
	}
}

// trim closes the spaces that were unused for longest.
func (s *Set) trim() {
	for len(s.unused) > s.opts.Idle {
		oldest := s.unused[0]
		s.unused = s.unused[1:]
		delete(s.open, oldest.ID)
		s.close(oldest.Kernel)
	}
}

// Drop forgets a namespace that has lost its name. The last user that closes it releases
// it.
func (s *Set) Drop(id kernel.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	space := s.open[id]
	if space == nil {
		return
	}
	delete(s.open, id)
	space.dropped = true
	if space.users == 0 {
		s.unused = slices.DeleteFunc(s.unused, func(o *Space) bool { return o == space })
		s.close(space.Kernel)
	}
}

// close returns a handle of a namespace.
func (s *Set) close(k kernel.Kernel) {
	if err := k.Close(); err != nil {
		s.opts.Log.Warn("closing a network namespace", "err", err)
	}
}

// Named returns a reference to each namespace that has a name.
func (s *Set) Named() ([]*namespace.NetNamespace, error) {
	if s.opts.Disabled {
		return nil, nil
	}
	entries, err := os.ReadDir(s.opts.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing named network namespaces: %w", err)
	}
	refs := make([]*namespace.NetNamespace, len(entries))
	for i, entry := range entries {
		refs[i] = &namespace.NetNamespace{Type: namespace.NetNamespace_NSID, Reference: entry.Name()}
	}
	return refs, nil
}
