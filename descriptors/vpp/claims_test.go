package vpp_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/explain"
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
		if st, _ := a.sched.Status(first); vpp.Sim == nil && st.State == scheduler.Unimplemented {
			t.Logf("SKIPPED: %s: %v", asked, st.Err) // this VPP lacks the plugin
			a.unwant(first, second)
			continue
		}
		if !errors.Is(err, scheduler.ErrInvalid) || !strings.Contains(err.Error(), "(see "+first+")") {
			t.Errorf("%s: it says %v", asked, err)
		}
		if n := requests(vpp, asked); n != 1 {
			t.Errorf("VPP is asked %d times for %s", n, asked)
		}
		a.expectState(first, scheduler.Configured)
		a.expectState(second, scheduler.Invalid)
		a.unwant(first)
		a.expectState(second, scheduler.Configured)
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

// TestWhoHasItKeepsIt declares, beside what works, a bridge domain and a memif with lower keys that
// want the same: nothing happens to what works, nor when it is made anew or the agent restarts.
func TestWhoHasItKeepsIt(t *testing.T) { onEachVPP(t, whoHasItKeepsIt) }

func whoHasItKeepsIt(t *testing.T, vpp *simulated.VPP) {
	const (
		wrongBridge = "config/vpp/l2/v2/bridge-domain/bd0"
		wrongMember = "vpp/bd/bd0/interface/loop1"
		memifKey    = interfacesPrefix + "memif1"
		wrongMemif  = interfacesPrefix + "memif0"
	)
	bridge := func(name, more string) string {
		return `{"name":"` + name + `",` + more + `"interfaces":[{"name":"loop1","bridged_virtual_interface":true}]}`
	}
	memif := func(name, more string) string {
		return `{"name":"` + name + `","type":"MEMIF","memif":{` + more + `"id":7}}`
	}
	right := []string{loopKey, `{"name":"loop1","type":"SOFTWARE_LOOPBACK"}`, bridgeKey, bridge("bd1", ""), memifKey, memif("memif1", "")}
	wrong := []string{wrongBridge, bridge("bd0", ""), wrongMemif, memif("memif0", "")}
	a := startAgent(t, vpp.Socket)
	stays := func() {
		t.Helper()
		a.expectState(memberKey, scheduler.Configured)
		a.expectState(memifKey, scheduler.Configured)
		a.expectState(wrongMember, scheduler.Invalid)
		a.expectState(wrongMemif, scheduler.Invalid)
	}
	awaitReady(t, a)
	a.want(true, right...)
	vpp.Counts()
	_, err := a.declare(false, wrong...)
	if !errors.Is(err, scheduler.ErrInvalid) || !strings.Contains(err.Error(), "(see "+memberKey+")") || !strings.Contains(err.Error(), "(see "+memifKey+")") {
		t.Errorf("it says %v", err)
	}
	for asked := range vpp.Counts() {
		if strings.HasPrefix(asked, "sw_interface_set_l2_bridge") || strings.HasPrefix(asked, "memif_") {
			t.Errorf("VPP is asked for %s", asked)
		}
	}
	stays()

	right[3], right[5] = bridge("bd1", `"mac_age":5,`), memif("memif1", `"ring_size":512,`)
	a.want(false, right...)
	if n := requests(vpp, "memif_create"); n != 1 {
		t.Errorf("VPP is asked %d times for a memif", n)
	}
	stays()
	a.unwant(loopKey)
	a.want(false, right[:2]...)
	stays()

	a.stop()
	a = startAgent(t, vpp.Socket)
	awaitReady(t, a)
	vpp.Counts()
	if _, err = a.declare(true, append(right, wrong...)...); !errors.Is(err, scheduler.ErrInvalid) {
		t.Errorf("it says %v", err)
	}
	expectOnlyReads(t, vpp)
	stays()
	a.unwant(bridgeKey, memifKey)
	a.expectState(wrongMember, scheduler.Configured)
	a.expectState(wrongMemif, scheduler.Configured)
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
	if !errors.Is(err, scheduler.ErrInvalid) || strings.Count(err.Error(), "expected an interface that has an address of its own") != 3 {
		t.Errorf("it says %v", err)
	}
	if n := requests(vpp, "sw_interface_set_unnumbered"); n != 0 {
		t.Errorf("VPP is asked %d times", n)
	}
	why := explain.Key(a.sched, unnumbered+"a").String()
	for _, want := range []string{`interface_with_ip is "b"`, `interface_with_ip is "c"`, `interface_with_ip is "a"`, "waits for itself: a cycle"} {
		if !strings.Contains(why, want) {
			t.Errorf("the explanation does not say %s:\n%s", want, why)
		}
	}
	a.want(false, kc, `{"name":"c","type":"SOFTWARE_LOOPBACK","ip_addresses":["10.0.0.1/24"]}`)
	a.expectState(unnumbered+"b", scheduler.Configured)
	a.expectState(unnumbered+"a", scheduler.Invalid)
	a.want(false, ka, strings.Replace(va, `"b"`, `"c"`, 1))
	a.expectState(unnumbered+"a", scheduler.Configured)
}
