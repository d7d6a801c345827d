package vpp_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/proto/ligato/kvscheduler"
	"github.com/keyplane/keyplane/scheduler"
)

const interfacesPrefix = "config/vpp/v2/interfaces/"

// TestOneOfTwoHasIt declares pairs of interfaces that VPP cannot have both: VPP is asked for the
// one that wins, and for the other as soon as that goes.
func TestOneOfTwoHasIt(t *testing.T) { onEachVPP(t, oneOfTwoHasIt) }

func oneOfTwoHasIt(t *testing.T, vpp *simulated.VPP) {
	pairs := map[string]string{ // by what is asked for
		"create_vlan_subif":    `"type":"SUB_INTERFACE","sub":{"parent_name":"parent","sub_id":7}`,
		"gre_tunnel_add_del":   `"type":"GRE_TUNNEL","gre":{"tunnel_type":"L3","src_addr":"10.0.0.1","dst_addr":"10.0.0.2"}`,
		"bond_create2":         `"type":"BOND_INTERFACE","bond":{"mode":"XOR","id":5}`,
		"vxlan_add_del_tunnel": `"type":"VXLAN_TUNNEL","vxlan":{"src_address":"10.0.0.1","dst_address":"10.0.0.2","vni":7}`,
		"memif_create":         `"type":"MEMIF","memif":{"id":7}`,
		"gtpu_add_del_tunnel":  `"type":"GTPU_TUNNEL","gtpu":{"src_addr":"10.0.0.1","dst_addr":"10.0.0.2","teid":7}`,
		"ipip_add_tunnel":      `"type":"IPIP_TUNNEL","ipip":{"src_addr":"10.0.0.1","dst_addr":"10.0.0.2"}`,
	}
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	a.want(true, interfacesPrefix+"parent", `{"name":"parent","type":"SOFTWARE_LOOPBACK"}`)
	for asked, body := range pairs {
		of := func(name string) (key, value string) {
			return interfacesPrefix + name, `{"name":"` + name + `",` + body + `}`
		}
		second, secondValue := of("second")
		first, firstValue := of("first")
		vpp.Counts()
		_, err := a.declare(false, second, secondValue, first, firstValue)
		if !errors.Is(err, scheduler.ErrInvalid) || !strings.Contains(err.Error(), "(see "+first+")") {
			t.Errorf("%s: it says %v", asked, err)
		}
		if n := requests(vpp, asked); n != 1 {
			t.Errorf("VPP is asked %d times for %s", n, asked)
		}
		a.expectState(first, kvscheduler.ValueState_CONFIGURED)
		a.expectState(second, kvscheduler.ValueState_INVALID)
		a.unwant(first)
		a.expectState(second, kvscheduler.ValueState_CONFIGURED)
		a.unwant(second)
	}
}

// requests is how often VPP was asked for a message, of whatever version.
func requests(vpp *simulated.VPP, message string) (n int) {
	for name, times := range vpp.Counts() {
		if strings.HasPrefix(name, message) {
			n += times
		}
	}
	return n
}

// TestNobodyBorrowsInACircle has interfaces borrow addresses of each other: the explanation names
// all of them, and one that gets an address of its own ends it.
func TestNobodyBorrowsInACircle(t *testing.T) { onEachVPP(t, nobodyBorrowsInACircle) }

func nobodyBorrowsInACircle(t *testing.T, vpp *simulated.VPP) {
	const unnumbered = "vpp/interface/unnumbered/"
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	borrows := func(name, from string) (key, value string) {
		return interfacesPrefix + name, `{"name":"` + name + `","type":"SOFTWARE_LOOPBACK","unnumbered":{"interface_with_ip":"` + from + `"}}`
	}
	ka, va := borrows("a", "b")
	kb, vb := borrows("b", "c")
	kc, vc := borrows("c", "a")
	vpp.Counts()
	_, err := a.declare(true, ka, va, kb, vb, kc, vc)
	if !errors.Is(err, scheduler.ErrInvalid) || strings.Count(err.Error(), "want an interface that has an address of its own") != 3 {
		t.Errorf("it says %v", err)
	}
	if n := requests(vpp, "sw_interface_set_unnumbered"); n != 0 {
		t.Errorf("VPP is asked %d times", n)
	}
	why := a.sched.Explain(unnumbered + "a").String()
	for _, want := range []string{`interface_with_ip: "b"`, `interface_with_ip: "c"`, `interface_with_ip: "a"`, "waits for itself: a ring"} {
		if !strings.Contains(why, want) {
			t.Errorf("the explanation does not say %s:\n%s", want, why)
		}
	}
	a.want(false, kc, `{"name":"c","type":"SOFTWARE_LOOPBACK","ip_addresses":["10.0.0.1/24"]}`)
	a.expectState(unnumbered+"b", kvscheduler.ValueState_CONFIGURED)
	a.expectState(unnumbered+"a", kvscheduler.ValueState_INVALID)
	a.want(false, ka, strings.Replace(va, `"b"`, `"c"`, 1))
	a.expectState(unnumbered+"a", kvscheduler.ValueState_CONFIGURED)
}
