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
// also while the agent was down. Between writing and sealing only the number of rules is
// checked: that is some milliseconds after each change, and mostly after a crash.

// check reads the namespace and compares the recorded chains with it. It seals chains that
// were written since, and reports whether another one differs.
func (h *handler) check(ctx context.Context, space *netns.Space, recorded map[string]record) (changed bool, err error) {
	for _, ipv6 := range []bool{false, true} {
		missing := map[chainID]bool{}
		for _, r := range recorded {
			if r.table.ipv6 == ipv6 {
				missing[r.chainID] = true
			}
		}
		if len(missing) == 0 {
			continue
		}
		all, err := h.tool.read(ctx, space, ipv6)
		if err != nil {
			return changed, err
		}
		unsealed := map[table][]mine{}
		for _, m := range all.marked(ipv6) {
			at := chainID{m.table, m.chain}
			if !missing[at] || !h.ours(space, m.mark) {
				continue
			}
			delete(missing, at) // it is there
			switch {
			case m.changed():
				changed = true
			case m.kernel == "":
				unsealed[m.table] = append(unsealed[m.table], m)
			}
		}
		changed = changed || len(missing) > 0
		if err := h.seal(ctx, space, unsealed); err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// changed reports whether anything differs from what the agent has written: the rules, the
// jump or the policy.
func (m mine) changed() bool {
	return !m.intact() || !m.entered(m.in) || m.policy != "" && m.actual != m.policy
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
	was  string
	seen uint64 // when it was written or retrieved last; see watcher.clock
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
