package netns

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/internal/bootid"
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
// Only Enter and Watch make notes: whoever only looks changes nothing. A note ends when no value names the
// namespace any more; see tidy.go. Notes survive a restart of the agent, and a reboot; after a reboot a namespace
// of that name is another one.

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
	// unsettled is set when a name of left is to be looked at.
	unsettled wake.Signal

	// mu guards the fields below. Nobody holds it while the kernel makes or removes a namespace, which may
	// take seconds: a busy name is held instead.
	mu     sync.Mutex
	idle   *sync.Cond // some name is not busy any more
	busy   map[string]bool
	byName map[string]note
	// entered are the names that verbs have entered since Tidy has begun with them.
	entered map[string]bool
	// left are the names that perhaps no value has any more.
	left map[string]bool
}

// newNotes returns the saved notes.
func newNotes(saved scheduler.Memory) *notes {
	n := &notes{
		saved: saved, boot: bootid.Read(), unsettled: wake.New(),
		busy: map[string]bool{}, byName: map[string]note{}, entered: map[string]bool{}, left: map[string]bool{},
	}
	n.idle = sync.NewCond(&n.mu)
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

// hold waits until nobody makes or removes the namespace of a name, and keeps others from it until release.
func (n *notes) hold(name string) (release func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.await(name)
	n.busy[name] = true
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.busy, name)
		n.idle.Broadcast()
	}
}

// await waits until nobody holds a name. The mutex is held.
func (n *notes) await(name string) {
	for n.busy[name] {
		n.idle.Wait()
	}
}

// enter notes that a verb is about to work in a namespace, so that Tidy does not remove it meanwhile.
func (n *notes) enter(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.await(name)
	if _, noted := n.byName[name]; noted { // others are never removed
		n.entered[name] = true
	}
}

// of returns the note of a name.
func (n *notes) of(name string) (one note, noted bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	one, noted = n.byName[name]
	return one, noted
}

// all returns the names with a note, sorted.
func (n *notes) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Sorted(maps.Keys(n.byName))
}

// put saves a note.
func (n *notes) put(name string, one note) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.byName[name] = one
	return n.save(name, one.text())
}

// drop forgets a note.
func (n *notes) drop(name string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.byName, name)
	delete(n.entered, name)
	return n.save(name, nil)
}

// save saves the text of a note; nil removes it. The mutex is held.
func (n *notes) save(name string, text []byte) error {
	if n.saved == nil {
		return nil
	}
	one := func(yield func(string, []byte) bool) { yield(name, text) }
	return n.saved.Save(iter.Seq2[string, []byte](one))
}

// ours reports whether the agent made a namespace, of which n is the note.
func (n note) ours(boot string, id kernel.ID) bool {
	return !n.foreign && n.boot == boot && (n.id == id || n.id == kernel.ID{})
}

// noteForeign notes that another program made the namespace that has a name, unless there is a note.
func (s *Set) noteForeign(name string) {
	n := s.notes
	n.mu.Lock()
	defer n.mu.Unlock()
	one, noted := n.byName[name]
	if n.busy[name] || one.foreign {
		return
	}
	id, what := s.look(name)
	if what != namespaceThere || noted && one.ours(n.boot, id) {
		return
	}
	n.byName[name] = note{foreign: true}
	if err := n.save(name, note{foreign: true}.text()); err != nil {
		s.opts.Log.Warn("cannot save that another program made a network namespace; after a restart the agent may make it", "namespace", name, "err", err)
	}
}

// noteAllForeign is noteForeign for the names that values need.
func (s *Set) noteAllForeign() {
	if s.opts.Wait {
		return
	}
	for _, name := range s.users.needed() {
		s.noteForeign(name)
	}
}

// Enter is Open for a verb that creates something in the namespace. It makes the namespace of a name that
// leads nowhere, if the agent may. An error about a missing right is terminal.
func (s *Set) Enter(ns *namespace.NetNamespace) (*Space, error) {
	name, named := s.nameOf(ns)
	if named && !s.opts.Disabled {
		s.notes.enter(name)
	}
	space, err := s.Open(ns)
	if ns.GetType() != namespace.NetNamespace_NSID || s.opts.Wait { // the file of a name is somebody's own matter
		return space, err
	}
	switch {
	case err == nil:
		s.noteForeign(name)
		return space, nil
	case !errors.Is(err, ErrNotFound):
		return nil, err
	}
	if err := s.make(name); err != nil {
		return nil, err
	}
	return s.Open(ns)
}

// make makes the namespace of a name, and notes that.
func (s *Set) make(name string) error {
	n := s.notes
	defer n.hold(name)()
	path := filepath.Join(s.opts.Dir, name)
	before, noted := n.of(name)
	_, what := s.look(name)
	switch {
	case what == namespaceThere: // made meanwhile
		return nil
	case before.foreign:
		return fmt.Errorf("namespace %s: %w: another program made it before; %s", printable.Word(name), ErrNotFound, remedy(name))
	case what == fileThere && !noted: // Open says so
		return nil
	case what == fileThere:
		// The rest of ours: the process was killed before the file was bound, or /run survived a reboot.
		if err := s.opts.Host.Unmake(path); err != nil {
			return s.cannot(name, err)
		}
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
	// The value may be removed before its status is read, or have failed: nothing else would tell that it has left.
	n.leave(name)
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
