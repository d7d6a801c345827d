package netns

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/proto/ligato/linux/namespace"
)

// A Place is an open namespace with all references that lead to it. Retrieve reads each place
// once, although values may refer to it in several ways: by name, by process, by file.
type Place struct {
	*Space
	Own     bool // the agent's own namespace
	first   *namespace.NetNamespace
	reached map[reference]bool // by all references
}

// Places are all namespaces that may have items of this agent. Whoever opens them closes them.
type Places []*Place

// Close closes all places.
func (p Places) Close() {
	for _, one := range p {
		one.Space.Close()
	}
}

// Places opens the agent's own namespace first, then those of desired values, then the named
// ones. A missing or disabled namespace is left out: nothing of the agent is in it. So is a
// desired one that the agent has no right to open, with a warning: one bad reference must not
// keep all other values from being read. After an error nothing is open.
func (s *Set) Places(desired []*namespace.NetNamespace) (places Places, err error) {
	named, err := s.Named()
	if err != nil {
		return nil, err
	}
	refs := append([]*namespace.NetNamespace{nil}, desired...)
	tried, byID := map[reference]bool{}, map[kernel.ID]*Place{}
	for i, ref := range append(refs, named...) {
		// Thousands of values may refer to one namespace.
		if tried[referenceOf(ref)] {
			continue
		}
		tried[referenceOf(ref)] = true
		space, err := s.Open(ref)
		isDesired := 0 < i && i < len(refs)
		denied := isDesired && s.denied(ref, err)
		if denied || errors.Is(err, ErrNotFound) || errors.Is(err, ErrDisabled) {
			continue
		}
		if err != nil {
			places.Close()
			return nil, err
		}
		if p := byID[space.ID]; p != nil {
			p.reached[referenceOf(ref)] = true
			space.Close()
			continue
		}
		p := &Place{Space: space, Own: i == 0, first: ref, reached: map[reference]bool{referenceOf(ref): true}}
		byID[space.ID] = p
		places = append(places, p)
	}
	return places, nil
}

// mostWarned bounds the references that denied remembers.
const mostWarned = 256

// denied reports whether err says that the agent lacks the right to open ref. It logs that once,
// until the reference can be opened.
func (s *Set) denied(ref *namespace.NetNamespace, err error) bool {
	r := referenceOf(ref)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.EPERM) {
		delete(s.warned, r)
		return false
	}
	if !s.warned[r] {
		s.opts.Log.Warn("no right to open a network namespace; what is in it is not read", "err", err)
		if len(s.warned) == mostWarned {
			clear(s.warned)
		}
		s.warned[r] = true
	}
	return true
}

// Reached reports whether ref is one of the references that lead here.
func (p *Place) Reached(ref *namespace.NetNamespace) bool {
	return p.reached[referenceOf(ref)]
}

// Ref returns the reference that a value read from here gets: the desired one if it leads here,
// otherwise the first. Another reference to the same namespace would look like a move.
func (p *Place) Ref(desired *namespace.NetNamespace) *namespace.NetNamespace {
	if p.Reached(desired) {
		return desired
	}
	return p.first
}
