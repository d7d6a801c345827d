package iptables

import (
	"context"
	"errors"
	"fmt"

	"github.com/keyplane/keyplane/scheduler"
)

// Why a proof: iptables-restore may end with success and have written nothing. So the chains of a batch are listed. Each must have its
// mark, and as many rules as were declared. A chain that has not is written once more, since another program may have changed
// it meanwhile. Then it is undone and its value is FAILED. A retry would write it for ever.

// errUnlisted reports a chain that is not listed as it was written.
var errUnlisted = errors.New("it was written without an error, but the listing differs")

// unlisted lists the chains of the members, and returns an error for each that is not as it was written.
func (w writer) unlisted(ctx context.Context, members []int) map[int]error {
	bad := map[int]error{}
	if len(members) == 0 {
		return bad
	}
	all, err := w.read(ctx)
	for _, i := range members {
		failure := err
		if err == nil {
			failure = w.contents[i].proof(all, w.table)
		}
		if failure != nil {
			bad[i] = failure
		}
	}
	return bad
}

// proof returns an error if a listing does not show the chain.
func (c content) proof(all listing, t table) error {
	m, marked, _ := all.find(t, c.chain)
	got := len(m.rules)
	switch {
	case !marked || m.name != c.name || m.declared != c.declared:
		return fmt.Errorf("chain %s of table %s is missing: %w", c.chain, t.name, errUnlisted)
	case got < c.listed || got > c.listed && !c.more:
		return fmt.Errorf("chain %s of table %s has %d rules; expected %d: %w", c.chain, t.name, got, c.listed, errUnlisted)
	}
	return nil
}

// undo restores the chain of a value as it was listed before, or removes it, and returns the error of the verb.
func (w writer) undo(ctx context.Context, value int, before listing, reason error) error {
	if !errors.Is(reason, errUnlisted) {
		return reason // the listing has failed, which says nothing about the chain
	}
	now, err := w.read(ctx)
	if err != nil {
		return errors.Join(reason, err)
	}
	key, c := w.values[value].Key, w.contents[value]
	b := &batch{table: w.table}
	found, marked, there := now.find(w.table, c.chain)
	old, _, existed := before.find(w.table, c.chain)
	if existed {
		w.h.watcher.restored(w.space, key, old)
	} else {
		w.h.watcher.unwritten(w.space.ID, key)
	}
	// Otherwise nothing was written, or another program has changed it meanwhile.
	ours := there && marked && found.declared == c.declared
	switch {
	case ours && existed:
		b.leave(value, found)
		b.empty(value, c.chain)
		b.copy(value, c.chain, before[w.table.name][c.chain].rules)
		for _, j := range old.jumps {
			b.copy(value, j.from, []string{j.rule})
		}
	case ours:
		b.leave(value, found)
		b.remove(value, c.chain)
	}
	if was := before.policy(w.table.name, c.in); before != nil && c.in != "" && was != now.policy(w.table.name, c.in) {
		b.setPolicy(value, c.in, was)
	}
	if len(b.lines) > 0 {
		err = w.h.tool.apply(ctx, w.space, b)
	}
	return scheduler.Terminal(errors.Join(reason, err))
}
