package netns

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/proto/ligato/linux/namespace"
)

// A namespace that the agent made is removed when no value names it any more:
//
//  1. Watch sees in the statuses that the last value has left, or make has made a namespace.
//  2. All transactions that run then end, so that every verb in the namespace shows in a status. Others go on.
//  3. If no status names the namespace, and no verb has entered it since, it is removed. A verb that wants to enter
//     waits for that, and makes it again.
//
// What others have in it keeps it: a link of theirs for ever, a process until it has ended.

// lookAgain is the time after which a namespace with a process is looked at again: nobody tells when it ends.
const lookAgain = 10 * time.Second

// leave has Tidy look at names.
func (n *notes) leave(names ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, name := range names {
		if _, noted := n.byName[name]; noted {
			n.left[name] = true
			n.unsettled.Set()
		}
	}
}

// takeLeft returns the names to look at, with those of kept, and forgets which verbs have entered them.
func (n *notes) takeLeft(kept map[string]string) (names []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for name := range kept {
		n.left[name] = true
	}
	names = slices.Sorted(maps.Keys(n.left))
	clear(n.left)
	for _, name := range names {
		delete(n.entered, name)
	}
	return names
}

// enteredAgain reports whether a verb has entered the namespace of a name since takeLeft.
func (n *notes) enteredAgain(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.entered[name]
}

// Complete says that all values are declared: what an earlier run made, and none of them names, is removed.
func (s *Set) Complete() { s.notes.leave(s.notes.all()...) }

// Tidy removes the namespaces that the agent made and that no value names any more, until ctx ends. It needs
// Watch, and the scheduler of Register.
func (s *Set) Tidy(ctx context.Context) {
	again := time.NewTimer(lookAgain)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.notes.unsettled.C():
		case <-again.C:
		}
		if s.removeLeft(ctx) {
			again.Reset(lookAgain)
		}
	}
}

// RemoveAll is Tidy, once: it returns when the namespaces are removed that no value names now.
func (s *Set) RemoveAll(ctx context.Context) {
	s.Complete()
	s.removeLeft(ctx)
}

// removeLeft removes the namespaces that values have left, and reports whether some are to be looked at again
// later.
func (s *Set) removeLeft(ctx context.Context) (later bool) {
	s.tidying.Lock()
	defer s.tidying.Unlock()
	names := s.notes.takeLeft(s.kept)
	if len(names) == 0 {
		return false
	}
	if s.sched == nil || s.sched.Sync(ctx) != nil {
		s.notes.leave(names...)
		return false
	}
	named := s.named()
	names = slices.DeleteFunc(names, func(name string) bool {
		if named[name] && !s.users.has(name) {
			s.notes.leave(name) // Watch is about to see the value, or that it is gone already
		}
		return named[name]
	})
	users := s.processes(names)
	before := s.kept
	s.kept = map[string]string{}
	for _, name := range names {
		if err := s.remove(name, users[name]); err != nil {
			s.opts.Log.Warn("cannot remove a network namespace", "namespace", name, "err", err)
		}
		if pid := s.kept[name]; pid != "" && before[name] == "" {
			s.opts.Log.Warn("a network namespace of the agent stays as long as a process uses it", "namespace", name, "process", pid)
		}
	}
	return len(s.kept) > 0
}

// processes returns the process that keeps the namespace of a name, for each that one keeps. It reads all of
// /proc, so it is called once for many names.
func (s *Set) processes(names []string) map[string]string {
	ids := map[kernel.ID]string{}
	for _, name := range names {
		if id, what := s.look(name); what == namespaceThere {
			ids[id] = name
		}
	}
	out := map[string]string{}
	if len(ids) == 0 {
		return out
	}
	for id, pid := range s.opts.Host.Used(func(id kernel.ID) bool { _, asked := ids[id]; return asked }) {
		out[ids[id]] = pid
	}
	return out
}

// remove ends the note of a name, and its namespace if that is ours and empty. The namespace stays if a process
// uses it.
func (s *Set) remove(name, process string) error {
	n := s.notes
	defer n.hold(name)()
	if n.enteredAgain(name) {
		n.leave(name)
		return nil
	}
	one, _ := n.of(name)
	id, what := s.look(name)
	if what == nothingThere || one.foreign || what == namespaceThere && !one.ours(n.boot, id) {
		return n.drop(name) // it is gone, or of somebody else
	}
	if process != "" {
		s.kept[name] = process
		return nil
	}
	if what == namespaceThere {
		link, err := s.foreignLink(name)
		if err != nil {
			return err
		}
		if link != "" {
			s.opts.Log.Warn("a network namespace of the agent stays, because a link of others is in it", "namespace", name, "link", link)
			return n.drop(name) // it belongs to them now
		}
	}
	if err := s.opts.Host.Unmake(filepath.Join(s.opts.Dir, name)); err != nil {
		return err
	}
	s.opts.Log.Info("removed a network namespace", "namespace", name)
	return n.drop(name)
}

// foreignLink returns a link besides those that the kernel makes by itself, or "".
func (s *Set) foreignLink(name string) (string, error) {
	space, err := s.Open(&namespace.NetNamespace{Type: namespace.NetNamespace_NSID, Reference: name})
	if err != nil {
		return "", err
	}
	defer space.Close()
	links, err := space.Links()
	for _, l := range links {
		if !strings.Contains(fallbacks, " "+l.Name+" ") {
			return l.Name, err
		}
	}
	return "", err
}

// fallbacks are the links that the kernel makes in each new namespace, by its modules.
const fallbacks = " lo tunl0 gre0 gretap0 erspan0 ip_vti0 ip6_vti0 sit0 ip6tnl0 ip6gre0 "
