// Package abf simulates VPP's plugin for forwarding by access lists. It checks as little
// as the real one. These requests kill it: attaching a policy that does not exist,
// detaching it for the other IP version, deleting it while it is attached, and any request
// for a policy to which paths were added that it had, and changing a policy while another
// of its paths is by a deleted interface. Attachments stay when their interface is deleted.
// So do paths: they drop packets until the paths of the policy change, also if another
// interface gets the index. Unlike the real one, it does not keep the access list from being
// deleted.
package abf

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/abf"
	"go.fd.io/govpp/binapi/fib_types"

	"github.com/keyplane/keyplane/internal/vppsim/core"
)

// A place is a policy on an interface. VPP has one attachment there, for one IP version.
type place struct{ policy, index uint32 }

func (a place) compare(b place) int {
	return cmp.Or(cmp.Compare(a.policy, b.policy), cmp.Compare(a.index, b.index))
}

// A policy has paths, of which some may drop packets.
type policy struct {
	abf.AbfPolicy
	dropping map[uint32]bool // the indexes of interfaces that were deleted since the paths changed
}

type plugin struct {
	vpp      *core.VPP
	policies map[uint32]policy
	attached map[place]abf.AbfItfAttach
}

// New adds the plugin.
func New(vpp *core.VPP) {
	p := &plugin{vpp, map[uint32]policy{}, map[place]abf.AbfItfAttach{}}
	vpp.Register(core.Plugin{
		Messages: []core.Message{core.Call(p.set), core.Dump(p.dump), core.Call(p.attach), core.Dump(p.dumpAttached)},
		Removing: p.removing,
		Pages: map[string]func() string{
			"show abf":        func() string { return p.showPolicies() + p.showAttached() },
			"show abf policy": p.showPolicies,
		},
	})
}

// same compares paths as VPP does: without weight and preference (VPP fib_path.c,
// fib_path_cmp_i).
func same(a, b fib_types.FibPath) bool {
	a.Weight, a.Preference, b.Weight, b.Preference = 0, 0, 0, 0
	return a == b
}

// set adds paths to a policy, which the first ones create, or removes them. The list of a
// policy cannot change. Whether a list exists is not checked.
func (p *plugin) set(q *abf.AbfPolicyAddDel, _ *abf.AbfPolicyAddDelReply) core.Errno {
	has, exists := p.policies[q.Policy.PolicyID]
	for i, path := range q.Policy.Paths {
		if path.SwIfIndex != core.None && p.vpp.Interface(path.SwIfIndex) == nil {
			return api.NO_MATCHING_INTERFACE
		}
		q.Policy.Paths[i].Weight = max(path.Weight, 1)
	}
	switch {
	case len(q.Policy.Paths) == 0 || !q.IsAdd && !exists || q.IsAdd && exists && has.ACLIndex != q.Policy.ACLIndex:
		return api.INVALID_VALUE
	case exists && len(has.Paths) == 0:
		return core.Crash
	case q.IsAdd:
		return p.change(abf.AbfPolicy{PolicyID: q.Policy.PolicyID, ACLIndex: q.Policy.ACLIndex, Paths: added(has.Paths, q.Policy.Paths)})
	}
	return p.remove(has, q.Policy.Paths)
}

// change gives a policy other paths. VPP then looks up the interfaces of all of them, and dies of
// one that is gone (VPP fib_path.c, fib_path_resolve).
func (p *plugin) change(to abf.AbfPolicy) core.Errno {
	for _, path := range to.Paths {
		if path.SwIfIndex != core.None && p.vpp.Interface(path.SwIfIndex) == nil {
			return core.Crash
		}
	}
	p.policies[to.PolicyID] = policy{to, map[uint32]bool{}}
	return core.OK
}

// removing has the paths by an interface drop packets.
func (p *plugin) removing(i *core.Interface) {
	for _, one := range p.policies {
		for _, path := range one.Paths {
			if path.SwIfIndex == i.Index {
				one.dropping[i.Index] = true
			}
		}
	}
}

// added returns the paths of a policy with more of them. Without a new one among them
// there are none: VPP gives the policy the same shared list of paths again, and then
// releases that (abf_policy.c, abf_policy_update).
func added(has, more []fib_types.FibPath) []fib_types.FibPath {
	out := slices.Clone(has)
	for _, path := range more {
		if !slices.ContainsFunc(has, func(other fib_types.FibPath) bool { return same(path, other) }) {
			out = append(out, path)
		}
	}
	if len(out) == len(has) {
		return nil
	}
	return out
}

// remove removes paths. A policy without paths is gone.
func (p *plugin) remove(has policy, paths []fib_types.FibPath) core.Errno {
	left := has.AbfPolicy
	left.Paths = slices.DeleteFunc(slices.Clone(has.Paths), func(path fib_types.FibPath) bool {
		return slices.ContainsFunc(paths, func(other fib_types.FibPath) bool { return same(path, other) })
	})
	switch len(left.Paths) {
	case len(has.Paths):
		return core.OK // the list of paths is the same one
	case 0:
	default:
		return p.change(left)
	}
	for at := range p.attached {
		if at.policy == left.PolicyID {
			return core.Crash
		}
	}
	delete(p.policies, left.PolicyID)
	return core.OK
}

func (p *plugin) dump(_ *abf.AbfPolicyDump, yield func(abf.AbfPolicyDetails)) {
	for _, id := range slices.Sorted(maps.Keys(p.policies)) {
		yield(abf.AbfPolicyDetails{Policy: p.policies[id].AbfPolicy})
	}
}

// attach attaches a policy to an interface, or detaches it.
func (p *plugin) attach(q *abf.AbfItfAttachAddDel, _ *abf.AbfItfAttachAddDelReply) core.Errno {
	at := place{q.Attach.PolicyID, uint32(q.Attach.SwIfIndex)}
	attached, has := p.attached[at]
	if _, exists := p.policies[at.policy]; q.IsAdd && !exists || !q.IsAdd && has && attached.IsIPv6 != q.Attach.IsIPv6 {
		return core.Crash
	}
	switch {
	case q.IsAdd && has:
		return api.ENTRY_ALREADY_EXISTS
	case q.IsAdd:
		p.attached[at] = q.Attach
	case !has:
		return api.NO_SUCH_ENTRY
	default:
		delete(p.attached, at)
	}
	return core.OK
}

func (p *plugin) dumpAttached(_ *abf.AbfItfAttachDump, yield func(abf.AbfItfAttachDetails)) {
	for _, at := range slices.SortedFunc(maps.Keys(p.attached), place.compare) {
		yield(abf.AbfItfAttachDetails{Attach: p.attached[at]})
	}
}

func (p *plugin) showPolicies() string {
	var b strings.Builder
	for _, id := range slices.Sorted(maps.Keys(p.policies)) {
		fmt.Fprintf(&b, "policy %d paths %d", id, len(p.policies[id].Paths))
		for _, at := range slices.Sorted(maps.Keys(p.policies[id].dropping)) {
			fmt.Fprintf(&b, " if_index:%d unresolved", at)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func (p *plugin) showAttached() string {
	var b strings.Builder
	for _, at := range slices.SortedFunc(maps.Keys(p.attached), place.compare) {
		fmt.Fprintf(&b, "policy %d %s\n", at.policy, p.vpp.NameOf(at.index))
	}
	return b.String()
}
