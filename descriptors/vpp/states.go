package vpp

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/stats"
	"github.com/keyplane/keyplane/internal/wake"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// States reads the states of interfaces. One goroutine owns it.
type States struct {
	// Turned holds a token when links have changed since it was last taken.
	Turned  wake.Signal
	api     conn.API
	links   iface.Index
	sched   *scheduler.Scheduler
	model   *models.Model
	counter func(ctx context.Context, of map[uint32]bool) (map[uint32]*stats.Counters, error)
	log     *slog.Logger
	blind   bool              // the counters are unreadable, and that was logged
	changes map[string]change // by name, as last read
}

// A change is the time since which an interface has its status.
type change struct {
	admin, oper interfaces.InterfaceState_Status
	at          int64 // seconds since 1970
}

// States returns the states of existing interfaces, from the API and the stats segment. It
// is called before Run.
func (p *Plugin) States() *States {
	s := &States{
		Turned: wake.New(),
		api:    p.api, links: p.links, sched: p.sched, model: models.For[*interfaces.Interface]().Model, log: p.log,
		counter: func(ctx context.Context, of map[uint32]bool) (map[uint32]*stats.Counters, error) {
			return stats.Interfaces(ctx, p.statsSocket, of)
		},
	}
	p.states = append(p.states, s)
	return s
}

// linkChanged makes all readers of states read soon.
func (p *Plugin) linkChanged() {
	for _, s := range p.states {
		s.Turned.Set()
	}
}

// Read returns the states of interfaces that have names. It returns none while VPP is not
// connected. Without the stats segment they have no counters.
func (s *States) Read(ctx context.Context) (map[string]*interfaces.InterfaceState, error) {
	all, err := conn.Dump[vppif.SwInterfaceDetails](ctx, s.api, &vppif.SwInterfaceDump{SwIfIndex: interface_types.InterfaceIndex(^uint32(0))})
	if errors.Is(err, conn.ErrLost) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	names := s.links.Names()
	named := map[uint32]bool{}
	for _, d := range all {
		named[uint32(d.SwIfIndex)] = names[uint32(d.SwIfIndex)] != ""
	}
	counters := s.counters(ctx, named)
	out := make(map[string]*interfaces.InterfaceState, len(all))
	changes := make(map[string]change, len(all))
	for _, d := range all {
		index := uint32(d.SwIfIndex)
		name := names[index]
		if name == "" || strings.HasPrefix(name, iface.Untagged) {
			continue
		}
		state := stateOf(d)
		state.Name, state.Type = name, s.typeOf(name)
		changes[name] = s.since(state)
		state.LastChange = changes[name].at
		state.Statistics = counters[index]
		out[name] = state
	}
	s.changes = changes
	return out, nil
}

// counters returns nil without the stats segment, and logs that once until it works again.
func (s *States) counters(ctx context.Context, of map[uint32]bool) map[uint32]*stats.Counters {
	counters, err := s.counter(ctx, of)
	if err != nil && !s.blind {
		s.log.Warn("states of interfaces have no counters", "err", err)
	}
	s.blind = err != nil
	return counters
}

// typeOf returns the declared type, or the one that was found.
func (s *States) typeOf(name string) interfaces.Interface_Type {
	st, ok := s.sched.Status(s.model.KeyOf(name))
	if !ok {
		return interfaces.Interface_UNDEFINED_TYPE
	}
	v, _ := st.Actual.(*interfaces.Interface)
	return v.GetType()
}

// since returns the time since which the status is unchanged, according to the reads.
func (s *States) since(state *interfaces.InterfaceState) change {
	last, known := s.changes[state.Name]
	if !known || last.admin != state.AdminStatus || last.oper != state.OperStatus {
		return change{state.AdminStatus, state.OperStatus, time.Now().Unix()}
	}
	return last
}

// stateOf converts an interface of a dump, without its counters.
func stateOf(d vppif.SwInterfaceDetails) *interfaces.InterfaceState {
	up := func(flag interface_types.IfStatusFlags) interfaces.InterfaceState_Status {
		if d.Flags&flag != 0 {
			return interfaces.InterfaceState_UP
		}
		return interfaces.InterfaceState_DOWN
	}
	state := &interfaces.InterfaceState{
		InternalName: d.InterfaceName, IfIndex: uint32(d.SwIfIndex), PhysAddress: d.L2Address.String(),
		AdminStatus: up(interface_types.IF_STATUS_API_FLAG_ADMIN_UP), OperStatus: up(interface_types.IF_STATUS_API_FLAG_LINK_UP),
		Mtu: uint32(d.LinkMtu),
	}
	if d.LinkSpeed != ^uint32(0) {
		state.Speed = uint64(d.LinkSpeed) * 1000 // VPP has kbit/s
	}
	switch d.LinkDuplex {
	case interface_types.LINK_DUPLEX_API_HALF:
		state.Duplex = interfaces.InterfaceState_HALF
	case interface_types.LINK_DUPLEX_API_FULL:
		state.Duplex = interfaces.InterfaceState_FULL
	default: // VPP does not know it, as for software interfaces
	}
	return state
}
