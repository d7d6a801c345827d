package srv6

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/readback"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/spelling"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/srv6"
	"github.com/keyplane/keyplane/scheduler"
)

const (
	// maxSegments is the size of a list in VPP's messages (VPP sr.api, srv6_sid_list).
	maxSegments = 16
	// maxLists: VPP counts the lists of a policy in one byte when it dumps them, and an update
	// adds all new ones before it deletes old ones.
	maxLists = 127
)

// policyDescriptor implements policies. Their lists change in place.
func (h *handler) policyDescriptor() scheduler.Descriptor[*srv6.Policy, struct{}] {
	return scheduler.Descriptor[*srv6.Policy, struct{}]{
		Name:  PolicyName,
		Model: models.For[*srv6.Policy](),

		Validate: validatePolicy,
		Equivalent: func(_ string, old, new *srv6.Policy) bool {
			return sameKind(old, new) && slices.Equal(listsOf(old), listsOf(new))
		},
		// sr_policy_mod changes only lists, and weights of lists.
		Recreate: func(_ string, old, new *srv6.Policy, _ struct{}) bool { return !sameKind(old, new) },
		Dependencies: func(_ string, v *srv6.Policy) []scheduler.Dependency {
			if v.GetInstallationVrfId() == 0 {
				return nil // table 0 exists always
			}
			return []scheduler.Dependency{{Label: "vrf-table-exists", Key: keys.VRFTable(v.GetInstallationVrfId(), true)}}
		},
		Claims: claimsOfPolicy,
		Resolve: func(_ string, v *srv6.Policy) *srv6.Policy {
			if spelling.Canonical(v.GetBsid()) == v.GetBsid() {
				return v
			}
			v = proto.CloneOf(v)
			v.Bsid = spelling.Canonical(v.GetBsid())
			return v
		},

		Create: h.createPolicy,
		Update: h.updatePolicy,
		Delete: h.deletePolicy,
		Retrieve: readback.Retriever[*srv6.Policy]{
			Read:       h.readPolicies,
			ID:         func(v *srv6.Policy) string { return spelling.Canonical(v.GetBsid()) },
			AsDeclared: func(v, declared *srv6.Policy) { v.Bsid = declared.GetBsid() },
			Declared:   func(v *srv6.Policy) { h.policies.set(v.GetBsid(), true) },
		}.Retrieve,
		// The lists of a policy depend on the source address.
		RetrieveAfter: []string{GlobalName},
	}
}

// sameKind compares everything except the lists: VPP changes nothing of that in place.
func sameKind(a, b *srv6.Policy) bool {
	return a.GetInstallationVrfId() == b.GetInstallationVrfId() && a.GetSrhEncapsulation() == b.GetSrhEncapsulation() && a.GetSprayBehaviour() == b.GetSprayBehaviour()
}

// A list is a segment list in the canonical spelling, with the default weight filled in.
type list struct {
	segments string // separated by spaces
	weight   uint32
}

// listOf returns a list. A weight of 0 is the default, 1: VPP would send no packets that way.
func listOf(l *srv6.Policy_SegmentList) list {
	var segments []string
	for _, s := range l.GetSegments() {
		segments = append(segments, spelling.Canonical(s))
	}
	return list{strings.Join(segments, " "), max(l.GetWeight(), 1)}
}

// addresses returns the segments of a list. They are valid only if Validate has accepted the
// list.
func (l list) addresses() (out []netip.Addr) {
	for s := range strings.FieldsSeq(l.segments) {
		out = append(out, unicast(s))
	}
	return out
}

// listsOf returns the lists of a policy in a fixed order: VPP has a set of them. The first one
// goes into sr_policy_add, so the order makes requests reproducible.
func listsOf(v *srv6.Policy) (out []list) {
	for _, l := range v.GetSegmentLists() {
		out = append(out, listOf(l))
	}
	slices.SortFunc(out, func(a, b list) int {
		if c := strings.Compare(a.segments, b.segments); c != 0 {
			return c
		}
		return int(int64(a.weight) - int64(b.weight))
	})
	return out
}

// validatePolicy enforces VPP's limits. VPP itself does not check them: it dies if a list has no
// segments. Two equal lists are refused, because a weight expresses the same.
func validatePolicy(_ string, v *srv6.Policy) error {
	var f faults
	f.address("bsid", v.GetBsid())
	switch n := len(v.GetSegmentLists()); {
	case n == 0:
		f.Add("segment_lists", nil, "at least one list")
	case n > maxLists:
		f.Add("segment_lists", fmt.Sprint(n, " lists"), "at most %d", maxLists)
	}
	seen := map[list]int{}
	for i, l := range v.GetSegmentLists() {
		field := fmt.Sprintf("segment_lists[%d]", i)
		f.list(field, l)
		if first, twice := seen[listOf(l)]; twice {
			f.Add(field, nil, "each list once; segment_lists[%d] is the same", first)
		} else {
			seen[listOf(l)] = i
		}
	}
	return f.Err()
}

// list checks one segment list. field is the name of the list in errors, such as
// "segment_lists[0]".
func (f *faults) list(field string, l *srv6.Policy_SegmentList) {
	switch n := len(l.GetSegments()); {
	case n == 0:
		f.Add(field+".segments", nil, "at least one segment")
	case n > maxSegments:
		f.Add(field+".segments", fmt.Sprint(n, " segments"), "at most %d", maxSegments)
	}
	for i, s := range l.GetSegments() {
		f.address(fmt.Sprintf("%s.segments[%d]", field, i), s)
	}
}

// claimsOfPolicy claims the address: VPP has one policy per address in all tables together.
func claimsOfPolicy(_ string, v *srv6.Policy) []scheduler.Claim {
	address := spelling.Canonical(v.GetBsid())
	return []scheduler.Claim{
		{Resource: "vpp-srv6-policy/" + address, Field: "bsid", Value: v.GetBsid(), Want: "an address without another policy, also in other tables"},
		claimOnAddress("bsid", v.GetBsid(), v.GetInstallationVrfId(), address),
	}
}
