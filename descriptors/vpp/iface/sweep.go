package iface

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"go.fd.io/govpp/api"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
)

// An End ends something that VPP has on the interface of an index.
type End func(ctx context.Context, at interface_types.InterfaceIndex) error

// Remains are what VPP keeps of interfaces that somebody has deleted: it refuses to end that
// while nobody has the index, and has it on whoever gets that next. So then it is ended, if the
// interface is one of ours before it has its name. What is lost with an interface without a
// word of its own is noted when it is set. The zero value has none.
type Remains struct {
	ending sync.Mutex // held by who ends: an interface is not used before

	// reclaiming is held by Reclaim, and by who ends what is left on one index: not before Reclaim has
	// given every index its interface.
	reclaiming sync.Mutex

	mu      sync.Mutex // guards byIndex
	byIndex map[uint32]map[string]*remnant
}

// A remnant is one thing of an interface, which may stand still.
type remnant struct {
	owner string // empty: gone
	end   End
}

// Note says that the interface of an index has, or had, something that may outlive it; with no
// owner it has. What tells it from all else on the index.
func (r *Remains) Note(index uint32, owner, what string, end End) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byIndex == nil {
		r.byIndex = map[uint32]map[string]*remnant{}
	}
	if r.byIndex[index] == nil {
		r.byIndex[index] = map[string]*remnant{}
	}
	r.byIndex[index][what] = &remnant{owner, end}
}

// Left is Note of what was found on an index that nobody had; of somebody who has got it meanwhile
// it is his own.
func (r *Remains) Left(ctx context.Context, a conn.API, index uint32, what string, end End) error {
	all, err := conn.Dump[vppif.SwInterfaceDetails](ctx, a, &vppif.SwInterfaceDump{SwIfIndex: interface_types.InterfaceIndex(index)})
	if err == nil && len(all) == 0 {
		r.Note(index, "", what, end)
	}
	return err
}

// Ended says that it is no more.
func (r *Remains) Ended(index uint32, what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if delete(r.byIndex[index], what); len(r.byIndex[index]) == 0 {
		delete(r.byIndex, index)
	}
}

// forget forgets all: VPP was started anew.
func (r *Remains) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byIndex = nil
}

// of are those on an index, by what they are.
func (r *Remains) of(index uint32) map[string]*remnant {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.byIndex[index])
}

// all are those on all indexes.
func (r *Remains) all() map[uint32]map[string]*remnant {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make(map[uint32]map[string]*remnant, len(r.byIndex))
	for index, noted := range r.byIndex {
		out[index] = maps.Clone(noted)
	}
	return out
}

// Sweep ends what the interface that has an index, if there is one, has of others, which had
// it before.
func (r *Remains) Sweep(ctx context.Context, a conn.API, index uint32) error {
	r.reclaiming.Lock()
	defer r.reclaiming.Unlock()
	noted := r.of(index) // before the name: what comes by then is of who has the name
	if len(noted) == 0 {
		return nil
	}
	if err := r.reclaim(ctx, a); err != nil {
		return err
	}
	all, err := conn.Dump[vppif.SwInterfaceDetails](ctx, a, &vppif.SwInterfaceDump{SwIfIndex: interface_types.InterfaceIndex(index)})
	if err != nil || len(all) != 1 {
		return err
	}
	return r.sweep(ctx, index, noted, ifindex.Tags(nil).NameOf(all[0]))
}

// sweep ends what was noted on an index, unless the interface that has it now was its owner. One
// without a name has nothing of its own.
func (r *Remains) sweep(ctx context.Context, index uint32, noted map[string]*remnant, name string) error {
	r.ending.Lock()
	defer r.ending.Unlock()
	var errs []error
	for what, one := range noted {
		if one.owner == name && name != "" || r.of(index)[what] != one {
			continue
		}
		err := one.end(ctx, interface_types.InterfaceIndex(index))
		switch {
		case errors.Is(err, api.INVALID_SW_IF_INDEX):
			return nil // it is gone again
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", what, err)) // the others are ended all the same
		default:
			r.Ended(index, what)
		}
	}
	return errors.Join(errs...)
}

// hasName tells whether VPP has an interface of that index and name.
func hasName(ctx context.Context, a conn.API, index interface_types.InterfaceIndex, name string) (bool, error) {
	all, err := conn.Dump[vppif.SwInterfaceDetails](ctx, a, &vppif.SwInterfaceDump{SwIfIndex: index})
	return len(all) == 1 && ifindex.Tags(nil).NameOf(all[0]) == name, err
}
