// Package iptables manages rule chains of the Linux packet filter.
//
//	chains, err := iptables.Register(s, iptables.Options{...})
//	...
//	go chains.Run(ctx)
//
// The rules of a value for a built-in chain, such as INPUT, are in a separate chain. One rule at
// the end of the built-in chain jumps there. So the rules of other programs are neither changed
// nor moved, and all rules of a value change at the same moment. A custom chain has the name that
// its value gives. Each chain of the agent begins with a rule that only carries the agent's mark;
// see mark.go. Chains of others are never changed.
//
// All changes go through iptables-restore and ip6tables-restore, many rules at a time, or
// through nftables on a host without these programs. The kernel takes each batch whole or not
// at all.
//
//	state of a chain    meaning                                        changed by
//	absent              no chain of that name                          create
//	written             its mark has the declared rules' fingerprint   create, update; listed at once, see proof.go
//	sealed              also a fingerprint of the kernel's own text    seal, soon after
//	changed             the kernel's text differs from the seal        another program
//
// Tests: tables and fuzzing for the pure functions, and random rules that the parser and iptables
// must read in the same way; iptables-nft and iptables-legacy in
// private namespaces for the verbs, Retrieve and changes by other programs; packets for the
// translation to nftables.
package iptables

import (
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/keyplane/keyplane/descriptors/linux/iface"
	"github.com/keyplane/keyplane/descriptors/linux/internal/drift"
	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/linux/iptables"
	"github.com/keyplane/keyplane/scheduler"
)

// Name is the name of the descriptor.
const Name = "linux-ipt-rulechain-descriptor"

// ErrConflict reports a chain of another owner with the same name.
var ErrConflict = errors.New("the chain belongs to another owner")

// Options configure the descriptor. All are required except Installation, Lives, Readers, Lost
// and Again.
type Options struct {
	Spaces *netns.Set
	// Watch announces the agent in the namespaces that it writes to.
	Watch *drift.Watcher
	Log   *slog.Logger
	// Label of the agent. It is part of the mark.
	Label string
	// Installation of the agent, 16 hexadecimal digits, as part of the mark. Defaults to none.
	Installation string
	// Lives reports whether another installation with our label is running. Defaults to
	// none.
	Lives      func(installation string, learns bool) bool
	Connection string
	// Interfaces says that the agent has interfaces, which the field interfaces can name.
	Interfaces bool
	// After names descriptors that must be read before, since they find namespaces.
	After []string
	// Readers is the number of namespaces that are read in parallel. Defaults to 10.
	Readers int
	// Lost is called with the keys of chains that vanished with their namespace.
	Lost func(keys []string)
	// Again is called when failed values may succeed now: another chain, to which they may
	// jump, was created, or one that jumps to theirs was removed. Verbs call it, so it must
	// not wait for the scheduler. Defaults to none.
	Again func()
}

// Meta is what Delete and Update need besides the value.
type Meta struct {
	NS    kernel.ID
	Chain string // the chain with the rules
	In    string // the built-in chain that jumps to it, or ""
	Was   string // policy of the built-in chain before the agent set it, or ""
}

// Chains watches the chains of the agent. Register returns one.
type Chains struct{ h *handler }

// handler holds what the verbs share.
type handler struct {
	Options
	tool    backend
	watcher *watcher
	refresh func()      // makes the scheduler read the chains again
	failed  atomic.Bool // a verb has failed since Again was called
}

// Register adds the descriptor to s.
func Register(s *scheduler.Scheduler, o Options) (*Chains, error) {
	h := newHandler(o)
	h.refresh = func() { _ = s.Refresh(Name) } // it is registered
	_, err := scheduler.Register(s.OnConnection(o.Connection), h.descriptor())
	return &Chains{h}, err
}

// newHandler returns a handler that notifies nobody.
func newHandler(o Options) *handler {
	if o.Readers <= 0 {
		o.Readers = 10
	}
	if o.Lives == nil {
		o.Lives = func(string, bool) bool { return false }
	}
	if o.Lost == nil {
		o.Lost = func([]string) {}
	}
	if o.Again == nil {
		o.Again = func() {}
	}
	h := &handler{Options: o, tool: choose(), refresh: func() {}}
	h.watcher = newWatcher(h)
	return h
}

// tried notes the result of a verb, and calls Again if failed ones may succeed now. Each call
// has a cost that grows with the number of all values, so it follows a failure only.
func (h *handler) tried(err error) {
	if err != nil {
		h.failed.Store(true)
	} else if h.failed.Swap(false) {
		h.Again()
	}
}

// descriptor: there is no Equivalent for other spellings of a rule. Only iptables knows them.
func (h *handler) descriptor() scheduler.Descriptor[*iptables.RuleChain, Meta] {
	d := scheduler.Descriptor[*iptables.RuleChain, Meta]{
		Name:  Name,
		Model: models.For[*iptables.RuleChain](),

		Normalize:    normalize,
		Validate:     h.validate,
		Equivalent:   equivalent,
		Recreate:     recreate,
		Dependencies: h.dependencies,
		Claims:       claims,

		Create:    h.create,
		CreateAll: h.createAll,
		Update:    h.update,
		Delete:    h.delete,
		Retrieve:  h.retrieve,
	}
	d.RetrieveAfter = slices.Clone(h.After)
	if h.Interfaces {
		d.RetrieveAfter = append(d.RetrieveAfter, iface.Name)
	}
	return d
}
