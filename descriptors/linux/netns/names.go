package netns

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/keys"
	"github.com/keyplane/keyplane/internal/printable"
	"github.com/keyplane/keyplane/proto/ligato/linux/namespace"
	"github.com/keyplane/keyplane/scheduler"
)

// Name is the name of the descriptor of names.
const Name = "linux-netns"

// Register adds the descriptor of names to sched: linux/netns/<name> is OBTAINED while a
// namespace has that name, and while a desired value needs one that the agent may make.
// Descriptors that open namespaces name it in RetrieveAfter. Watch tells when names appear
// and vanish.
func (s *Set) Register(sched *scheduler.Scheduler, connection string) error {
	s.sched = sched
	_, err := scheduler.Register(sched.OnConnection(connection), scheduler.Descriptor[*emptypb.Empty, struct{}]{
		Name: Name, Prefix: keys.Namespaces, Retrieve: s.retrieve,
		Absent: func(key string) string {
			return s.absent(strings.TrimPrefix(key, keys.Namespaces))
		},
	})
	return err
}

// absent says why no namespace has a name: there may be a file that is none, such as after a reboot with a
// persistent /run or from a failed "ip netns add".
func (s *Set) absent(name string) string {
	path := filepath.Join(s.opts.Dir, name)
	one, _ := s.notes.of(name)
	_, what := s.look(name)
	switch {
	case what == fileThere:
		return printable.Word(path) + " is there, but it is no network namespace; remove it, and " + remedy(name)
	case one.foreign && !s.opts.Wait:
		return "another program made it before, and is waited for; or " + remedy(name)
	}
	return remedy(name)
}

// Dependencies returns what must exist before a value can be in ns: the name of the namespace, or
// its container. A process, or a file that is not a name, is looked up when it is used: nobody
// tells when it comes or goes. Without namespaces there are none either, so that Open reports that
// they are disabled. A missing namespace is made for values with GetNamespace under config/linux/ only.
func (s *Set) Dependencies(ns *namespace.NetNamespace) []scheduler.Dependency {
	if s.opts.Disabled {
		return nil
	}
	if ns.GetType() == namespace.NetNamespace_MICROSERVICE {
		return []scheduler.Dependency{{Label: "microservice-available", Key: keys.Microservice(ns.GetReference())}}
	}
	if name, ok := s.nameOf(ns); ok {
		return []scheduler.Dependency{{Label: "namespace-exists", Key: keys.Namespace(name)}}
	}
	return nil
}

// nameOf returns the name by which a value refers to its namespace. The file of a name is the
// name.
func (s *Set) nameOf(ns *namespace.NetNamespace) (name string, ok bool) {
	switch ns.GetType() {
	case namespace.NetNamespace_NSID:
		return ns.GetReference(), true
	case namespace.NetNamespace_FD:
		dir, name := filepath.Split(filepath.Clean(ns.GetReference()))
		dir = filepath.Clean(dir)
		return name, dir == s.opts.Dir || dir == usualDir && s.opts.Dir == namesDir()
	default:
		return "", false
	}
}

type found = scheduler.Found[*emptypb.Empty, struct{}]

// retrieve lists the names.
func (s *Set) retrieve(context.Context, []scheduler.Desired[*emptypb.Empty]) iter.Seq2[found, error] {
	return func(yield func(found, error) bool) {
		now, _, err := s.names()
		if err != nil {
			yield(found{}, err)
			return
		}
		for name := range withOffers(now, s.offers(now)) {
			if !yield(found{Key: keys.Namespace(name), Value: &emptypb.Empty{}, Foreign: true}, nil) {
				return
			}
		}
	}
}

// withOffers yields the names that lead somewhere, and those that the agent may make.
func withOffers(now map[string]kernel.ID, offers []string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for name := range now {
			if !yield(name) {
				return
			}
		}
		for _, name := range offers {
			if !yield(name) {
				return
			}
		}
	}
}

// offers returns the needed names that lead nowhere, and whose namespaces the agent may make. A name is offered
// until it leads somewhere: in between its values would wait, and what was just made would be withdrawn. So it
// looks at these names again, and updates now, while no namespace begins or ends to be made.
func (s *Set) offers(now map[string]kernel.ID) (names []string) {
	if s.opts.Wait {
		return nil
	}
	n := s.notes
	needed := s.users.needed()
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, name := range needed {
		if n.busy[name] { // it leads nowhere yet, or not any more
			if _, exists := now[name]; !exists {
				names = append(names, name)
			}
			continue
		}
		id, what := s.look(name)
		delete(now, name)
		one, noted := n.byName[name]
		switch {
		case what == namespaceThere:
			now[name] = id
		case !one.foreign && (what == nothingThere || noted):
			names = append(names, name)
		}
	}
	return names
}

// What a name leads to.
type target int

const (
	nothingThere target = iota
	fileThere           // that is no namespace, or not yet
	namespaceThere
)

// look returns what a name leads to now. A name that cannot be read may lead to a namespace.
func (s *Set) look(name string) (kernel.ID, target) {
	id, err := s.opts.Host.Stat(filepath.Join(s.opts.Dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return id, nothingThere
	}
	if dir, err := s.opts.Host.Stat(s.opts.Dir); err == nil && dir.Dev == id.Dev {
		return id, fileThere
	}
	return id, namespaceThere
}

// names returns the namespace of each name, and whether some files are not bound yet. After an
// error it returns none: a name that cannot be read has not vanished.
func (s *Set) names() (now map[string]kernel.ID, unbound bool, err error) {
	now = map[string]kernel.ID{}
	dir, err := s.opts.Host.Stat(s.opts.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return now, false, nil
	}
	var entries []os.DirEntry
	if err == nil {
		entries, err = os.ReadDir(s.opts.Dir)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, false, fmt.Errorf("listing named network namespaces: %w", err)
	}
	for _, entry := range entries {
		id, err := s.opts.Host.Stat(filepath.Join(s.opts.Dir, entry.Name()))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, false, fmt.Errorf("named network namespace %s: %w", entry.Name(), err)
		case id.Dev == dir.Dev: // not bound yet: still a plain file
			unbound = true
		default:
			now[entry.Name()] = id
		}
	}
	return now, unbound, nil
}
