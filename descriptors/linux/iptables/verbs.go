package iptables

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/iptables/internal/ruletext"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/linux/iptables"
	"github.com/keyplane/keyplane/scheduler"
)

// contentOf returns everything that v has in the kernel. was is the policy of its built-in
// chain before the agent has set one. Validate refuses all that gives an error.
func (h *handler) contentOf(v *iptables.RuleChain, was string) (content, error) {
	m := mark{
		label: h.Label, name: v.GetName(), installation: h.Installation, declared: digest(v.GetRules()),
		rules: len(v.GetRules()), in: builtIn(v), policy: policyOf(v),
	}
	if m.policy != "" {
		m.was = was
	}
	c := content{mark: m, chain: chainOf(h.Label, v), rules: make([]string, 0, len(v.GetRules()))}
	for i, text := range v.GetRules() {
		r, want := ruletext.Parse(text)
		if want != "" {
			return content{}, &models.FieldError{Field: fmt.Sprintf("rules[%d]", i), Value: shorten(text), Expected: want}
		}
		n, more := r.Listed()
		c.rules, c.listed, c.more = append(c.rules, ruletext.Join(r.Words())), c.listed+n, c.more || more
	}
	return c, nil
}

// meta returns the metadata of a chain that was written.
func (c content) meta(ns kernel.ID) Meta { return Meta{NS: ns, Chain: c.chain, In: c.in, Was: c.was} }

// create writes one chain.
func (h *handler) create(ctx context.Context, key string, v *iptables.RuleChain) (Meta, error) {
	one := h.createAll(ctx, []desired{{Key: key, Value: v}})[0]
	return one.Meta, one.Err
}

// createAll writes the chains of each table with one batch. So they may jump to each other, in
// any order. The result has the order of values. Each failed value has its own error.
func (h *handler) createAll(ctx context.Context, values []desired) []scheduler.Created[Meta] {
	out := make([]scheduler.Created[Meta], len(values))
	type target struct {
		ns    kernel.ID
		table table
	}
	groups := map[target][]int{}
	spaces := map[kernel.ID]*netns.Space{}
	for i, w := range values {
		space, err := h.Spaces.Enter(w.Value.GetNamespace())
		if err != nil {
			out[i].Err = err
			continue
		}
		defer space.Close()
		defer h.Watch.Announce(space)()
		spaces[space.ID] = space
		at := target{space.ID, tableOf(w.Value)}
		groups[at] = append(groups[at], i)
	}
	for at, members := range groups {
		w := writer{h: h, space: spaces[at.ns], table: at.table, values: values, out: out, contents: map[int]content{}}
		w.createGroup(ctx, members)
	}
	return out
}

// A writer creates the chains of one table. values and out are those of createAll.
type writer struct {
	h        *handler
	space    *netns.Space
	table    table
	values   []desired
	out      []scheduler.Created[Meta]
	contents map[int]content // what was written, by value
}

// createGroup creates all members at once.
func (w writer) createGroup(ctx context.Context, members []int) {
	if !slices.ContainsFunc(members, func(i int) bool { return policyOf(w.values[i].Value) != "" }) {
		w.write(ctx, members, nil)
		return
	}
	found, err := w.read(ctx)
	if err != nil {
		w.fail(members, err)
		return
	}
	w.write(ctx, members, found)
}

// write writes all members at once. If the kernel refuses that, or then does not list what was written, it writes them one by
// one, so that one bad value does not stop the others. What still is not listed is undone, and fails for good: another attempt would
// end in the same way. found is what was read before; nil: nothing was.
func (w writer) write(ctx context.Context, members []int, found listing) {
	before := found // without one, none of the chains existed if they can be created
	err := w.createSome(ctx, members, found)
	if err == nil && len(w.unlisted(ctx, members)) == 0 {
		return
	}
	if err != nil && found != nil && len(members) == 1 {
		w.fail(members, err)
		return
	}
	// Now the state of the kernel matters: chains of ours may exist already.
	found, failure := w.read(ctx)
	if failure != nil {
		w.fail(members, failure)
		return
	}
	if err != nil {
		before = found
	}
	w.writeEach(ctx, members, found)
	written := slices.DeleteFunc(slices.Clone(members), func(i int) bool { return w.out[i].Err != nil })
	for i, err := range w.unlisted(ctx, written) {
		w.out[i].Err = w.undo(ctx, i, before, err)
	}
}

// writeEach writes members one by one. A chain may jump to another that follows, so this ends when no more can be written.
func (w writer) writeEach(ctx context.Context, members []int, found listing) {
	for left := members; len(left) > 0; {
		var failed []int
		for _, i := range left {
			if w.out[i].Err = w.createSome(ctx, []int{i}, found); w.out[i].Err != nil {
				failed = append(failed, i)
			}
		}
		if len(failed) == len(left) || ctx.Err() != nil {
			return
		}
		left = failed
	}
}

// fail notes an error of all members.
func (w writer) fail(members []int, err error) {
	for _, i := range members {
		w.out[i].Err = err
	}
}

// read reads the tables of the writer's IP version.
func (w writer) read(ctx context.Context) (listing, error) {
	return w.h.tool.read(ctx, w.space, w.table.ipv6)
}

// createSome creates members with one batch. found is the state of the kernel if it was read;
// without it, the batch fails if one of the chains exists.
func (w writer) createSome(ctx context.Context, members []int, found listing) error {
	b := &batch{table: w.table}
	contents := make([]content, len(members))
	for n, i := range members {
		v := w.values[i].Value
		c, err := w.h.contentOf(v, w.policyBefore(w.values[i], found))
		if err != nil {
			return err
		}
		if err := w.add(b, i, c, found); err != nil {
			return err
		}
		contents[n] = c
	}
	if err := w.h.tool.apply(ctx, w.space, b); err != nil {
		w.h.tried(err)
		return explain(b, err)
	}
	for n, i := range members {
		w.out[i] = scheduler.Created[Meta]{Meta: contents[n].meta(w.space.ID)}
		w.contents[i] = contents[n]
		w.h.watcher.written(w.space, w.values[i].Key, w.table, contents[n])
	}
	w.h.tried(nil)
	return nil
}

// policyBefore returns the policy that a value will replace, if it declares one. If the agent
// has set the policy already, it is the one before that.
func (w writer) policyBefore(d desired, found listing) string {
	if policyOf(d.Value) == "" {
		return ""
	}
	old, _, _ := found.find(w.table, chainOf(w.h.Label, d.Value))
	return cmp.Or(old.was, w.h.watcher.was(w.space.ID, d.Key), found.policy(w.table.name, builtIn(d.Value)))
}

// add adds the lines that bring c about. A chain of ours may exist: the value changes, or a
// Create was interrupted, or it is from a former start. The error wraps ErrConflict if the
// chain belongs to another owner.
func (w writer) add(b *batch, value int, c content, found listing) error {
	old, marked, there := found.find(w.table, c.chain)
	if !there {
		b.create(value, c)
		b.enter(value, c)
		b.setPolicy(value, c.in, c.policy)
		return nil
	}
	if !w.mayReplace(c, old, marked) {
		w.h.watcher.await(w.space, chainID{w.table, c.chain})
		return fmt.Errorf("chain %s of table %s: %w: %s; remove it, or choose another name", c.chain, w.table.name, ErrConflict, ownerText(old.mark, marked))
	}
	b.replace(value, c)
	if !old.entered(c.in) {
		b.leave(value, old)
		b.enter(value, c)
	}
	b.setPolicy(value, c.in, c.policy)
	if c.policy == "" {
		b.restorePolicy(value, old)
	}
	return nil
}

// mayReplace reports whether c may take the place of an existing chain. "iptables -F" removes
// the marks, too. So an empty chain without a mark has no owner, and one with a name that only
// the agent uses is the agent's.
func (w writer) mayReplace(c content, old mine, marked bool) bool {
	if marked {
		return old.name == c.name && w.h.ours(w.space, old.mark, true)
	}
	return len(old.rules) == 0 || strings.HasPrefix(c.chain, prefix)
}

// policy returns the policy of a built-in chain. A table that nobody uses is not listed; its
// chains accept.
func (l listing) policy(table, name string) string {
	if c := l[table][name]; c != nil {
		return c.policy
	}
	return iptables.RuleChain_ACCEPT.String()
}

// ours reports whether a mark is that of this agent; see package iface for the rules.
func (h *handler) ours(space *netns.Space, m mark, learns bool) bool {
	if m.label != h.Label {
		return false
	}
	other := m.installation != "" && m.installation != h.Installation
	return !other || !h.Lives(m.installation, learns) && !space.Announced(m.installation)
}

// ownerText describes the owner of a chain in an error.
func ownerText(m mark, marked bool) string {
	switch {
	case !marked:
		return "it has no mark of an agent"
	case m.installation == "":
		return fmt.Sprintf("value %s of the agent with label %s", m.name, m.label)
	}
	return fmt.Sprintf("value %s of the agent with label %s, installation %s", m.name, m.label, m.installation)
}

// explain adds the rule at fault to an error of a batch. Lines of the agent's own, such as the
// mark, have no rule to name.
func explain(b *batch, err error) error {
	refused, ok := errors.AsType[*batchError](err)
	if !ok {
		return err
	}
	if from, ok := b.source(refused.line); ok && from.rule >= 0 {
		return fmt.Errorf("rules[%d]: %w", from.rule, err)
	}
	return err
}

// update replaces rules and policy, in one batch. The chain is read first: if another program
// has taken its name, it must stay.
func (h *handler) update(ctx context.Context, key string, _, v *iptables.RuleChain, m Meta) (Meta, error) {
	space, ok := h.Spaces.ByID(m.NS)
	if !ok {
		return m, fmt.Errorf("%s: %w", netns.Text(v.GetNamespace()), netns.ErrNotFound)
	}
	defer space.Close()
	w := writer{
		h: h, space: space, table: tableOf(v), values: []desired{{Key: key, Value: v}},
		out: []scheduler.Created[Meta]{{Meta: m}}, contents: map[int]content{},
	}
	found, err := w.read(ctx)
	if err != nil {
		return m, err
	}
	w.write(ctx, []int{0}, found)
	if w.out[0].Err != nil {
		return m, w.out[0].Err
	}
	return w.out[0].Meta, nil
}

// delete removes the chain, and restores the policy of the built-in chain unless somebody has
// changed it. A missing chain is no error, and one of another owner stays.
func (h *handler) delete(ctx context.Context, key string, v *iptables.RuleChain, m Meta) error {
	h.watcher.forget(m.NS, key)
	space, ok := h.Spaces.ByID(m.NS)
	if !ok {
		return nil // the chain vanished with its namespace
	}
	defer space.Close()
	t := tableOf(v)
	found, err := h.tool.read(ctx, space, t.ipv6)
	if err != nil {
		return err
	}
	one, marked, _ := found.find(t, m.Chain)
	if !marked || !h.ours(space, one.mark, true) {
		return nil
	}
	b := &batch{table: t}
	b.restorePolicy(0, one)
	b.leave(0, one)
	b.remove(0, one.chain)
	err = h.tool.apply(ctx, space, b)
	h.tried(err)
	if err != nil {
		return fmt.Errorf("chain %s of table %s: do other rules jump to it? %w", m.Chain, t.name, err)
	}
	return nil
}
