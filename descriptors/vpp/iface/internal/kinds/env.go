package kinds

import (
	"context"
	"log/slog"
	"sync"

	vppif "go.fd.io/govpp/binapi/interface"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/leftovers"
)

// An Env is the environment of the kinds. All exported fields are required.
type Env struct {
	API        conn.API
	Interfaces Interfaces
	Leftovers  *leftovers.Registry
	Log        *slog.Logger
	// Host distinguishes the interfaces of this host in MAC addresses.
	Host string
	// LinuxHost returns the kernel's name of a Linux interface, and whether others have made its link.
	LinuxHost func(name string) (host string, foreign, ok bool)
	// RaiseLink enables a link of the host, if it exists.
	RaiseLink func(host string) error
	// HasLink tells whether the agent's network namespace has a link.
	HasLink func(host string) bool

	// TAPHosts are the names of the Linux sides of TAPs.
	TAPHosts TAPHosts
	// AwaitedParents are the disabled parents of enabled sub-interfaces.
	AwaitedParents Names

	sockets sync.Mutex // held while a number for a memif socket is chosen
}

// Interfaces looks up interfaces that exist. It is implemented by the directory of package
// iface, which knows names that VPP has only as tags.
type Interfaces interface {
	Get(name string) (ifindex.Meta, bool)
}

// SetTag sets the tag of an interface; an empty name removes it.
func (e *Env) SetTag(ctx context.Context, meta ifindex.Meta, name string) error {
	return e.API.Call(ctx, Tagging(meta, name), &vppif.SwInterfaceTagAddDelReply{})
}

// Tagging returns the message that SetTag sends. Callers pipeline it with other requests,
// so they need the message instead of the call.
func Tagging(meta ifindex.Meta, name string) *vppif.SwInterfaceTagAddDel {
	return &vppif.SwInterfaceTagAddDel{IsAdd: name != "", SwIfIndex: meta.SwIfIndex(), Tag: name}
}

// Names is a set of names; the zero value is empty. It has a lock, because verbs of
// different interfaces run at once.
type Names struct {
	mu  sync.Mutex // guards set
	set map[string]bool
}

// Add adds a name.
func (n *Names) Add(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.set == nil {
		n.set = map[string]bool{}
	}
	n.set[name] = true
}

// Has tells whether a name was added.
func (n *Names) Has(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.set[name]
}

// Clear removes all names.
func (n *Names) Clear() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.set)
}
