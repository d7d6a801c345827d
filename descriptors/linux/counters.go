package linux

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/descriptors/linux/iface"
	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
)

// Counters are the kernel's counters of an existing interface.
type Counters struct {
	Name     string // of the value
	HostName string // in the kernel
	Index    int    // ifindex, unique within a namespace
	kernel.Counters
}

// Counters reads the counters of all existing interfaces, sorted by name. One that is
// removed meanwhile is left out.
func (p *Plugin) Counters(ctx context.Context) ([]Counters, error) {
	if p.links == nil {
		return nil, nil
	}
	var out []Counters
	all := p.links.All()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		found, err := p.counters(all[name])
		if errors.Is(err, unix.ENODEV) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("linux: counters of %s: %w", name, err)
		}
		out = append(out, Counters{name, all[name].HostName, all[name].Index, found})
	}
	return out, nil
}

// counters reads the counters of one interface, in the namespace that has it.
func (p *Plugin) counters(of iface.Meta) (kernel.Counters, error) {
	space, open := p.spaces.ByID(of.NS)
	if !open {
		return kernel.Counters{}, unix.ENODEV // its namespace is gone
	}
	defer space.Close()
	return space.Counters(of.Index)
}

// A LinkState is the state of the link of an interface.
type LinkState struct {
	MAC     string
	MTU     int
	Running bool // packets can go through it now
}

// LinkState reads the link of an existing interface. The error is ENODEV if it is gone.
func (p *Plugin) LinkState(of iface.Meta) (LinkState, error) {
	space, open := p.spaces.ByID(of.NS)
	if !open {
		return LinkState{}, unix.ENODEV // its namespace is gone
	}
	defer space.Close()
	l, err := space.LinkByIndex(of.Index)
	return LinkState{l.MAC.String(), l.MTU, l.About.Running()}, err
}
