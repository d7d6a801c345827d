// Package vpp keeps a VPP as declared, through its binary API.
//
//	plugin, err := vpp.Register(s, vpp.Options{...})
//	...
//	go plugin.Run(ctx) // beside s.Run
//
// Register adds the descriptors of all domains: iface (interfaces), l2 (bridge domains and
// cross-connects), acl (access lists), abf (policies by them), stn (addresses shared with the host),
// dns (the DNS cache), ipfix (the export of flows), ipsec, nat (NAT44), punt (packets for the host), srv6
// (segment routing), wireguard (its peers) and l3 (VRF tables and routes). Run keeps the connection. Without a
// connection all values are PENDING with that reason. After each new connection the
// scheduler reads VPP's state back and reconciles it.
//
// All verbs share one connection and the limit of "vpp". The tests of this package go
// through the scheduler to a simulated VPP. The tests of the domains test single verbs.
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
	"go.fd.io/govpp/binapi/interface_types"
	vppwg "go.fd.io/govpp/binapi/wireguard"
	"golang.org/x/sync/errgroup"

	"github.com/keyplane/keyplane/descriptors/vpp/abf"
	"github.com/keyplane/keyplane/descriptors/vpp/acl"
	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/dns"
	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ownership"
	"github.com/keyplane/keyplane/descriptors/vpp/ipfix"
	"github.com/keyplane/keyplane/descriptors/vpp/ipsec"
	"github.com/keyplane/keyplane/descriptors/vpp/l2"
	"github.com/keyplane/keyplane/descriptors/vpp/l3"
	"github.com/keyplane/keyplane/descriptors/vpp/nat"
	"github.com/keyplane/keyplane/descriptors/vpp/punt"
	"github.com/keyplane/keyplane/descriptors/vpp/srv6"
	"github.com/keyplane/keyplane/descriptors/vpp/stn"
	"github.com/keyplane/keyplane/descriptors/vpp/telemetry"
	"github.com/keyplane/keyplane/descriptors/vpp/wireguard"
	"github.com/keyplane/keyplane/internal/alloc"
	"github.com/keyplane/keyplane/scheduler"
)

// ConnectionName is that of the scheduler's connection, on which all verbs share a limit.
const ConnectionName = "vpp"

// Options are those of the VPP descriptors; the zero value works.
type Options struct {
	// Label and Installation identify the agent in VPP's tags. They default to none: tags
	// are names.
	Label, Installation string
	// Lives tells whether a running agent has an installation. Defaults to false.
	Lives func(installation string) bool
	// Log defaults to slog.Default.
	Log *slog.Logger
	// The content of the configuration files; see config.go.
	Connection Config
	Interfaces InterfacesConfig
	// Memory keeps the values that crashed VPP across restarts of the agent. Defaults to
	// none.
	Memory scheduler.Memory
	// Settings keeps settings that VPP does not report, such as its DNS servers, and creations of
	// interfaces that have begun. Defaults to none: after a restart of the agent settings are applied
	// again, and an interface that was being created may stay.
	Settings scheduler.Memory
	// LinuxHost returns the kernel's name of an existing Linux interface, and whether others have made its link. Defaults to none
	// being known.
	LinuxHost func(name string) (host string, foreign, ok bool)
	// RaiseLink enables a link of the host, if it exists. Defaults to doing nothing.
	RaiseLink func(host string) error
	// HasLink tells whether the agent's network namespace has a link of that name.
	// Defaults to false.
	HasLink func(host string) bool
	// Allocations resolves references to addresses. Defaults to none.
	Allocations alloc.Book
}

// A Plugin keeps the connection for the descriptors.
type Plugin struct {
	sched   *scheduler.Scheduler
	log     *slog.Logger
	manager *conn.Manager
	api     conn.API // the manager, with names for tags
	links   iface.Index
	events  *iface.Events
	peers   *wireguard.Peers
	sockets func() *punt.Sockets

	statsSocket string
	proxied     bool      // govpp.conf enables Proxy
	states      []*States // notified when links change; complete before Run
}

// Register adds the descriptors to s. It is called before s runs. The ranges of single numbers are
// those of models/limits: s has limits.Validation as its FieldChecks, as in the agent. Without it,
// a number that is too large for VPP's message loses its high bits.
func Register(s *scheduler.Scheduler, o Options) (*Plugin, error) {
	o.Log = cmp.Or(o.Log, slog.Default())
	guard := newGuard(o.Memory, o.Log)
	link, err := s.Connection(ConnectionName)
	if err != nil {
		return nil, fmt.Errorf("vpp: %w", err)
	}
	if err := errors.Join(link.Intercept(guard.do), link.InterceptAll(guard.doAll)); err != nil {
		return nil, fmt.Errorf("vpp: %w", err)
	}
	p := &Plugin{
		sched: s, log: o.Log,
		statsSocket: cmp.Or(o.Connection.StatsSocket, "/run/vpp/stats.sock"), proxied: o.Connection.Proxy,
	}
	last := lastRun{o.Settings, o.Log}
	var reads *readGuard // set before the manager runs
	p.manager = conn.NewManager(conn.Options{
		Socket:        o.Connection.Socket,
		ProbeInterval: o.Connection.ProbeInterval, ReplyTimeout: o.Connection.ProbeTimeout,
		MaxBackoff: o.Connection.RetryTimeout,
		Run:        last.load(),
		Ready: func(about conn.About) {
			if !about.Same {
				last.save(about.Run)
			}
			guard.reborn(about.Same)
			reads.reborn(about.Same)
			if about.Same {
				link.ReadyAgain()
			} else {
				link.Ready()
			}
		},
		Lost: link.Lost,
		Log:  o.Log,
		Events: map[api.Message]func([]byte){
			&vppif.SwInterfaceEvent{}: func(m []byte) { p.events.Take(m) },
			&dhcp.DHCPComplEvent{}:    func(m []byte) { p.events.TakeLease(m) },

			&vppwg.WireguardPeerEvent{}: func(m []byte) { p.peers.Take(m) },
		},
		Begin: func(ctx context.Context, c *conn.Conn) error { return p.events.Subscribe(ctx, c) },
	})
	owner := ownership.New(ownership.Options{Label: o.Label, Installation: o.Installation, Alive: o.Lives})
	reads = newReadGuard(p.manager)
	p.api = ownership.WithTags(reads, owner)
	var linkChanged func(name string) // set before any goroutine runs
	p.links, p.events, err = iface.Register(s, iface.Options{
		API: p.api, Tags: owner, Host: hostOf(o.Label), Log: o.Log, Connection: ConnectionName, MTU: o.Interfaces.MTU, LinuxHost: o.LinuxHost, RaiseLink: o.RaiseLink, HasLink: o.HasLink,
		LinkChanged: func(name string) { linkChanged(name); p.linkChanged() }, Drop: p.manager.Drop, Allocations: o.Allocations, Memory: o.Settings, Run: p.run,
	})
	if err != nil {
		return nil, fmt.Errorf("vpp: %w", err)
	}
	linkChanged, err = p.registerItems(s, o, owner)
	if err != nil {
		return nil, fmt.Errorf("vpp: %w", err)
	}
	return p, nil
}

// registerItems registers the descriptors of all items but interfaces. It returns the function that is
// to be called when a link changes.
func (p *Plugin) registerItems(s *scheduler.Scheduler, o Options, owner *ownership.Owner) (linkChanged func(name string), err error) {
	var lists acl.Index
	var reapply acl.Reapply // l2 calls both when values change, after all are registered
	var output srv6.Output
	var modes *l2.Modes
	for _, register := range []func() error{
		func() (err error) {
			modes, err = l2.Register(s, l2.Options{
				API: p.api, Tags: owner, Interfaces: p.links, Connection: ConnectionName,
				Reapply: func(ctx context.Context, index interface_types.InterfaceIndex) error { return reapply(ctx, index) },
				Left:    func(ctx context.Context, index interface_types.InterfaceIndex) error { return output(ctx, index) },
			})
			return err
		},
		func() (err error) {
			lists, reapply, err = acl.Register(s, acl.Options{API: p.api, Tags: owner, Interfaces: p.links, Connection: ConnectionName})
			return err
		},
		func() error {
			return abf.Register(s, abf.Options{API: p.api, Interfaces: p.links, Lists: lists, Connection: ConnectionName})
		},
		func() (err error) {
			p.peers, err = wireguard.Register(s, wireguard.Options{API: p.api, Interfaces: p.links, Connection: ConnectionName})
			return err
		},
		func() error {
			return ipsec.Register(s, ipsec.Options{API: p.api, Interfaces: p.links, Connection: ConnectionName})
		},
		func() error {
			return stn.Register(s, stn.Options{API: p.api, Interfaces: p.links, Connection: ConnectionName})
		},
		func() error {
			return nat.Register(s, nat.Options{API: p.api, Tags: owner, Interfaces: p.links, Connection: ConnectionName})
		},
		func() error {
			return dns.Register(s, dns.Options{API: p.api, Memory: o.Settings, Log: o.Log, Connection: ConnectionName})
		},
		func() (err error) {
			output, err = srv6.Register(s, srv6.Options{API: p.api, Interfaces: p.links, Modes: modes, Connection: ConnectionName})
			return err
		},
		func() error {
			return ipfix.Register(s, ipfix.Options{API: p.api, Interfaces: p.links, Run: p.run, Connection: ConnectionName})
		},
		func() (err error) {
			p.sockets, err = punt.Register(s, punt.Options{API: p.api, Interfaces: p.links, Run: p.run, Connection: ConnectionName})
			return err
		},
		func() (err error) {
			linkChanged, err = l3.Register(s, l3.Options{
				API: p.api, Interfaces: p.links, Allocations: o.Allocations, Run: p.run, Connection: ConnectionName, Memory: o.Settings, Log: o.Log,
			})
			return err
		},
	} {
		if err := register(); err != nil {
			return nil, err
		}
	}
	return linkChanged, nil
}

// hostOf distinguishes the agents of this host from each other and from those of other
// hosts. The default label is left out. So MAC addresses stay the same as in releases
// without labels.
func hostOf(label string) string {
	host, _ := os.Hostname() // without a host name, all hosts have the same
	if label != "" && label != "vpp1" {
		host += "\x00" + label
	}
	return host
}

// run identifies the run of VPP that is connected now, or was last.
func (p *Plugin) run() string { return p.manager.Info().About.Run }

// API returns the binary API of the connection, for descriptors of other programs. They name
// [ConnectionName] as their connection: then their values wait for VPP, and are read back after
// each new connection.
func (p *Plugin) API() conn.API { return p.api }

// Interface returns the metadata of an existing interface, such as its index in VPP.
func (p *Plugin) Interface(name string) (iface.Meta, bool) { return p.links.Get(name) }

// TAPHost returns the name of the Linux side of an existing TAP; empty: there is none.
func (p *Plugin) TAPHost(name string) string {
	meta, _ := p.links.Get(name)
	return meta.TAPHost
}

// Sockets returns a reader that tells programs to which socket of VPP they send packets. It is
// called before Run.
func (p *Plugin) Sockets() *punt.Sockets { return p.sockets() }

// Telemetry returns a reader of VPP's counters, which knows the declared names of interfaces.
// It is called before Run.
func (p *Plugin) Telemetry(conf telemetry.Config) *telemetry.Poller {
	return telemetry.New(telemetry.Options{
		Socket: p.statsSocket, Config: conf, Log: p.log,
		Names:  func() map[uint32]string { return p.links.Names() },
		States: p.States().Read,
	})
}

// Run keeps the connection until ctx ends. The connection ends last, when nothing is left in VPP
// that was to exist for a moment only.
func (p *Plugin) Run(ctx context.Context) error {
	connected, disconnect := context.WithCancel(context.WithoutCancel(ctx))
	defer disconnect()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return p.manager.Run(connected) })
	group.Go(func() error { return p.events.Run(ctx) })
	group.Go(func() error { return p.peers.Run(ctx) })
	group.Go(func() error {
		<-ctx.Done()
		p.events.Leftovers.Close()
		disconnect()
		return nil
	})
	return group.Wait()
}
