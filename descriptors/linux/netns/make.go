package netns

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/internal/printable"
	"github.com/keyplane/keyplane/internal/wake"
	"github.com/keyplane/keyplane/proto/ligato/linux/namespace"
	"github.com/keyplane/keyplane/scheduler"
)

// The namespace of a name that values need is made if nothing has the name. The agent notes who made it,
// because only its own ones are made again and removed:
//
//	noted      when                                        once the name leads nowhere
//	nothing    no value has needed the name yet            it is made at the first need
//	ours       the agent made the namespace                it is made again
//	foreign    it was there when a value needed it         its maker is waited for, such as a CNI
//
// A note ends when no value names the namespace any more. Notes survive a restart of the agent, and a reboot;
// after a reboot a namespace of that name is another one.

// A note says who made the namespace of a name.
type note struct {
	foreign bool
	boot    string // of the host, when the agent made it
	// Empty between the note and the end of making: the process may be killed there.
	id kernel.ID
}

// notes are what is known about names. Use newNotes.
type notes struct {
	saved scheduler.Memory // nil: nothing is saved
	boot  string
	// asked is set when a value needs a name that was not needed before.
	asked wake.Signal

	mu sync.Mutex // guards the fields below, and that a namespace and its note change together
	// When a value was last seen to need the name.
	needed map[string]time.Time
	byName map[string]note
}

// bootID identifies the boot of the host.
const bootID = "/proc/sys/kernel/random/boot_id"

// newNotes returns the saved notes.
func newNotes(saved scheduler.Memory) *notes {
	n := &notes{saved: saved, asked: wake.New(), needed: map[string]time.Time{}, byName: map[string]note{}}
	boot, _ := os.ReadFile(bootID) // without it, namespaces of the run before are those of others
	n.boot = string(bytes.TrimSpace(boot))
	if saved == nil {
		return n
	}
	for name, text := range saved.Load() {
		var one note
		if _, err := fmt.Sscanf(string(text), "ours %s %d %d", &one.boot, &one.id.Dev, &one.id.Ino); err != nil {
			one = note{foreign: true}
		}
		n.byName[name] = one
	}
	return n
}

// text returns the saved form of a note.
func (n note) text() []byte {
	if n.foreign {
		return []byte("foreign")
	}
	return fmt.Appendf(nil, "ours %s %d %d", n.boot, n.id.Dev, n.id.Ino)
}

// put saves a note. The mutex is held.
func (n *notes) put(name string, one note) error {
	n.byName[name] = one
	return n.save(name, one.text())
}

// drop forgets a note. The mutex is held.
func (n *notes) drop(name string) error {
	delete(n.byName, name)
	return n.save(name, nil)
}

// save saves the text of a note; nil removes it.
func (n *notes) save(name string, text []byte) error {
	if n.saved == nil {
		return nil
	}
	one := func(yield func(string, []byte) bool) { yield(name, text) }
	return n.saved.Save(iter.Seq2[string, []byte](one))
}

// need notes that a value needs a name.
func (n *notes) need(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, known := n.needed[name]
	n.needed[name] = time.Now()
	if !known {
		n.asked.Set()
	}
}

// ours reports whether the agent made the namespace that has a name now. The mutex is held.
func (n *notes) ours(name string, id kernel.ID) bool {
	one, noted := n.byName[name]
	return noted && !one.foreign && one.boot == n.boot && (one.id == id || one.id == kernel.ID{})
}

// offers returns the needed names that lead nowhere, and whose namespaces the agent may make. It notes that
// the others which exist now are foreign.
func (s *Set) offers(now map[string]kernel.ID) (names []string) {
	n := s.notes
	n.mu.Lock()
	defer n.mu.Unlock()
	for name := range n.needed {
		one := n.byName[name]
		id, exists := now[name]
		switch {
		case exists && !n.ours(name, id) && !one.foreign:
			if err := n.put(name, note{foreign: true}); err != nil {
				s.opts.Log.Warn("cannot save that another program made a network namespace; after a restart the agent may make it", "namespace", name, "err", err)
			}
		case !exists && !one.foreign && s.free(name):
			names = append(names, name)
		}
	}
	return names
}

// free reports whether nothing has a name.
func (s *Set) free(name string) bool {
	_, err := s.opts.Host.Stat(filepath.Join(s.opts.Dir, name))
	return errors.Is(err, fs.ErrNotExist)
}

// Enter is Open for a verb that creates something in the namespace. It makes the namespace of a name that
// leads nowhere, if the agent may. An error about a missing right is terminal.
func (s *Set) Enter(ns *namespace.NetNamespace) (*Space, error) {
	space, err := s.Open(ns)
	name, named := s.nameOf(ns)
	if !errors.Is(err, ErrNotFound) || !named || s.opts.Wait {
		return space, err
	}
	if err := s.make(name); err != nil {
		return nil, err
	}
	return s.Open(ns)
}

// make makes the namespace of a name, and notes that.
func (s *Set) make(name string) error {
	n := s.notes
	n.mu.Lock()
	defer n.mu.Unlock()
	path := filepath.Join(s.opts.Dir, name)
	switch {
	case !s.free(name): // made meanwhile, or a file that is none: Open says so
		return nil
	case n.byName[name].foreign:
		return fmt.Errorf("namespace %s: %w: another program made it before; %s", printable.Word(name), ErrNotFound, remedy(name))
	}
	// Before it is made: a kill in between must not leave one that nobody removes.
	if err := n.put(name, note{boot: n.boot}); err != nil {
		return fmt.Errorf("namespace %s: cannot save that it is ours: %w", printable.Word(name), err)
	}
	id, err := s.opts.Host.Make(path)
	if err != nil {
		return errors.Join(s.cannot(name, err), n.drop(name))
	}
	s.opts.Log.Info("made a network namespace", "namespace", name)
	if err := n.put(name, note{boot: n.boot, id: id}); err != nil {
		s.opts.Log.Warn("cannot save the identity of a network namespace", "namespace", name, "err", err)
	}
	return nil
}

// cannot returns the error of a namespace that was not made. A missing right stays missing until somebody
// changes how the agent is started, so no retry helps.
func (s *Set) cannot(name string, err error) error {
	if !slices.ContainsFunc([]error{unix.EPERM, unix.EACCES, unix.EROFS, kernel.ErrHidden}, func(e error) bool { return errors.Is(err, e) }) {
		return fmt.Errorf("making namespace %s: %w", printable.Word(name), err)
	}
	return scheduler.Terminal(fmt.Errorf("the agent has no right to make namespace %s: %w; it needs CAP_SYS_ADMIN, a writable %s, "+
		"and mounts there that the host sees (packaging/README.md); or %s", printable.Word(name), err, s.opts.Dir, remedy(name)))
}

// settled is the time after which a need without a value is forgotten. Dependencies are asked for before
// the value is there.
const settled = time.Minute

// Tidy removes the namespaces that the agent made and that no value names any more, unless something foreign
// is in them. No value may change meanwhile. named are the names that values have.
func (s *Set) Tidy(named map[string]bool) {
	n := s.notes
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, since := range n.needed {
		if !named[name] && time.Since(since) > settled {
			delete(n.needed, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(n.byName)) {
		if named[name] {
			continue
		}
		if err := s.remove(name); err != nil {
			s.opts.Log.Warn("cannot remove a network namespace", "namespace", name, "err", err)
		}
	}
}

// remove ends the note of a name, and its namespace if that is ours and empty. The mutex of the notes is held.
func (s *Set) remove(name string) error {
	path := filepath.Join(s.opts.Dir, name)
	id, err := s.opts.Host.Stat(path)
	if err != nil || !s.notes.ours(name, id) {
		return s.notes.drop(name) // it is gone, or of somebody else
	}
	what, err := s.foreignIn(name, id)
	if err != nil {
		return err
	}
	if what != "" {
		s.opts.Log.Warn("a network namespace of the agent stays, because something of others is in it", "namespace", name, "what", what)
		return s.notes.drop(name) // it belongs to them now
	}
	if err := s.opts.Host.Unmake(path); err != nil {
		return err
	}
	s.opts.Log.Info("removed a network namespace", "namespace", name)
	return s.notes.drop(name)
}

// foreignIn returns what is in a namespace besides the links that the kernel makes by itself, or "".
func (s *Set) foreignIn(name string, id kernel.ID) (string, error) {
	if pid, used := s.opts.Host.Used(id); used {
		return "process " + pid, nil
	}
	space, err := s.Open(&namespace.NetNamespace{Type: namespace.NetNamespace_NSID, Reference: name})
	if err != nil {
		return "", err
	}
	defer space.Close()
	links, err := space.Links()
	for _, l := range links {
		if !strings.Contains(fallbacks, " "+l.Name+" ") {
			return "link " + l.Name, err
		}
	}
	return "", err
}

// fallbacks are the links that the kernel makes in each new namespace, by its modules.
const fallbacks = " lo tunl0 gre0 gretap0 erspan0 ip_vti0 ip6_vti0 sit0 ip6tnl0 ip6gre0 "

// NameOf returns the name by which a value refers to its namespace, if it does.
func (s *Set) NameOf(ns *namespace.NetNamespace) (name string, ok bool) { return s.nameOf(ns) }

// Left tells that something was removed from a namespace, which may be the last.
func (s *Set) Left() { s.left.Set() }

// Leaves is readable after Left: then Tidy may find something.
func (s *Set) Leaves() <-chan struct{} { return s.left.C() }
