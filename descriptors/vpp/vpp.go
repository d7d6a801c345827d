// Package vpp keeps a VPP as declared, through its binary API.
//
//	plugin, err := vpp.Register(s, vpp.Options{...})
//	...
//	go plugin.Run(ctx) // beside s.Run
//
// Register adds the descriptors of all domains: iface (interfaces and what belongs to
// one), l2 (bridge domains and what else VPP switches by), l3 (VRF tables, routes and what
// else it forwards by). Run keeps the connection: while there is none, all values are PENDING
// with that reason; when VPP is there (again), what stands in it is read back, and all is
// brought about.
//
// All verbs share the limit of the southbound "vpp", and one connection. The tests here
// go through the scheduler to a simulated VPP; those of the domains test verb by verb.
package vpp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/dhcp"
	vppif "go.fd.io/govpp/binapi/interface"
	"golang.org/x/sync/errgroup"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ownership"
	"github.com/keyplane/keyplane/descriptors/vpp/l2"
	"github.com/keyplane/keyplane/descriptors/vpp/l3"
	"github.com/keyplane/keyplane/internal/alloc"
	"github.com/keyplane/keyplane/scheduler"
)

// Southbound is the name under which all verbs share a limit of concurrency.
const Southbound = "vpp"

// Options are those of the VPP descriptors; the zero value works.
type Options struct {
	// Label and Installation are those of the agent: the tags in VPP say so. Default to none,
	// and tags are names.
	Label, Installation string
	// Lives tells whether an installation is that of a living agent. Defaults to that none is.
	Lives func(installation string) bool
	// Log defaults to slog.Default.
	Log *slog.Logger
	// What the configuration files say; see config.go.
	Connection Config
	Interfaces InterfacesConfig
	// Memory remembers across restarts of the agent what VPP has died of. Defaults to none.
	Memory scheduler.Memory
	// LinuxHost tells which name a Linux interface that stands has in the kernel.
	// Defaults to knowing none.
	LinuxHost func(name string) (host string, ok bool)
	// RaiseLink puts up a link of the host, if there is one of that name. Defaults to
	// doing nothing.
	RaiseLink func(host string) error
	// HasLink tells whether the host has a link of that name, in the agent's own namespace. Defaults
	// to that it has none.
	HasLink func(host string) bool
	// Allocations are what references to allocated addresses refer to. Defaults to none.
	Allocations alloc.Book
}

// A Plugin keeps the connection for the descriptors.
type Plugin struct {
	sched   *scheduler.Scheduler
	log     *slog.Logger
	manager *conn.Manager
	api     conn.API // of the manager, with names for tags
	links   iface.Index
	events  *iface.Events

	statsSocket string
	states      []*States // that are told when links change; there before Run
}

// Register adds the descriptors to s. It is to be called before s runs.
func Register(s *scheduler.Scheduler, o Options) (*Plugin, error) {
	o.Log = cmp.Or(o.Log, slog.Default())
	guard := newGuard(o.Memory, o.Log)
	group, err := s.Connection(Southbound)
	if err != nil {
		return nil, fmt.Errorf("vpp: %w", err)
	}
	if err := errors.Join(group.Intercept(guard.do), group.InterceptAll(guard.doAll)); err != nil {
		return nil, fmt.Errorf("vpp: %w", err)
	}
	p := &Plugin{
		sched: s, log: o.Log,
		statsSocket: cmp.Or(o.Connection.StatsSocket, "/run/vpp/stats.sock"),
	}
	p.manager = conn.NewManager(conn.Options{
		Socket:        o.Connection.Socket,
		ProbeInterval: o.Connection.ProbeInterval, ReplyTimeout: o.Connection.ProbeTimeout,
		MaxBackoff: o.Connection.RetryTimeout,
		Ready:      func(about conn.About) { guard.reborn(about.Same); group.Ready() },
		Lost:       group.Lost,
		Log:        o.Log,
		Events: map[api.Message]func([]byte){
			&vppif.SwInterfaceEvent{}: func(m []byte) { p.events.Take(m) },
			&dhcp.DHCPComplEvent{}:    func(m []byte) { p.events.TakeLease(m) },
		},
		Begin: func(ctx context.Context, c *conn.Conn) error { return p.events.Subscribe(ctx, c) },
	})
	owner := ownership.New(ownership.Options{Label: o.Label, Installation: o.Installation, Alive: o.Lives})
	p.api = ownership.WithTags(p.manager, owner)
	var linkChanged func(name string) // there before anything runs
	p.links, p.events, err = iface.Register(s, iface.Options{
		API: p.api, Tags: owner, Host: hostOf(o.Label), Log: o.Log, Southbound: Southbound, MTU: o.Interfaces.MTU, LinuxHost: o.LinuxHost, RaiseLink: o.RaiseLink, HasLink: o.HasLink,
		LinkChanged: func(name string) { linkChanged(name); p.linkChanged() }, Drop: p.manager.Drop, Allocations: o.Allocations,
	})
	if err != nil {
		return nil, fmt.Errorf("vpp: %w", err)
	}
	if err := l2.Register(s, l2.Options{API: p.api, Tags: owner, Interfaces: p.links, Southbound: Southbound}); err != nil {
		return nil, fmt.Errorf("vpp: %w", err)
	}
	linkChanged, err = l3.Register(s, l3.Options{API: p.api, Interfaces: p.links, Allocations: o.Allocations, Life: guard.life, Southbound: Southbound})
	if err != nil {
		return nil, fmt.Errorf("vpp: %w", err)
	}
	return p, nil
}

// hostOf tells interfaces of this agent from those of the same name elsewhere, and of other
// agents on this host. The default label does not count, so that MAC addresses stay what they
// were before labels counted.
func hostOf(label string) string {
	host, _ := os.Hostname() // without one they have the same
	if label != "" && label != "vpp1" {
		host += "\x00" + label
	}
	return host
}

// TAPHost tells which name the Linux side of a TAP that stands has; empty: there is none.
func (p *Plugin) TAPHost(name string) string {
	meta, _ := p.links.Get(name)
	return meta.TAPHost
}

// Run keeps the connection until ctx ends.
func (p *Plugin) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return p.manager.Run(ctx) })
	group.Go(func() error { return p.events.Run(ctx) })
	return group.Wait()
}
