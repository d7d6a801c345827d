package iptables

import (
	"context"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
)

// Why seals: the kernel shows a rule in another spelling than the declared one, and only
// iptables knows both. So the agent does not compare rules with declarations. Soon after a
// chain was written, it reads the chain and adds a fingerprint of the kernel's text to the
// mark. A later fingerprint that differs means that another program has changed the chain,
// also while the agent was down. What is listed between writing and sealing, some milliseconds, counts as
// written. After a crash in between, the number of rules has to be that of the declaration.
//
// Mark and seal are whole, too, in a chain of an earlier version that "iptables-restore < saved" brings back. So
// a chain counts only if its mark is that of the version that was written or read last, and a chain of this
// agent that is not recorded is a change.

// check reads the namespace and compares the recorded chains with it. It seals chains that
// were written since, and reports whether another one differs.
func (h *handler) check(ctx context.Context, space *netns.Space, recorded map[string]record) (changed bool, err error) {
	for _, ipv6 := range []bool{false, true} {
		known, needed := recordedIn(recorded, ipv6)
		if !needed {
			continue
		}
		all, err := h.tool.read(ctx, space, ipv6)
		if err != nil {
			return changed, err
		}
		unsealed := map[table][]mine{}
		for _, m := range all.marked(ipv6) {
			if !h.ours(space, m.mark, true) {
				continue
			}
			r, declared := known[chainID{m.table, m.chain}]
			delete(known, r.chainID) // it is there
			switch {
			case !declared || m.changed(r):
				changed = true
			case m.kernel == "":
				unsealed[m.table] = append(unsealed[m.table], m)
			}
		}
		changed = changed || len(known) > 0
		if err := h.seal(ctx, space, unsealed); err != nil {
			return changed, err
		}
		h.watcher.sealed(space.ID, unsealed)
	}
	return changed, nil
}

// recordedIn returns the chains of an IP version. needed: there are some, or were.
func recordedIn(recorded map[string]record, ipv6 bool) (known map[chainID]record, needed bool) {
	known = map[chainID]record{}
	for _, r := range recorded {
		if r.table.ipv6 == ipv6 {
			needed = true
			if !r.removed {
				known[r.chainID] = r
			}
		}
	}
	return known, needed
}

// changed reports whether anything differs from what the agent has written: the version, the rules, the
// jump or the policy.
func (m mine) changed(r record) bool {
	return m.declared != r.declared || m.in != r.in || m.policy != r.policy || !m.intact(r.unsealed) || !m.entered(m.in) ||
		m.policy != "" && m.actual != m.policy
}

// seal adds the fingerprints of the kernel's text to the marks, with one batch for each table.
func (h *handler) seal(ctx context.Context, space *netns.Space, unsealed map[table][]mine) error {
	for t, chains := range unsealed {
		b := &batch{table: t}
		for _, m := range chains {
			m.mark.kernel = digest(m.rules)
			b.remark(m.chain, m.mark)
		}
		if err := h.tool.apply(ctx, space, b); err != nil {
			return err
		}
	}
	return nil
}

// A chainID identifies a chain within its namespace.
type chainID struct {
	table table
	chain string
}

// A record is what the watcher keeps of a chain. The policy before the agent's is also in the
// mark, but "iptables -F" removes marks.
type record struct {
	chainID
	declared string // the version, as in the mark
	in       string
	policy   string
	unsealed bool // it was written and not listed since
	removed  bool // by the agent: if it is there again, somebody has restored it
	was      string
	seen     uint64 // when it was written or retrieved last; see watcher.clock
}

// checkAll checks the recorded chains of one namespace.
func (h *handler) checkAll(ctx context.Context, ns kernel.ID) (changed bool, err error) {
	recorded := h.watcher.recorded(ns)
	space, ok := h.Spaces.ByID(ns)
	if !ok || len(recorded) == 0 {
		return false, nil
	}
	defer space.Close()
	return h.check(ctx, space, recorded)
}
