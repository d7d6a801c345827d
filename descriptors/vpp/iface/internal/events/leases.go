package events

import (
	"context"
	"sync"
	"time"

	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/wake"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// Leases reports DHCP leases to the scheduler. Each report is a complete read; an event only
// triggers it.
//
// VPP reports a new lease only to the connection that started the client, and reports the
// end of a lease to nobody (VPP dhcp/client.c, dhcp_client_addr_callback and
// dhcp_client_reset). So leases are also read periodically while there are clients.
type Leases struct {
	every   time.Duration
	list    func(context.Context) (leases map[string]*interfaces.DHCPLease, clients bool, err error)
	observe func(...scheduler.Observed)
	changed wake.Signal // set when leases may have changed

	mu      sync.Mutex // guards all fields below
	clients bool       // VPP runs some
	known   map[string]*interfaces.DHCPLease
}

// NewLeases returns Leases that are listed with list: the leases by interface, and whether VPP
// runs DHCP clients.
func NewLeases(every time.Duration, list func(context.Context) (leases map[string]*interfaces.DHCPLease, clients bool, err error), observe func(...scheduler.Observed)) *Leases {
	return &Leases{every: every, list: list, observe: observe, changed: wake.New()}
}

// Wake makes Run read the leases soon.
func (l *Leases) Wake() { l.changed.Set() }

// run reports leases until ctx ends.
func (l *Leases) run(ctx context.Context) error {
	for l.wait(ctx) {
		before := l.last()
		now, err := l.Read(ctx, true)
		if err != nil {
			continue // the connection is lost; the next one reads everything back
		}
		var out []scheduler.Observed
		for name := range before {
			if now[name] == nil {
				out = append(out, scheduler.Observed{Key: keys.Interface(name).DHCPLease()})
			}
		}
		for name, v := range now {
			out = append(out, scheduler.Observed{Key: keys.Interface(name).DHCPLease(), Value: v})
		}
		l.observe(out...)
	}
	return nil
}

// wait waits until it is time to read. It returns false when ctx has ended.
func (l *Leases) wait(ctx context.Context) bool {
	l.mu.Lock()
	clients := l.clients
	l.mu.Unlock()
	var periodic <-chan time.Time
	if clients {
		periodic = time.After(l.every)
	}
	select {
	case <-l.changed.C():
	case <-periodic:
	case <-ctx.Done():
		return false
	}
	return true
}

// last returns the leases of the last read.
func (l *Leases) last() map[string]*interfaces.DHCPLease {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known
}

// Read returns the leases of interfaces that have names, by name. Without learns, run still reports
// what has changed.
func (l *Leases) Read(ctx context.Context, learns bool) (map[string]*interfaces.DHCPLease, error) {
	leases, clients, err := l.list(ctx)
	if err != nil || !learns {
		return leases, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clients, l.known = clients, leases
	return leases, nil
}
