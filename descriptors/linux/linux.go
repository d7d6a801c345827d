// Package linux keeps the network of a Linux host as declared, through netlink.
//
//	plugin, err := linux.Register(s, linux.Options{Label: "vpp1"})
//	...
//	go plugin.Run(ctx) // beside s.Run
//
// Register adds the descriptors of all domains: iface (interfaces, their
// addresses and VRFs) and l3 (routes, neighbours); netns opens the namespaces that
// they work in. Run watches the kernel: whatever of ours somebody else removes or
// changes is told to the scheduler, which puts it back.
//
// All verbs share the limit of the southbound "linux". The tests here go through
// the scheduler to the real kernel; those of the domains test verb by verb.
package linux

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/descriptors/linux/iface"
	"github.com/keyplane/keyplane/descriptors/linux/internal/drift"
	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/l3"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/internal/alloc"
	"github.com/keyplane/keyplane/scheduler"
)

// Southbound is the name under which all verbs share a limit of concurrency.
const Southbound = "linux"

// Options are those of the Linux descriptors; the zero value works.
type Options struct {
	// Label is the agent's microservice label: with it, what is ours is marked.
	Label string
	// Installation is the id of this agent's installation, 16 hexadecimal digits: with it,
	// what another agent of the label has made is told apart. Defaults to none.
	Installation string
	// Log defaults to slog.Default.
	Log *slog.Logger
	// What the configuration files say; see config.go.
	Interfaces InterfacesConfig
	L3         L3Config
	Namespaces NamespacesConfig
	// TAPHost tells which name the Linux side of a TAP of VPP has; empty: VPP has no
	// such TAP. Defaults to the one that VPP interfaces give it which name none.
	TAPHost func(vppInterface string) string
	// Allocations are what references to allocated addresses refer to. Defaults to none.
	Allocations alloc.Book
	// Host is where namespaces are opened. Defaults to this host.
	Host kernel.Host
}

// A Plugin watches the kernel for the descriptors.
type Plugin struct {
	log    *slog.Logger
	spaces *netns.Set
	watch  *drift.Watcher
	sched  *scheduler.Scheduler
	links  iface.Index // nil: interfaces are disabled
	named  bool        // whether namespaces but our own may be used
	names  []string    // of the descriptors that are registered
	lives  func(installation string) bool
}

// Register adds the descriptors to s. It is to be called before s runs.
func Register(s *scheduler.Scheduler, o Options) (*Plugin, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	p := &Plugin{lives: func(string) bool { return false }, log: o.Log, sched: s, named: !o.Namespaces.Disabled}
	p.spaces = netns.New(netns.Options{Host: o.Host, Disabled: o.Namespaces.Disabled, Log: o.Log})
	hosts := iface.NewHostNames(p.spaces, o.Log, s.Observe)
	p.watch = drift.New(drift.Options{
		Spaces: p.spaces, Log: o.Log, Own: hosts, Installation: o.Installation,
		Lost:    p.lost,
		Changed: func() { _ = s.Refresh(iface.Name) },
		Missed:  p.refresh,
	})
	if o.Interfaces.Disabled {
		return p, nil
	}
	if err := hosts.Register(s, Southbound); err != nil {
		return nil, fmt.Errorf("linux: %w", err)
	}
	links, others, err := iface.Register(s, iface.Options{
		Spaces: p.spaces, Watch: p.watch, Log: o.Log, Label: o.Label, Installation: o.Installation, Southbound: Southbound,
		Readers: o.Interfaces.Readers, TAPHost: o.TAPHost, Allocations: o.Allocations, Flushed: p.refresh,
	})
	if err != nil {
		return nil, fmt.Errorf("linux: %w", err)
	}
	p.links, p.lives = links, others
	p.names = []string{iface.WatcherName, iface.Name, iface.AddressName, iface.VRFName}
	if o.L3.Disabled {
		return p, nil
	}
	p.names = append(p.names, l3.RouteName, l3.ARPName)
	err = l3.Register(s, l3.Options{Spaces: p.spaces, Watch: p.watch, Interfaces: links, Allocations: o.Allocations, Log: o.Log, Southbound: Southbound})
	if err != nil {
		return nil, fmt.Errorf("linux: %w", err)
	}
	return p, nil
}

// HostName tells which name an interface that stands in the agent's own namespace has
// in the kernel.
func (p *Plugin) HostName(name string) (host string, ok bool) {
	if p.links == nil {
		return "", false
	}
	meta, ok := p.links.Get(name)
	return meta.HostName, ok && meta.Namespace == nil
}

// RaiseLink puts up a link of the agent's own namespace. That there is none of that name is no
// error.
func (p *Plugin) RaiseLink(host string) error {
	own, err := p.spaces.Own()
	if err != nil {
		return fmt.Errorf("linux: %w", err)
	}
	defer own.Close()
	link, err := own.LinkByName(host)
	if err == nil && !link.Up {
		err = own.SetUp(link.Index, true)
	}
	if err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("linux: %w", err)
	}
	return nil
}

// HasLink tells whether the agent's own namespace has a link of that name.
func (p *Plugin) HasLink(host string) bool {
	own, err := p.spaces.Own()
	if err != nil {
		return false
	}
	defer own.Close()
	_, err = own.LinkByName(host)
	return err == nil
}

// Lives tells whether an installation was seen to live: in the agent's own namespace or,
// before, in another one.
func (p *Plugin) Lives(installation string) bool { return p.lives(installation) }

// Run watches until ctx ends. Without it everything works, but what others do in
// the kernel goes unnoticed.
func (p *Plugin) Run(ctx context.Context) error {
	if len(p.names) == 0 {
		return nil
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return p.watch.Run(ctx) })
	if p.named {
		g.Go(func() error { p.watchNames(ctx); return nil })
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("linux: %w", err)
	}
	return nil
}

// watchNames follows named namespaces. Where they cannot be watched, for want of
// inotify instances, retries take longer, and all else works.
func (p *Plugin) watchNames(ctx context.Context) {
	if err := p.spaces.Watch(ctx, p.namespaces); err != nil {
		p.log.Error("network namespaces that come or go will go unnoticed", "err", err)
	}
}

// namespaces follows changes of the names of namespaces.
func (p *Plugin) namespaces(c netns.Change) {
	if len(c.Gone) > 0 {
		p.watch.NamespacesGone(c.Gone)
	}
	if len(c.Appeared) > 0 {
		_ = p.sched.Retry(p.names...) // they are registered
	}
}

// mostLogged is how many keys one line of the log has.
const mostLogged = 10

// lost tells the scheduler what somebody else has taken away.
func (p *Plugin) lost(keys []string) {
	if declared := p.declared(keys); len(declared) > 0 {
		p.log.Info("somebody removed what is declared: putting it back", "count", len(declared), "keys", declared[:min(len(declared), mostLogged)])
	}
	seen := make([]scheduler.Observed, len(keys))
	for i, key := range keys {
		seen[i].Key = key
	}
	p.sched.Observe(seen...)
}

// declared are those keys whose values somebody declares. Others are leftovers, or belong to
// links that others made.
func (p *Plugin) declared(keys []string) (out []string) {
	for _, key := range keys {
		if st, known := p.sched.Status(key); known && st.Want != nil {
			out = append(out, key)
		}
	}
	return out
}

func (p *Plugin) refresh() { _ = p.sched.Refresh(p.names...) }
