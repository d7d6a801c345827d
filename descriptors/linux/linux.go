// Package linux manages the network of a Linux host through netlink.
//
//	plugin, err := linux.Register(s, linux.Options{Label: "vpp1"})
//	...
//	go plugin.Run(ctx) // beside s.Run
//
//	package       task
//	iface         descriptors of interfaces, their addresses and VRFs
//	l3            descriptors of routes and neighbours
//	iptables      descriptor of rule chains of the packet filter
//	microservice  follows containers with a label
//	netns         opens network namespaces and watches their names
//	keys          keys of derived values and properties
//
// Register adds the descriptors. Run watches the kernel: if another program removes or
// changes an object of the agent, the scheduler is notified and restores it.
//
// All verbs share the concurrency limit of the southbound "linux". The tests in this
// folder run the scheduler with the real kernel; the tests of the packages run single
// verbs.
package linux

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/keyplane/keyplane/descriptors/linux/iface"
	"github.com/keyplane/keyplane/descriptors/linux/internal/drift"
	"github.com/keyplane/keyplane/descriptors/linux/internal/hostnames"
	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/iptables"
	"github.com/keyplane/keyplane/descriptors/linux/keys"
	"github.com/keyplane/keyplane/descriptors/linux/l3"
	"github.com/keyplane/keyplane/descriptors/linux/microservice"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/internal/alloc"
	"github.com/keyplane/keyplane/internal/wake"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// ConnectionName is the name under which all verbs share a limit of concurrency.
const ConnectionName = "linux"

// Options configure the Linux descriptors; the zero value works.
type Options struct {
	// Label is the agent's microservice label. It is part of the mark on objects of the
	// agent.
	Label string
	// Installation identifies this installation of the agent by 16 hexadecimal digits, so
	// that another agent with the same label is recognised. Defaults to none.
	Installation string
	// Known keeps across restarts what the kernel does not say about our links. Defaults to none.
	Known scheduler.Memory
	// KnownNamespaces keeps across restarts which network namespaces the agent made. Defaults to none.
	KnownNamespaces scheduler.Memory
	// Log defaults to slog.Default.
	Log *slog.Logger
	// Contents of the configuration files; see config.go.
	Interfaces InterfacesConfig
	L3         L3Config
	IPTables   IPTablesConfig
	Namespaces NamespacesConfig
	// TAPHost returns the name of the Linux side of a VPP TAP, or "" if VPP has no such
	// TAP. Defaults to the name that a TAP gets if its value names none.
	TAPHost func(vppInterface string) string
	// Allocations resolves references to allocated addresses. Defaults to none.
	Allocations alloc.Book
	// Host opens the namespaces. Defaults to this host.
	Host kernel.Host
}

// A Plugin watches the kernel for the descriptors. Register returns one.
type Plugin struct {
	log        *slog.Logger
	spaces     *netns.Set
	watch      *drift.Watcher
	sched      *scheduler.Scheduler
	links      iface.Index           // nil: interfaces are disabled
	chains     *iptables.Chains      // nil: rule chains are disabled
	containers *microservice.Tracker // nil: namespaces are disabled
	named      bool                  // whether named namespaces may be used
	names      []string              // names of the registered descriptors
	// again is set when failed values may succeed: a name leads to another namespace than
	// before, or a chain of rules has changed.
	again wake.Signal
	lives func(installation string, learns bool) bool
}

// Register adds the descriptors to s. Call it before s runs.
func Register(s *scheduler.Scheduler, o Options) (*Plugin, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	link, err := s.Connection(ConnectionName)
	if err != nil {
		return nil, fmt.Errorf("linux: %w", err)
	}
	link.Ready() // it is always there, but not known before it was read back
	p := &Plugin{again: wake.New(), lives: func(string, bool) bool { return false }, log: o.Log, sched: s, named: !o.Namespaces.Disabled}
	after, err := p.registerNamespaces(s, o)
	if err != nil {
		return nil, fmt.Errorf("linux: %w", err)
	}
	hosts := hostnames.New(p.spaces, o.Log, s.Observe)
	p.watch = drift.New(drift.Options{
		Spaces: p.spaces, Log: o.Log, Own: hosts, Installation: o.Installation,
		Lost:    p.lost,
		Changed: func() { _ = s.Refresh(iface.Name) },
		Missed:  p.refresh,
		Freed:   p.again.Set,
	})
	if !o.Interfaces.Disabled {
		if err := p.registerInterfaces(s, o, hosts, after); err != nil {
			return nil, fmt.Errorf("linux: %w", err)
		}
	}
	if o.IPTables.Disabled {
		return p, nil
	}
	p.names = append(p.names, iptables.Name)
	p.chains, err = iptables.Register(s, iptables.Options{
		Spaces: p.spaces, Watch: p.watch, Log: o.Log, Label: o.Label, Installation: o.Installation, Lives: func(installation string, learns bool) bool { return p.lives(installation, learns) }, Connection: ConnectionName,
		Interfaces: !o.Interfaces.Disabled, Readers: o.IPTables.Readers, Lost: p.lost, Again: p.again.Set, After: after,
	})
	if err != nil {
		return nil, fmt.Errorf("linux: %w", err)
	}
	return p, nil
}

// registerNamespaces makes the set of namespaces, and adds their names and the microservices. after
// names the descriptors that must be read before those that open namespaces.
func (p *Plugin) registerNamespaces(s *scheduler.Scheduler, o Options) (after []string, err error) {
	spaces := netns.Options{Host: o.Host, Disabled: o.Namespaces.Disabled, Wait: o.Namespaces.Wait, Known: o.KnownNamespaces, Log: o.Log}
	if o.Namespaces.Disabled {
		p.spaces = netns.New(spaces)
		return nil, nil
	}
	p.containers, err = microservice.New(microservice.Options{Engine: o.Namespaces.Docker.Host, Log: o.Log, Host: o.Host})
	if err != nil {
		return nil, err
	}
	spaces.Container = p.containers.Path
	p.spaces = netns.New(spaces)
	return []string{microservice.Name, netns.Name}, errors.Join(p.containers.Register(s), p.spaces.Register(s, ConnectionName))
}

// registerInterfaces adds the descriptors of interfaces, and those of the items on them.
func (p *Plugin) registerInterfaces(s *scheduler.Scheduler, o Options, hosts *hostnames.Names, after []string) error {
	if err := hosts.Register(s, ConnectionName); err != nil {
		return err
	}
	declared := func(name string) *interfaces.Interface {
		st, known := s.Status(models.For[*interfaces.Interface]().KeyOf(name))
		if !known {
			return nil
		}
		v, _ := st.Normalized().(*interfaces.Interface)
		return v
	}
	links, others, err := iface.Register(s, iface.Options{
		Spaces: p.spaces, Watch: p.watch, Hosts: hosts, Log: o.Log, Label: o.Label, Installation: o.Installation, Known: o.Known, Connection: ConnectionName,
		Readers: o.Interfaces.Readers, TAPHost: o.TAPHost, Allocations: o.Allocations, Flushed: p.refresh, Declared: declared, After: after,
	})
	if err != nil {
		return err
	}
	p.links, p.lives = links, others
	p.names = []string{hostnames.Name, iface.Name, iface.AddressName, iface.VRFName, iface.RulesName}
	if o.L3.Disabled {
		return nil
	}
	p.names = append(p.names, l3.RouteName, l3.ARPName)
	return l3.Register(s, l3.Options{Spaces: p.spaces, Watch: p.watch, Interfaces: links, Allocations: o.Allocations, Log: o.Log, Connection: ConnectionName})
}

// Namespaces opens network namespaces, for descriptors of other programs. They name
// [ConnectionName] as their connection, to share its limit.
func (p *Plugin) Namespaces() *netns.Set { return p.spaces }

// Interface returns the metadata of an existing interface, such as its index and namespace.
func (p *Plugin) Interface(name string) (iface.Meta, bool) {
	if p.links == nil {
		return iface.Meta{}, false
	}
	return p.links.Get(name)
}

// HostName returns the name in the kernel of an interface in the agent's own namespace, and whether it is EXISTING: others have
// made its link.
func (p *Plugin) HostName(name string) (host string, existing, ok bool) {
	if p.links == nil {
		return "", false, false
	}
	meta, ok := p.links.Get(name)
	return meta.HostName, meta.Existing, ok && meta.Namespace == nil
}

// RaiseLink sets a link of the agent's own namespace up. A missing link is no error.
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

// HasLink reports whether the agent's own namespace has a link with that name.
func (p *Plugin) HasLink(host string) bool {
	own, err := p.spaces.Own()
	if err != nil {
		return false
	}
	defer own.Close()
	_, err = own.LinkByName(host)
	return err == nil
}

// Lives reports whether another installation was seen running: now in the agent's own
// namespace, or earlier in another one.
func (p *Plugin) Lives(installation string) bool { return p.lives(installation, false) }

// Run watches the kernel until ctx ends. Without it the descriptors work, but changes by
// other programs are not noticed.
func (p *Plugin) Run(ctx context.Context) error {
	if len(p.names) == 0 && p.containers == nil {
		return nil
	}
	g, ctx := errgroup.WithContext(ctx)
	if p.links != nil {
		g.Go(func() error { return p.watch.Run(ctx) })
	}
	if p.chains != nil {
		g.Go(func() error { return p.chains.Run(ctx) })
	}
	if p.containers != nil {
		g.Go(func() error { return p.containers.Run(ctx) })
	}
	if p.named {
		g.Go(func() error { p.spaces.Watch(ctx, p.namespaces); return nil })
		g.Go(func() error { p.spaces.Tidy(ctx); return nil })
	}
	g.Go(func() error { p.retryFailed(ctx); return nil })
	if err := g.Wait(); err != nil {
		return fmt.Errorf("linux: %w", err)
	}
	return nil
}

// namespaces reacts to changes of the names of namespaces. Values in a namespace that has lost its
// name must wait for the name before their items count as lost: else they would be made again, and
// fail.
func (p *Plugin) namespaces(c netns.Change) {
	seen := make([]scheduler.Observed, 0, len(c.Appeared)+len(c.Lost))
	for _, name := range c.Lost {
		seen = append(seen, scheduler.Observed{Key: keys.Namespace(name)})
	}
	for _, name := range c.Appeared {
		seen = append(seen, scheduler.Observed{Key: keys.Namespace(name), Value: &emptypb.Empty{}})
	}
	p.sched.Observe(seen...)
	if len(c.Gone) > 0 {
		if p.chains != nil {
			p.chains.NamespacesGone(c.Gone)
		}
		p.watch.NamespacesGone(c.Gone)
	}
	if len(c.Offered) > 0 {
		// After the loss: values in a namespace that is made again lose their items first.
		offered := make([]scheduler.Observed, len(c.Offered))
		for i, name := range c.Offered {
			offered[i] = scheduler.Observed{Key: keys.Namespace(name), Value: &emptypb.Empty{}}
		}
		p.sched.Observe(offered...)
	}
	if c.Moved {
		p.refresh()
	}
	if len(c.Appeared) > 0 {
		p.again.Set()
	}
}

// Complete says that all values are declared: namespaces that an earlier run has made, and that no value names,
// are removed.
func (p *Plugin) Complete() { p.spaces.Complete() }

// RemoveNamespaces removes the namespaces that the agent has made and no value names any more, and returns
// when that is done. Run does the same by itself, a moment later.
func (p *Plugin) RemoveNamespaces(ctx context.Context) { p.spaces.RemoveAll(ctx) }

// retryFailed tries the failed values again each time they may succeed. Retry waits for the
// scheduler, which verbs and the watcher of namespaces must not do.
func (p *Plugin) retryFailed(ctx context.Context) {
	for {
		select {
		case <-p.again.C():
		case <-ctx.Done():
			return
		}
		var failed []string
		for st := range p.sched.All() {
			if st.Err != nil && slices.Contains(p.names, st.Descriptor) {
				failed = append(failed, st.Key)
			}
		}
		if len(failed) > 0 {
			_, _ = p.sched.Retry(ctx, failed...) // a value that fails again has its error in its status
		}
	}
}

// mostLogged is the maximum number of keys in one log record.
const mostLogged = 10

// lost reports objects that other programs have removed to the scheduler.
func (p *Plugin) lost(keys []string) {
	if declared := p.declared(keys); len(declared) > 0 {
		p.log.Info("another program removed declared objects; restoring them", "count", len(declared), "keys", declared[:min(len(declared), mostLogged)])
	}
	seen := make([]scheduler.Observed, len(keys))
	for i, key := range keys {
		seen[i].Key = key
	}
	p.sched.Observe(seen...)
}

// declared returns the keys with a declared value. Others are leftovers, or belong to
// links of other programs.
func (p *Plugin) declared(keys []string) (out []string) {
	for _, key := range keys {
		if st, known := p.sched.Status(key); known && st.Desired != nil {
			out = append(out, key)
		}
	}
	return out
}

// refresh makes the scheduler read the actual state again, after lost notifications.
func (p *Plugin) refresh() { _ = p.sched.Refresh(p.names...) }
