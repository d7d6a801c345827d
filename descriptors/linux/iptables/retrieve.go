package iptables

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/linux/iptables"
	"github.com/keyplane/keyplane/proto/ligato/linux/namespace"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/reading"
)

// found is the form in which chains are retrieved, desired a chain that is wanted.
type (
	found   = scheduler.Found[*iptables.RuleChain, Meta]
	desired = scheduler.Desired[*iptables.RuleChain]
)

// place is what was read from one namespace.
type place struct {
	*netns.Place
	found []mine
}

// retrieve reads the agent's own namespace, named namespaces, and those of desired values. It
// yields the chains with the agent's mark.
func (h *handler) retrieve(ctx context.Context, wanted []desired) iter.Seq2[found, error] {
	return reading.Of(func(learns bool, yield func(found, error) bool) {
		refs := make([]*namespace.NetNamespace, len(wanted))
		for i, w := range wanted {
			refs[i] = w.Value.GetNamespace()
		}
		began := h.watcher.now()
		spaces, err := h.Spaces.Places(refs)
		if err != nil {
			yield(found{}, err)
			return
		}
		defer spaces.Close()
		places, err := h.readAll(ctx, spaces, wanted)
		if err != nil {
			yield(found{}, err)
			return
		}
		for _, f := range h.recognise(places, wanted, learns) {
			if !yield(f, nil) {
				return
			}
		}
		yield(found{Learned: func() { h.watcher.unseen(began, declaredIn(places, wanted)) }}, nil)
	})
}

// declaredIn returns a function that reports whether a chain is declared in a namespace that was
// read. If such a chain is missing, it is written again soon. Its record stays until then, since
// it knows the policy before the agent's.
func declaredIn(places []*place, wanted []desired) func(ns kernel.ID, key string) bool {
	byID, byKey := map[kernel.ID]*place{}, map[string]*iptables.RuleChain{}
	for _, p := range places {
		byID[p.Space.ID] = p
	}
	for _, w := range wanted {
		byKey[w.Key] = w.Value
	}
	return func(ns kernel.ID, key string) bool {
		p, v := byID[ns], byKey[key]
		return p != nil && v != nil && p.Reached(v.GetNamespace())
	}
}

// readAll reads both IP versions of all namespaces, several at a time.
func (h *handler) readAll(ctx context.Context, spaces netns.Places, wanted []desired) ([]*place, error) {
	places := make([]*place, len(spaces))
	v6 := make([][]mine, len(spaces))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(h.Readers)
	for i, space := range spaces {
		p := &place{Place: space}
		places[i] = p
		g.Go(func() (err error) { p.found, err = h.readMarked(ctx, p.Space, false, wanted); return err })
		g.Go(func() (err error) { v6[i], err = h.readMarked(ctx, p.Space, true, wanted); return err })
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for i, p := range places {
		p.found = append(p.found, v6[i]...)
	}
	return places, nil
}

// readMarked reads one IP version of a namespace. A host without the program, or an agent
// without the right to use it (CAP_NET_ADMIN), cannot have chains of ours; that is an error only
// if one is wanted.
func (h *handler) readMarked(ctx context.Context, space *netns.Space, ipv6 bool, wanted []desired) ([]mine, error) {
	all, err := h.tool.read(ctx, space, ipv6)
	if unusable := errors.Is(err, ErrNoProgram) || errors.Is(err, unix.EPERM); unusable && !wants(wanted, ipv6) {
		return nil, nil
	}
	return all.marked(ipv6), err
}

// wants reports whether a chain of the IP version is wanted.
func wants(wanted []desired, ipv6 bool) bool {
	for _, w := range wanted {
		if tableOf(w.Value).ipv6 == ipv6 {
			return true
		}
	}
	return false
}

// recognise returns the chains of this agent. If several carry the name of one value, such as
// after a move to another table while the agent was down, the one at the desired place is the
// value. The others are leftovers, and get names that nobody has declared.
func (h *handler) recognise(places []*place, wanted []desired, learns bool) (out []found) {
	byName := map[string]*iptables.RuleChain{}
	for _, w := range wanted {
		byName[w.Value.GetName()] = w.Value
	}
	taken := map[string]bool{}
	for _, first := range []bool{true, false} { // first those at their places
		for _, p := range places {
			for _, m := range p.found {
				want := byName[m.name]
				if !h.ours(p.Space, m.mark, learns) || first != p.wanted(h.Label, m, want) {
					continue
				}
				v := p.value(h.Label, m, want, h.watcher.justWritten(p.Space.ID, models.For[*iptables.RuleChain]().KeyOf(m.name), m))
				for n := 0; taken[v.GetName()]; n++ {
					v.Name = fmt.Sprintf("%s-DUPLICATE%d", m.name, n)
				}
				taken[v.GetName()] = true
				key := models.For[*iptables.RuleChain]().KeyOf(v.GetName())
				out = append(out, found{
					Key: key, Value: v, Meta: Meta{NS: p.Space.ID, Chain: m.chain, In: m.in, Was: m.was},
					Learned: func() { h.watcher.retrieved(p.Space, key, m) },
				})
			}
		}
	}
	return out
}

// wanted reports whether m is at the place of the desired value.
func (p *place) wanted(label string, m mine, want *iptables.RuleChain) bool {
	return want != nil && m.table == tableOf(want) && m.chain == chainOf(label, want) &&
		p.Reached(want.GetNamespace())
}

// value returns what m means. If that is the desired value, it is the desired message itself.
// written: this process has just written it.
func (p *place) value(label string, m mine, want *iptables.RuleChain, written bool) *iptables.RuleChain {
	v := &iptables.RuleChain{
		Name: m.name, Namespace: p.Ref(want.GetNamespace()), Interfaces: want.GetInterfaces(), Rules: m.rules,
		Table: iptables.RuleChain_Table(iptables.RuleChain_Table_value[strings.ToUpper(m.table.name)]),
	}
	if m.table.ipv6 {
		v.Protocol = iptables.RuleChain_IPV6
	}
	// A chain that no jump leads to, or several, or that somebody has renamed, is not what the value means. As a
	// custom chain it differs from the value, and so it is made again.
	v.ChainType = iptables.RuleChain_ChainType(iptables.RuleChain_ChainType_value[m.in])
	if m.in == "" || !m.entered(m.in) || m.chain != chainOf(label, v) {
		v.ChainType, v.ChainName = iptables.RuleChain_CUSTOM, m.chain
	}
	if m.policy != "" {
		v.DefaultPolicy = iptables.RuleChain_Policy(iptables.RuleChain_Policy_value[m.actual])
	}
	if want != nil && m.intact(written) && m.declared == digest(want.GetRules()) {
		v.Rules = want.GetRules() // the declared spelling, not the kernel's
		if equivalent("", v, want) {
			return want
		}
	}
	return v
}
