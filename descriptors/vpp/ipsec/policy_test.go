package ipsec

import (
	"errors"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/existing"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/proto/ligato/vpp/ipsec"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/conformance"
)

// Addresses of policies.
const (
	nets   = ` remote_addr_start: "10.1.0.0" remote_addr_stop: "10.1.0.255" local_addr_start: "10.2.0.0" local_addr_stop: "10.2.0.255"`
	nets6  = ` remote_addr_start: "fd00:1::" remote_addr_stop: "fd00:1::ff" local_addr_start: "fd00:2::" local_addr_stop: "fd00:2::ff"`
	action = ` is_outbound: true action: PROTECT sa_index: 1`
)

func policy(t *testing.T, text string) *ipsec.SecurityPolicy {
	t.Helper()
	return testkit.Parse[*ipsec.SecurityPolicy](t, "spd_index: 7 "+text)
}

// withDatabase returns a handler for a VPP with the database 7 and the associations 1 and 2.
func withDatabase(t *testing.T, release string) (*handler, *simulated.VPP) {
	t.Helper()
	h, vpp := onVPP(t, release)
	if _, err := h.createDatabase(t.Context(), "", &ipsec.SecurityPolicyDatabase{Index: 7}); err != nil {
		t.Fatal(err)
	}
	for _, number := range []string{"1", "2"} {
		if _, err := h.createAssociation(t.Context(), "", testkit.Parse[*ipsec.SecurityAssociation](t, `index: `+number+` `+cbc(``))); err != nil {
			t.Fatal(err)
		}
	}
	return h, vpp
}

func TestPolicyConforms(t *testing.T) {
	change := func(name, from, to string, how conformance.How) conformance.Change[*ipsec.SecurityPolicy] {
		return conformance.Change[*ipsec.SecurityPolicy]{Name: name, From: policy(t, from), To: policy(t, to), How: how}
	}
	existing.Conforms(t, func(t *testing.T, release string) scheduler.Descriptor[*ipsec.SecurityPolicy, struct{}] {
		h, _ := withDatabase(t, release)
		return h.policyDescriptor()
	}, conformance.Suite[*ipsec.SecurityPolicy, struct{}]{
		Values: []scheduler.Desired[*ipsec.SecurityPolicy]{
			{Value: policy(t, nets+action+` priority: -5 protocol: 6 remote_port_start: 1 remote_port_stop: 2 local_port_stop: 9`)},
			{Value: policy(t, nets+` action: PROTECT sa_index: 2 priority: 2147483647`)},
			{Value: policy(t, nets6+action)},
			{Value: policy(t, ``)},
			{Value: policy(t, `is_outbound: true action: DISCARD sa_index: 9 protocol: 255`)},
			{Value: policy(t, `local_addr_stop: "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff" action: DISCARD`)},
			{Value: policy(t, `is_outbound: true remote_addr_start: "::1" remote_addr_stop: "::2" local_addr_start: "::3" local_addr_stop: "::4"`)},
		},
		Changes: []conformance.Change[*ipsec.SecurityPolicy]{
			change("priority", nets, nets+` priority: 3`, conformance.Recreated),
			change("action", nets, nets+` action: DISCARD`, conformance.Recreated),
			change("ports", nets, nets+` local_port_start: 3 local_port_stop: 4`, conformance.Recreated),
			change("all ports", nets, nets+` local_port_stop: 65535 remote_port_stop: 65535`, conformance.Unchanged),
			change("any protocol", nets, nets+` protocol: 255`, conformance.Unchanged),
		},
		Invalid: []conformance.Invalid[*ipsec.SecurityPolicy]{
			{Name: "addresses", Value: policy(t, `remote_addr_start: "x" remote_addr_stop: "10.0.0.1%eth0" local_addr_start: "::ffff:10.0.0.1" local_addr_stop: "10.0.0.300"`),
				Fields: []string{"remote_addr_start", "remote_addr_stop", "local_addr_start", "local_addr_stop"}},
			{Name: "IP versions", Value: policy(t, `remote_addr_start: "10.0.0.1" local_addr_stop: "fd00::1"`), Fields: []string{"local_addr_stop"}},
			{Name: "ranges", Value: policy(t, `remote_addr_start: "10.0.0.2" remote_addr_stop: "10.0.0.1" local_addr_start: "10.0.0.2" local_addr_stop: "10.0.0.1" remote_port_start: 2 remote_port_stop: 1 local_port_start: 1`),
				Fields: []string{"remote_addr_stop", "local_addr_stop", "remote_port_stop", "local_port_stop"}},
			{Name: "numbers", Value: policy(t, `protocol: 256 remote_port_start: 65536 remote_port_stop: 65537 action: 4`),
				Fields: []string{"protocol", "remote_port_start", "remote_port_stop", "action"}},
			{Name: "action", Value: policy(t, `action: RESOLVE`), Fields: []string{"action"}},
		},
	})
}

// TestPolicyOnce repeats the creation of a policy, as after a lost answer: VPP has it once.
func TestPolicyOnce(t *testing.T) {
	for _, release := range simulated.Releases() {
		t.Run(release, func(t *testing.T) {
			h, _ := withDatabase(t, release)
			for _, v := range []*ipsec.SecurityPolicy{policy(t, nets+action), policy(t, `local_addr_stop: "fd00::1" protocol: 17`)} {
				for range 3 {
					if _, err := h.createPolicy(t.Context(), "", v); err != nil {
						t.Fatal(err)
					}
				}
			}
			if all, err := h.readEntries(t.Context()); err != nil || len(all) != 2 {
				t.Errorf("policies are %v, %v", all, err)
			}
			_, err := h.createPolicy(t.Context(), "", policy(t, nets+` action: PROTECT sa_index: 99`))
			if !errors.Is(err, iface.ErrNotFound) || !strings.HasPrefix(err.Error(), "policy database 7, or security association 99 for PROTECT") {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// TestPoliciesThatCannotCoexist has policies that are one to VPP, at least when it deletes one.
func TestPoliciesThatCannotCoexist(t *testing.T) {
	shares := func(a, b string) bool {
		claimed := map[string]bool{}
		for _, c := range claimSelectors("", policy(t, a)) {
			claimed[c.Resource] = true
		}
		for _, c := range claimSelectors("", policy(t, b)) {
			if claimed[c.Resource] {
				return true
			}
		}
		return false
	}
	upper := strings.ReplaceAll(nets6, "fd00", "FD00")
	for _, tt := range []struct {
		name, a, b string
		want       bool
	}{
		{"spelling", nets6, upper + ` priority: 3`, true},
		{"default addresses", ``, `remote_addr_start: "0.0.0.0" local_addr_stop: "255.255.255.255"`, true},
		{"lower half", nets6, strings.Replace(nets6, "1::ff", "1::fe", 1), true},
		{"lower half, another priority", nets6, strings.Replace(nets6, "1::ff", "1::fe", 1) + ` priority: 3`, false},
		{"upper half", nets6, strings.Replace(nets6, "1::ff", "2::ff", 1), false},
		{"direction", nets, nets + ` is_outbound: true`, false},
		{"association", nets, nets + ` sa_index: 3`, false},
	} {
		if got := shares(tt.a, tt.b); got != tt.want {
			t.Errorf("%s: share a claim %v; expected %v", tt.name, got, tt.want)
		}
	}
}
