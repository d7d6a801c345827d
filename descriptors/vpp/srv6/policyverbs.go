package srv6

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/sr"
	"go.fd.io/govpp/binapi/sr_types"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/internal/spelling"
	"github.com/keyplane/keyplane/proto/ligato/vpp/srv6"
)

// The return values of policies (VPP sr_policy_rewrite.c).
const (
	noPolicy     = -1
	policyExists = -12 // also: its table has a route to the address
	noBSIDTable  = -13
)

// policies are the policies that this agent declares, by address. A new source address reaches
// them only if their lists are made anew.
type policies struct {
	// changing is held for reading by the verbs of a policy, and for writing while the source
	// address changes: two updates at once would add lists twice.
	changing sync.RWMutex

	mu   sync.Mutex // guards ours
	ours map[string]bool
}

// set notes that a policy is ours, or is not.
func (p *policies) set(bsid string, ours bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ours == nil {
		p.ours = map[string]bool{}
	}
	if ours {
		p.ours[spelling.Canonical(bsid)] = true
	} else {
		delete(p.ours, spelling.Canonical(bsid))
	}
}

// has reports whether a policy is ours. A policy of others keeps its old source address.
func (p *policies) has(bsid netip.Addr) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ours[bsid.String()]
}

// createPolicy makes a policy. If VPP has one of the address, it is changed, or replaced.
func (h *handler) createPolicy(ctx context.Context, _ string, v *srv6.Policy) (struct{}, error) {
	h.policies.changing.RLock()
	defer h.policies.changing.RUnlock()
	h.policies.set(v.GetBsid(), true)
	exists, err := h.addPolicy(ctx, v)
	if err == nil && exists {
		err = h.bring(ctx, v)
	}
	return struct{}{}, err
}

// addPolicy makes a policy with all its lists, unless VPP may have it. The result exists is true
// if VPP has a policy or a route of the address. Both have the same return value, so only a dump
// can tell them apart.
func (h *handler) addPolicy(ctx context.Context, v *srv6.Policy) (exists bool, err error) {
	all := listsOf(v)
	q := &sr.SrPolicyAdd{
		BsidAddr: unicast(v.GetBsid()).As16(), FibTable: v.GetInstallationVrfId(),
		IsEncap: v.GetSrhEncapsulation(), IsSpray: v.GetSprayBehaviour(), Sids: all[0].wire(),
	}
	err = h.API.Call(ctx, q, &sr.SrPolicyAddReply{})
	switch retval(err) {
	case policyExists:
		return true, nil
	case noBSIDTable:
		return false, fmt.Errorf("IPv6 table %d: %w", v.GetInstallationVrfId(), iface.ErrNotFound)
	}
	if err != nil {
		return false, err
	}
	return false, h.changeLists(ctx, q.BsidAddr, nil, all[1:], nil)
}

// updatePolicy brings the lists of a policy to those of v. It reads the lists first: only VPP
// knows the indexes by which sr_policy_mod addresses them.
func (h *handler) updatePolicy(ctx context.Context, _ string, _, v *srv6.Policy, _ struct{}) (struct{}, error) {
	h.policies.changing.RLock()
	defer h.policies.changing.RUnlock()
	return struct{}{}, h.bring(ctx, v)
}

// A found policy is one that VPP has. stale says that its lists have another source address
// than new ones would get.
type foundPolicy struct {
	sr.SrPoliciesWithSlIndexDetails
	stale bool
}

// bring reads a policy, and changes it to v. Somebody else may have deleted or replaced it.
func (h *handler) bring(ctx context.Context, v *srv6.Policy) error {
	all, err := h.dumpPolicies(ctx)
	if err != nil {
		return err
	}
	bsid := unicast(v.GetBsid())
	i := slices.IndexFunc(all, func(p foundPolicy) bool { return p.Bsid == bsid.As16() })
	if i >= 0 && sameKind(all[i].value(), v) {
		return h.changeTo(ctx, all[i], listsOf(v))
	}
	if i >= 0 {
		if err := h.removePolicy(ctx, all[i].value()); err != nil {
			return err
		}
	}
	exists, err := h.addPolicy(ctx, v)
	if exists {
		err = fmt.Errorf("IPv6 table %d has a route or an interface's address %s; expected an address without one", v.GetInstallationVrfId(), bsid)
	}
	return err
}

// changeTo changes the lists of a policy. Lists that stay are not touched, unless they are stale.
// A list that only gets another weight keeps its place.
func (h *handler) changeTo(ctx context.Context, p foundPolicy, want []list) error {
	type placed struct {
		list
		index uint32
	}
	var has []placed
	for _, l := range p.SidLists {
		has = append(has, placed{listIn(l.NumSids, l.Weight, l.Sids), l.SlIndex})
	}
	// take removes the first list that fits from has.
	take := func(fits func(list) bool) (index uint32, ok bool) {
		i := slices.IndexFunc(has, func(one placed) bool { return fits(one.list) })
		if i < 0 || p.stale {
			return 0, false
		}
		index = has[i].index
		has = slices.Delete(has, i, i+1)
		return index, true
	}
	want = slices.DeleteFunc(slices.Clone(want), func(l list) bool {
		_, ok := take(func(one list) bool { return one == l })
		return ok
	})
	weights := map[uint32]uint32{}
	want = slices.DeleteFunc(want, func(l list) bool {
		index, ok := take(func(one list) bool { return one.segments == l.segments })
		if ok {
			weights[index] = l.weight
		}
		return ok
	})
	var gone []uint32
	for _, one := range has {
		gone = append(gone, one.index)
	}
	return h.changeLists(ctx, p.Bsid, weights, want, gone)
}

// changeLists sets weights and adds lists before it deletes others, so that the policy never has
// none. All requests go out as one batch, and VPP handles them in this order.
func (h *handler) changeLists(ctx context.Context, bsid ip_types.IP6Address, weights map[uint32]uint32, added []list, gone []uint32) error {
	var steps []*conn.Step
	ask := func(op sr_types.SrPolicyOp, index uint32, l sr.Srv6SidList) {
		q := &sr.SrPolicyMod{BsidAddr: bsid, Operation: op, SlIndex: index, Sids: l, Weight: l.Weight}
		steps = append(steps, conn.Ask(q, &sr.SrPolicyModReply{}))
	}
	for index, weight := range weights {
		ask(sr_types.SR_POLICY_OP_API_MOD, index, sr.Srv6SidList{Weight: weight})
	}
	for _, l := range added {
		ask(sr_types.SR_POLICY_OP_API_ADD, 0, l.wire())
	}
	for _, index := range gone {
		ask(sr_types.SR_POLICY_OP_API_DEL, index, sr.Srv6SidList{})
	}
	if len(steps) == 0 {
		return nil
	}
	return h.API.Batch(ctx, steps...)
}

// wire returns a list in the form of messages. Validate has checked that the segments fit.
func (l list) wire() sr.Srv6SidList {
	out := sr.Srv6SidList{Weight: l.weight}
	for i, s := range l.addresses() {
		out.Sids[i] = s.As16()
		out.NumSids++
	}
	return out
}

// listIn returns a list of a message. A count above VPP's own maximum is cut, so a broken reply
// cannot cause a panic.
func listIn(n uint8, weight uint32, sids [maxSegments]ip_types.IP6Address) list {
	var segments []string
	for _, s := range sids[:min(n, maxSegments)] {
		segments = append(segments, netip.AddrFrom16(s).String())
	}
	return list{strings.Join(segments, " "), weight}
}

// deletePolicy deletes a policy. If the request fails, the policy stays ours: a new source
// address must still reach it.
func (h *handler) deletePolicy(ctx context.Context, _ string, v *srv6.Policy, _ struct{}) error {
	h.policies.changing.RLock()
	defer h.policies.changing.RUnlock()
	err := h.removePolicy(ctx, v)
	if err == nil {
		h.policies.set(v.GetBsid(), false)
	}
	return err
}

// removePolicy deletes the policy of an address, if there is one. VPP dies if the table of the
// policy was deleted; when it is there again, the deletion succeeds.
func (h *handler) removePolicy(ctx context.Context, v *srv6.Policy) error {
	has, err := h.hasTable(ctx, v.GetInstallationVrfId(), true)
	if err != nil {
		return err
	}
	if !has {
		return fmt.Errorf("IPv6 table %d, from which the policy is to be removed: %w", v.GetInstallationVrfId(), iface.ErrNotFound)
	}
	err = h.API.Call(ctx, &sr.SrPolicyDel{BsidAddr: unicast(v.GetBsid()).As16()}, &sr.SrPolicyDelReply{})
	if retval(err) == noPolicy {
		return nil
	}
	return err
}

// readPolicies returns all policies. One that is stale is returned without its lists, so that
// it differs from the declared one, and is updated.
func (h *handler) readPolicies(ctx context.Context, _ bool) ([]*srv6.Policy, error) {
	all, err := h.dumpPolicies(ctx)
	if err != nil {
		return nil, err
	}
	var out []*srv6.Policy
	for _, p := range all {
		v := p.value()
		if p.stale {
			v.SegmentLists = nil
		}
		out = append(out, v)
	}
	return out, nil
}

// value returns a policy as a value.
func (p foundPolicy) value() *srv6.Policy {
	v := &srv6.Policy{
		Bsid: netip.AddrFrom16(p.Bsid).String(), InstallationVrfId: p.FibTable,
		SrhEncapsulation: p.IsEncap, SprayBehaviour: p.IsSpray,
	}
	for _, l := range p.SidLists {
		one := listIn(l.NumSids, l.Weight, l.Sids)
		v.SegmentLists = append(v.SegmentLists, &srv6.Policy_SegmentList{Weight: one.weight, Segments: strings.Fields(one.segments)})
	}
	return v
}

// dumpPolicies returns all policies that VPP has. From 23.06 on, VPP tells the source address of
// each; older releases do not, and no policy is stale there.
func (h *handler) dumpPolicies(ctx context.Context) ([]foundPolicy, error) {
	all, err := conn.Dump[sr.SrPoliciesWithSlIndexDetails](ctx, h.API, &sr.SrPoliciesWithSlIndexDump{})
	if err != nil {
		return nil, err
	}
	sources := map[ip_types.IP6Address]ip_types.IP6Address{}
	var now netip.Addr
	hasHeaders := slices.ContainsFunc(all, func(d sr.SrPoliciesWithSlIndexDetails) bool { return d.IsEncap })
	if hasHeaders && h.API.Has(&sr.SrPoliciesV2Dump{}) {
		if now, err = h.source(ctx); err != nil {
			return nil, err
		}
		told, err := conn.Dump[sr.SrPoliciesV2Details](ctx, h.API, &sr.SrPoliciesV2Dump{})
		if err != nil {
			return nil, err
		}
		for _, d := range told {
			sources[d.Bsid] = d.EncapSrc
		}
	}
	var out []foundPolicy
	for _, d := range all {
		source, told := sources[d.Bsid]
		out = append(out, foundPolicy{d, d.IsEncap && told && source != now.As16()})
	}
	return out, nil
}

// renew makes the lists of this agent's policies anew that have headers, after the source
// address has changed: VPP writes a header when a list is added. On releases that do not tell
// the source address of a policy, all of them are renewed.
func (h *handler) renew(ctx context.Context) error {
	all, err := h.dumpPolicies(ctx)
	if err != nil {
		return err
	}
	tells := h.API.Has(&sr.SrPoliciesV2Dump{})
	for _, p := range all {
		if !p.IsEncap || tells && !p.stale || !h.policies.has(netip.AddrFrom16(p.Bsid)) {
			continue
		}
		p.stale = true
		if err := h.changeTo(ctx, p, listsOf(p.value())); err != nil {
			return err
		}
	}
	return nil
}
