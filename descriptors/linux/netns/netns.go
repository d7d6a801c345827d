// Package netns finds and opens the network namespaces that values refer to, and
// notices when named ones come and go.
//
//	set := netns.New(netns.Options{})
//	space, err := set.Open(value.GetNamespace()) // nil: the agent's own
//	...
//	defer space.Close()
//	links, err := space.Links()
//
// A Space is a namespace, opened: sockets inside it, shared by all who opened it
// and closed some time after the last of them. It belongs to the namespace, not
// to the name: when a name is given to a new namespace, Open returns a new Space,
// and the old one works until it is closed. An open Space keeps its namespace
// alive, so whoever holds one for long gives it up when Watch says that the name
// is gone.
//
// All of it is safe for use by any goroutine. Tests run with namespaces of their
// own on the real kernel.
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
)

var (
	// ErrNotFound says that there is no such namespace, now.
	ErrNotFound = errors.New("network namespace does not exist")
	// ErrDisabled says that only the agent's own namespace may be used.
	ErrDisabled = errors.New("network namespaces are disabled")
)

// Options are those of a Set; the zero value works.
type Options struct {
	Host     kernel.Host  // Defaults to this host
	Own      string       // the agent's own namespace. Defaults to that of the calling thread
	Dir      string       // where named namespaces are. Defaults to /var/run/netns, which mostly is /run/netns
	Idle     int          // how many spaces stay open that nobody uses. Defaults to 16
	Disabled bool         // Open fails for any namespace but the agent's own
	Log      *slog.Logger // Defaults to slog.Default()
}

// ownPath is not /proc/self, which shows the first thread, and that may be in
// another namespace for a moment (kernel.Kernel.Sysctl).
const ownPath = "/proc/thread-self/ns/net"

// A Set opens namespaces.
type Set struct {
	opts Options

	mu     sync.Mutex // guards what follows, and the counters of each Space
	open   map[kernel.ID]*Space
	unused []*Space // open, with no user; the longest unused first
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
	return &Set{opts: o, open: map[kernel.ID]*Space{}}
}

// namesDir is where iproute2 keeps names, without symbolic links, which file
// events do not follow.
func namesDir() string {
	run, err := filepath.EvalSymlinks("/var/run")
	if err != nil {
		run = "/run"
	}
	return filepath.Join(run, "netns")
}

// A Space is one namespace, opened.
type Space struct {
	kernel.Kernel
	ID kernel.ID

	set     *Set
	users   int
	named   bool // was opened by a name
	dropped bool // not to be kept when nobody uses it
}

// Own opens the agent's own namespace.
func (s *Set) Own() (*Space, error) { return s.Open(nil) }

// Open opens the namespace that ns refers to now: nil or of type UNDEFINED, the
// agent's own. The error is ErrNotFound where there is none.
func (s *Set) Open(ns *namespace.NetNamespace) (*Space, error) {
	path := s.path(ns)
	if s.opts.Disabled && path != s.opts.Own {
		return nil, fmt.Errorf("%s: %w: expected no namespace, or linux-nsplugin.conf without \"disabled: true\"", Text(ns), ErrDisabled)
	}
	id, err := s.opts.Host.Stat(path)
	if err != nil {
		return nil, s.explain(ns, err)
	}
	named := ns.GetType() == namespace.NetNamespace_NSID
	if space, ok := s.find(id, named); ok {
		return space, nil
	}
	// The lock is not held here: a path on a dead file server can block for ever, and must
	// not keep others from their namespaces.
	k, id, err := s.opts.Host.Open(path)
	if err != nil {
		return nil, s.explain(ns, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.use(s.keep(k, id), named), nil
}

// find opens a space that is open already.
func (s *Set) find(id kernel.ID, named bool) (*Space, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	space := s.open[id]
	if space == nil {
		return nil, false
	}
	return s.use(space, named), true
}

// keep remembers k, opened as id. Another caller may have opened the same namespace at the
// same time, and the path may lead to another one than before.
func (s *Set) keep(k kernel.Kernel, id kernel.ID) *Space {
	if space := s.open[id]; space != nil {
		s.close(k)
		return space
	}
	space := &Space{Kernel: k, ID: id, set: s}
	s.open[id] = space
	return space
}

func (s *Set) use(space *Space, named bool) *Space {
	space.users++
	space.named = space.named || named
	s.unused = slices.DeleteFunc(s.unused, func(o *Space) bool { return o == space })
	return space
}

// ByID opens a namespace that is open already, such as one that contains a link.
func (s *Set) ByID(id kernel.ID) (*Space, bool) { return s.find(id, false) }

// Close ends the use of the space by one who opened it.
func (sp *Space) Close() {
	s := sp.set
	s.mu.Lock()
	defer s.mu.Unlock()
	sp.users--
	switch {
	case sp.users > 0:
	case sp.dropped:
		s.close(sp.Kernel)
	default:
		s.unused = append(s.unused, sp)
		s.trim()
	}
}

// trim closes what nobody has used for longest.
func (s *Set) trim() {
	for len(s.unused) > s.opts.Idle {
		oldest := s.unused[0]
		s.unused = s.unused[1:]
		delete(s.open, oldest.ID)
		s.close(oldest.Kernel)
	}
}

// Drop forgets a namespace that has lost its name, so that it can go when its
// last user closes it.
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
