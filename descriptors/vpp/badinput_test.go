package vpp_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/scheduler"
)

// TestBadInput declares values as stores hold them that cannot be: each is INVALID, with all its
// bad fields, and VPP is never asked.
func TestBadInput(t *testing.T) { onEachVPP(t, badInput) }

func badInput(t *testing.T, vpp *simulated.VPP) {
	long := strings.Repeat("x", 64)
	bad := []struct{ what, key, value, fields string }{
		{"no type", "config/vpp/v2/interfaces/a", `{"name":"a","phys_address":"x"}`, "type phys_address"},
		{"another link", "config/vpp/v2/interfaces/a", `{"name":"a","type":"TAP","memif":{"id":1},"vrf":4294967295}`, "memif vrf"},
		{"no parent", "config/vpp/v2/interfaces/a", `{"name":"a","type":"SUB_INTERFACE","sub":{"sub_id":5000}}`, "sub.parent_name sub.sub_id"},
		{"no CIDR", "config/vpp/v2/interfaces/a", `{"name":"a","type":"DPDK","ip_addresses":["10.0.0.1/33","x"]}`, "ip_addresses[0] ip_addresses[1]"},
		{"no MAC", "config/vpp/v2/interfaces/a", `{"name":"a","type":"DPDK","phys_address":"garbage"}`, "phys_address"},
		{"long tag", "config/vpp/v2/interfaces/" + long, `{"name":"` + long + `","type":"VXLAN_TUNNEL","vxlan":{"vni":16777216}}`, "name vxlan.src_address vxlan.dst_address vxlan.vni"},
		{"borrows from itself", "config/vpp/v2/interfaces/a", `{"name":"a","type":"DPDK","unnumbered":{"interface_with_ip":"a"},"set_dhcp_client":true}`, "set_dhcp_client unnumbered.interface_with_ip"},
		{"another name", "config/vpp/v2/interfaces/a", `{"name":"b","type":"TAP","tap":{"rx_ring_size":3}}`, "name tap.rx_ring_size"},
		{"no table", "config/vpp/v2/route/vrf/4294967295/dst/10.0.0.0/8", `{"vrf_id":4294967295,"dst_network":"10.0.0.0/8","weight":256,"preference":256}`, "vrf_id weight preference"},
		{"no network", "config/vpp/v2/route/vrf/0/dst/x/", `{"dst_network":"x","weight":256}`, "dst_network weight"},
		{"two BVIs", "config/vpp/l2/v2/bridge-domain/bd", `{"name":"bd","mac_age":256,"interfaces":[{"name":"a","bridged_virtual_interface":true},{"name":"b","bridged_virtual_interface":true}]}`,
			"mac_age interfaces[1].bridged_virtual_interface"},
		{"no MAC of an entry", "config/vpp/l2/v2/fib/bd/mac/garbage", `{"bridge_domain":"bd","phys_address":"garbage"}`, "phys_address outgoing_interface"},
	}
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	vpp.Counts()
	for _, c := range bad {
		v, err := a.sched.Decode(c.key, []byte(c.value))
		if err == nil {
			t.Errorf("%s: %v is taken", c.what, v)
			continue
		}
		if _, err := a.sched.Commit(t.Context(), scheduler.Txn{Changes: []scheduler.Change{{Key: c.key, Err: err}}}); err == nil {
			t.Errorf("%s: the transaction says nothing", c.what)
		}
		a.expectState(c.key, scheduler.Invalid)
		got, want := models.Fields(err), strings.Fields(c.fields)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v: fields %q, want %q", c.what, err, got, want)
		}
	}
	expectNoWrites(t, vpp.Counts())
}
