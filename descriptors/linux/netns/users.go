package netns

import (
	"sync"

	"github.com/keyplane/keyplane/proto/ligato/linux/namespace"
	"github.com/keyplane/keyplane/scheduler"
)

// followed is the prefix of the keys of values that may name a namespace.
const followed = "config/linux/"

// users are the values that name namespaces, as their statuses say. A plan or a validation publishes no status,
// so it needs no namespace. Use newUsers.
type users struct {
	mu    sync.Mutex           // guards the fields below
	uses  map[string][]use     // by the key of a value
	names map[string]userCount // by the name of a namespace
}

// A use says that a value names a namespace.
type use struct {
	name string
	// The value is desired and names the namespace itself. The file of a name is somebody's own matter.
	needed bool
}

// A userCount counts the values that name a namespace.
type userCount struct{ all, needing int }

func newUsers() *users { return &users{uses: map[string][]use{}, names: map[string]userCount{}} }

// update takes new statuses. It reports whether other names are needed than before, and returns those that no
// value has any more.
func (u *users) update(changed []*scheduler.Status, usesOf func(*scheduler.Status) []use) (asked bool, left []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, st := range changed {
		before, now := u.uses[st.Key], usesOf(st)
		if len(now) > 0 {
			u.uses[st.Key] = now
		} else {
			delete(u.uses, st.Key)
		}
		for _, one := range now {
			asked = u.add(one, 1) || asked
		}
		for _, one := range before {
			asked = u.add(one, -1) || asked
			if u.names[one.name].all == 0 {
				delete(u.names, one.name)
				left = append(left, one.name)
			}
		}
	}
	return asked, left
}

// add counts a use, and reports whether the name is needed now and was not before, or the reverse. The mutex is held.
func (u *users) add(one use, n int) (asked bool) {
	count := u.names[one.name]
	before := count.needing > 0
	count.all += n
	if one.needed {
		count.needing += n
	}
	u.names[one.name] = count
	return before != (count.needing > 0)
}

// needed returns the names that desired values need.
func (u *users) needed() (names []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for name, count := range u.names {
		if count.needing > 0 {
			names = append(names, name)
		}
	}
	return names
}

// has reports whether Watch has seen a value that names a namespace, and will see it leave.
func (u *users) has(name string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.names[name].all > 0
}

// usesOf returns the namespaces that a value names: the desired one, and the one in which it is.
func (s *Set) usesOf(st *scheduler.Status) (out []use) {
	for i, v := range []any{st.Normalized(), st.Actual} {
		in, ok := v.(interface {
			GetNamespace() *namespace.NetNamespace
		})
		if !ok {
			continue
		}
		ns := in.GetNamespace()
		if name, ok := s.nameOf(ns); ok {
			out = append(out, use{name, i == 0 && st.Desired != nil && ns.GetType() == namespace.NetNamespace_NSID})
		}
	}
	return out
}

// named returns the names that values have now, desired or actual.
func (s *Set) named() map[string]bool {
	out := map[string]bool{}
	for st := range s.sched.All() {
		for _, one := range s.usesOf(st) {
			out[one.name] = true
		}
	}
	return out
}
