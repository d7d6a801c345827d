package iface

import (
	"context"
	"sync"
	"time"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/wake"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// leases tells the scheduler what DHCP servers have given. Whatever happens, all of it is
// read: an event only says that it is time to. VPP tells of a new lease the connection
// alone that has started the client, and nobody of one that has ended (VPP dhcp/client.c,
// dhcp_client_addr_callback, dhcp_client_reset), so they are read every so often too.
type leases struct {
	every   time.Duration // while there are clients
	api     conn.API
	observe func(...scheduler.Observed)
	news    wake.Signal // set when leases may have changed

	mu      sync.Mutex // guards what follows
	clients bool       // there are some
	known   map[string]*interfaces.DHCPLease
}

func (l *leases) wake() {
	l.news.Set()
}

// run tells of leases until ctx ends.
func (l *leases) run(ctx context.Context, links Index) error {
	for l.wait(ctx) {
		before := l.standing()
		now, err := l.read(ctx, links)
		if err != nil {
			continue // VPP has gone: all is read when it is back
		}
		var out []scheduler.Observed
		for name := range before {
			if now[name] == nil {
				out = append(out, scheduler.Observed{Key: keys.DHCPLease(name)})
			}
		}
		for name, v := range now {
			out = append(out, scheduler.Observed{Key: keys.DHCPLease(name), Value: v})
		}
		l.observe(out...)
	}
	return nil
}

// wait waits until leases are to be read; false: ctx has ended.
func (l *leases) wait(ctx context.Context) bool {
	l.mu.Lock()
	clients := l.clients
	l.mu.Unlock()
	var again <-chan time.Time
	if clients {
		again = time.After(l.every)
	}
	select {
	case <-l.news.C():
	case <-again:
	case <-ctx.Done():
		return false
	}
	return true
}

func (l *leases) standing() map[string]*interfaces.DHCPLease {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known
}

// read asks VPP for the leases of interfaces that have names.
func (l *leases) read(ctx context.Context, links Index) (map[string]*interfaces.DHCPLease, error) {
	clients, err := dhcpClients(ctx, l.api)
	if err != nil {
		return nil, err
	}
	names, out := NamesByIndex(links.All()), map[string]*interfaces.DHCPLease{}
	for _, c := range clients {
		name := names[uint32(c.Client.SwIfIndex)]
		if v := leaseOf(name, c.Lease); v != nil && name != "" {
			out[name] = v
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clients, l.known = len(clients) > 0, out
	return out, nil
}
