// Package leftovers records state that VPP keeps after an interface was deleted, and
// interfaces that VPP may have created without our knowledge.
//
// VPP keeps DHCP clients, neighbours, tag rewriting and more under a sw_if_index when the
// interface is deleted. It refuses to end that state while no interface has the index, and
// gives it to the next interface with that index. The Registry notes such state when it is
// set, with a function that ends it:
//
//	registry.Set(5, "loop1", "DHCP client", end, start) // loop1, at index 5, gets a client
//	registry.End(5, "DHCP client", stop)                // the client is stopped
//	registry.EndStale(ctx, api, 5)                         // index 5 has a new interface: end the rest
//	registry.Reclaim(ctx, api)                          // end the state of all free indexes
//
// The agent ends the stale state of an index before it uses a new interface on it. Reclaim gives each free
// index a filler interface for a moment. The index of an interface that others have deleted, and of which the
// agent does not know that yet, may have state that is not noted: a new interface gets another one, by Filling.
//
// Unconfirmed has the creations whose outcome is unknown, because the connection broke.
//
// Tests: descriptors/vpp/iface and descriptors/vpp run these on a simulated VPP.
package leftovers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ethernet_types"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
)

// An End ends one piece of state on the interface that has an index.
type End func(ctx context.Context, at interface_types.InterfaceIndex) error

// A Registry notes state that can outlive its interface. The zero value is empty.
type Registry struct {
	// FillerMAC is the MAC address of fillers, which no other interface has. By it an agent finds
	// the fillers of one that was killed. It is set before the first use.
	FillerMAC ethernet_types.MacAddress

	// ending is held while state is ended: nobody uses the interface before that is done.
	ending sync.Mutex

	// reclaiming is held by Reclaim, EndStale and Clear: state of one index is ended only
	// after every free index has a filler. It guards closed.
	reclaiming sync.Mutex
	closed     bool

	mu      sync.Mutex // guards byIndex
	byIndex map[uint32]Noted
}

// Noted is the state on one index, by its kind.
type Noted map[string]*leftover

// A leftover is one piece of state. Its interface can still exist.
type leftover struct {
	owner string // the interface that it was set on; empty: that interface is gone
	end   End
}

// Note records that an interface has, or had, state that may outlive it. An empty owner means
// that the interface is gone. An index has at most one piece of state of each kind.
func (r *Registry) Note(index uint32, owner, kind string, end End) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byIndex == nil {
		r.byIndex = map[uint32]Noted{}
	}
	if r.byIndex[index] == nil {
		r.byIndex[index] = Noted{}
	}
	r.byIndex[index][kind] = &leftover{owner, end}
}

// Set sets state with set, and notes it before: if the connection breaks before VPP answers, VPP
// may have it. A note without state is harmless, because ending what is not there does nothing.
func (r *Registry) Set(index uint32, owner, kind string, end End, set func() error) error {
	r.Note(index, owner, kind, end)
	return set()
}

// End ends state with end, and removes its note if that succeeds.
func (r *Registry) End(index uint32, kind string, end func() error) error {
	err := end()
	if err == nil {
		r.Ended(index, kind)
	}
	return err
}

// NoteOrphaned notes state that was found on an index without an interface. If an interface
// has the index by now, the state is its own, and is not noted.
func (r *Registry) NoteOrphaned(ctx context.Context, a conn.API, index uint32, kind string, end End) error {
	all, err := dumpOne(ctx, a, index)
	if err == nil && len(all) == 0 {
		r.Note(index, "", kind, end)
	}
	return err
}

// dumpOne returns the interface with the index, or none.
func dumpOne(ctx context.Context, a conn.API, index uint32) ([]vppif.SwInterfaceDetails, error) {
	return conn.Dump[vppif.SwInterfaceDetails](ctx, a, &vppif.SwInterfaceDump{SwIfIndex: interface_types.InterfaceIndex(index)})
}

// Ended records that VPP has no such state on the index any more.
func (r *Registry) Ended(index uint32, kind string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byIndex[index], kind)
	if len(r.byIndex[index]) == 0 {
		delete(r.byIndex, index)
	}
}

// Restarted empties the registry: VPP was restarted.
func (r *Registry) Restarted() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byIndex = nil
}

// of returns the state that is noted on an index.
func (r *Registry) of(index uint32) Noted {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.byIndex[index])
}

// All returns the state that is noted, by index.
func (r *Registry) All() map[uint32]Noted {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make(map[uint32]Noted, len(r.byIndex))
	for index, noted := range r.byIndex {
		out[index] = maps.Clone(noted)
	}
	return out
}

// EndStale ends the state that earlier interfaces left on an index, if an interface has it now.
func (r *Registry) EndStale(ctx context.Context, a conn.API, index uint32) error {
	r.reclaiming.Lock()
	defer r.reclaiming.Unlock()
	noted := r.of(index) // before the dump: state that is noted later belongs to the dumped name
	if len(noted) == 0 {
		return nil
	}
	if err := r.reclaim(ctx, a); err != nil {
		return err
	}
	all, err := dumpOne(ctx, a, index)
	if err != nil || len(all) != 1 {
		return err
	}
	return r.EndOthers(ctx, index, noted, ifindex.Tags(nil).NameOf(all[0]))
}

// EndOthers ends noted state of an index, except the state of the interface with this name,
// which has the index now. An empty name owns nothing.
func (r *Registry) EndOthers(ctx context.Context, index uint32, noted Noted, name string) error {
	r.ending.Lock()
	defer r.ending.Unlock()
	var errs []error
	for kind, one := range noted {
		if one.owner == name && name != "" || r.of(index)[kind] != one {
			continue
		}
		err := one.end(ctx, interface_types.InterfaceIndex(index))
		switch {
		case errors.Is(err, api.INVALID_SW_IF_INDEX):
			return nil // the interface is gone again
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", kind, err)) // go on with the others
		default:
			r.Ended(index, kind)
		}
	}
	return errors.Join(errs...)
}
