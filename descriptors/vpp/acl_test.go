package vpp_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	vppacl "go.fd.io/govpp/binapi/acl"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/scheduler"
)

const (
	webKey   = "config/vpp/acls/v2/acl/web"
	webList  = `{"name":"web","rules":[{"action":"PERMIT","ip_rule":{"ip":{"source_network":"10.0.0.0/8"}}}],"interfaces":{"ingress":["loop1"],"egress":["loop1"]}}`
	hostsKey = "config/vpp/acls/v2/acl/hosts"
	hosts    = `{"name":"hosts","rules":[{"action":"PERMIT","macip_rule":{"source_mac_address":"02:00:00:00:00:09","source_mac_address_mask":"ff:ff:ff:ff:ff:ff"}}],"interfaces":{"ingress":["loop1"]}}`
	loop     = `{"name":"loop1","type":"SOFTWARE_LOOPBACK","enabled":true}`
)

// TestAccessLists declares lists before their interface, changes and removes them, restarts VPP
// and the agent, and deletes lists by hand.
func TestAccessLists(t *testing.T) { onEachVPP(t, accessLists) }

func accessLists(t *testing.T, vpp *simulated.VPP) {
	const (
		configured = scheduler.Configured
		pending    = scheduler.Pending
	)
	inKey := keys.ACLInterface{ACL: "web", Interface: "loop1"}.Key()
	outKey := keys.ACLInterface{ACL: "web", Egress: true, Interface: "loop1"}.Key()
	macipKey := keys.ACLInterface{ACL: "hosts", Interface: "loop1"}.Key()
	all := []string{webKey, webList, hostsKey, hosts, loopKey, loop}

	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	a.want(false, all[:4]...)
	a.expectState(webKey, configured)
	a.expectState(inKey, pending)
	a.want(false, all[4:]...)
	for _, key := range []string{webKey, hostsKey, inKey, outKey, macipKey} {
		a.expectState(key, configured)
	}
	a.awaitState(keys.Interface("loop1").LinkState(true), scheduler.Obtained)
	a.resyncsInSync(vpp)

	// A change of rules alone touches no interface.
	vpp.Counts()
	a.want(false, webKey, `{"name":"web","rules":[{"action":"DENY","ip_rule":{}}],"interfaces":{"ingress":["loop1"],"egress":["loop1"]}}`)
	if n := vpp.Counts(); n["acl_add_replace"] != 1 || n["acl_interface_set_acl_list"] != 0 {
		t.Errorf("VPP was asked %v; expected one acl_add_replace", n)
	}

	// Another client deletes everything. A resync makes it again.
	deleteLists(t, vpp)
	a.unwant(loopKey)
	a.expectState(inKey, pending)
	a.want(true, all...)
	if _, err := a.sched.Commit(t.Context(), scheduler.Txn{Refresh: true}); err != nil {
		t.Error(err)
	}
	a.awaitState(keys.Interface("loop1").LinkState(true), scheduler.Obtained)
	a.resyncsInSync(vpp)
	for _, key := range []string{webKey, hostsKey, inKey, outKey, macipKey} {
		a.expectState(key, configured)
	}

	if err := vpp.Restart(); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { return len(macipIn(t, vpp)) == 1 }, func() string { return "the MACIP list of the interface is not back" })
	a.awaitState(outKey, configured)
	a.stop()
	vpp.Counts()
	again := startAgent(t, vpp.Socket)
	awaitReady(t, again)
	again.want(true, all...)
	expectOnlyReads(t, vpp)

	again.unwant(webKey, hostsKey)
	if lists := listsIn(t, vpp); len(lists) > 0 {
		t.Errorf("left behind: %+v", lists)
	}
}

// TestAccessListsOfOthers has another program apply lists of its own, before and after the agent has
// read VPP back. They stay, and come before those of the agent.
func TestAccessListsOfOthers(t *testing.T) { onEachVPP(t, accessListsOfOthers) }

func accessListsOfOthers(t *testing.T, vpp *simulated.VPP) {
	a := startAgentKnowing(t, vpp.Socket, memories{label: "vpp1"})
	awaitReady(t, a)
	a.want(true, loopKey, loop)
	states, err := a.states.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at := interface_types.InterfaceIndex(states["loop1"].GetIfIndex())
	c := vpp.Dial()
	applied := func() (tags []string) {
		names := map[uint32]string{}
		for _, d := range listsIn(t, vpp) {
			names[d.ACLIndex] = strings.TrimPrefix(d.Tag, "vpp1."+installation+"@")
		}
		for _, d := range listed[vppacl.ACLInterfaceListDetails](t, c, &vppacl.ACLInterfaceListDump{SwIfIndex: at}) {
			for _, number := range d.Acls {
				tags = append(tags, names[number])
			}
		}
		return tags
	}
	var others []uint32
	theirs := func(tag string) {
		t.Helper()
		var made vppacl.ACLAddReplaceReply
		vpp.Ask(c, &vppacl.ACLAddReplace{ACLIndex: ^uint32(0), Tag: tag}, &made)
		others = append(others, made.ACLIndex)
		n := uint8(len(others))
		vpp.Ask(c, &vppacl.ACLInterfaceSetACLList{SwIfIndex: at, NInput: n, Acls: others}, &vppacl.ACLInterfaceSetACLListReply{})
	}
	expect := func(when string, want ...string) {
		t.Helper()
		if got := applied(); !slices.Equal(got, want) {
			t.Errorf("%s: the interface has the lists %q, want %q", when, got, want)
		}
	}
	theirs("x")
	a.want(false, webKey, webList)
	expect("attached", "x", "web", "web")
	theirs("y")
	a.unwant(webKey)
	expect("detached", "x", "y")
	a.refreshes()
	a.want(false, webKey, webList)
	expect("attached after a resync", "x", "y", "web", "web")
	a.refreshes()
	a.unwant(webKey)
	a.want(false, webKey, strings.Replace(webList, `"egress":["loop1"]`, `"egress":[]`, 1))
	expect("attached to one direction", "x", "y", "web")
	a.resyncsInSync(vpp)
}

// TestAccessListsOfBridgedInterface has an interface with lists leave its bridge domain and come
// back. VPP forgets to look at the lists then, although it lists them, so they are applied again.
func TestAccessListsOfBridgedInterface(t *testing.T) {
	onEachVPP(t, func(t *testing.T, vpp *simulated.VPP) {
		const in, out = `{"name":"bd1","interfaces":[{"name":"loop1"}]}`, `{"name":"bd1"}`
		a := startAgent(t, vpp.Socket)
		awaitReady(t, a)
		c := vpp.Dial()
		looks := func(when string, want bool) {
			t.Helper()
			states, err := a.states.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			text := vpp.Command(c, "show interface features "+states["loop1"].GetInternalName())
			for _, feature := range []string{"l2-input-feat-arc", "l2-output-feat-arc", "l2-input-acl"} {
				if strings.Contains(text, feature) != want {
					t.Errorf("%s: expected %s %t:\n%s", when, feature, want, text)
				}
			}
		}
		a.want(true, webKey, webList, hostsKey, hosts, loopKey, loop, bridgeKey, in)
		looks("in a bridge domain", true)
		for _, next := range []string{out, in} {
			a.want(false, bridgeKey, next)
			looks("with "+next, true)
		}
		a.resyncsInSync(vpp)
		a.unwant(webKey, hostsKey)
		looks("its lists are gone", false)
	})
}

// listsIn returns the IP lists of VPP.
func listsIn(t *testing.T, vpp *simulated.VPP) []vppacl.ACLDetails {
	t.Helper()
	all, err := conn.Dump[vppacl.ACLDetails](t.Context(), vpp.Dial(), &vppacl.ACLDump{ACLIndex: ^uint32(0)})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// macipIn returns the MACIP lists that interfaces of VPP have.
func macipIn(t *testing.T, vpp *simulated.VPP) []vppacl.MacipACLInterfaceListDetails {
	t.Helper()
	all, err := conn.Dump[vppacl.MacipACLInterfaceListDetails](t.Context(), vpp.Dial(), &vppacl.MacipACLInterfaceListDump{SwIfIndex: ^(vppacl.MacipACLInterfaceListDump{}.SwIfIndex)})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// deleteLists deletes all lists as another client of VPP.
func deleteLists(t *testing.T, vpp *simulated.VPP) {
	t.Helper()
	c := vpp.Dial()
	applied, err := conn.Dump[vppacl.ACLInterfaceListDetails](t.Context(), c, &vppacl.ACLInterfaceListDump{SwIfIndex: ^(vppacl.ACLInterfaceListDump{}.SwIfIndex)})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range applied {
		vpp.Ask(c, &vppacl.ACLInterfaceSetACLList{SwIfIndex: d.SwIfIndex}, &vppacl.ACLInterfaceSetACLListReply{})
	}
	for _, d := range listsIn(t, vpp) {
		vpp.Ask(c, &vppacl.ACLDel{ACLIndex: d.ACLIndex}, &vppacl.ACLDelReply{})
	}
	vpp.Ask(c, &vppacl.MacipACLDel{ACLIndex: 0}, &vppacl.MacipACLDelReply{})
}

// TestOneMACIPList declares two MACIP lists for one interface: VPP would replace one by the other
// and say nothing. The second comes when the first goes.
func TestOneMACIPList(t *testing.T) {
	onEachVPP(t, func(t *testing.T, vpp *simulated.VPP) {
		const other = "config/vpp/acls/v2/acl/other"
		a := startAgent(t, vpp.Socket)
		awaitReady(t, a)
		a.want(true, hostsKey, hosts, loopKey, loop)
		_, err := a.declare(false, other, `{"name":"other","rules":[{"macip_rule":{}}],"interfaces":{"ingress":["loop1"]}}`)
		if !errors.Is(err, scheduler.ErrInvalid) {
			t.Errorf("the error is %v", err)
		}
		a.expectState(other, scheduler.Invalid)
		a.unwant(hostsKey)
		a.awaitState(other, scheduler.Configured)
		a.expectState(keys.ACLInterface{ACL: "other", Interface: "loop1"}.Key(), scheduler.Configured)
	})
}

// TestPolicyIsReplacedWithoutAGap replaces a policy by one of another number: the new one is attached
// before the old one is detached.
func TestPolicyIsReplacedWithoutAGap(t *testing.T) {
	onEachVPP(t, func(t *testing.T, vpp *simulated.VPP) {
		const abfs = "config/vpp/abfs/v2/abf/"
		policy := func(index string) string {
			return `{"index":` + index + `,"acl_name":"web","attached_interfaces":[{"input_interface":"loop1","priority":1}],"forwarding_paths":[{"next_hop_ip":"10.1.0.9","interface_name":"loop1"}]}`
		}
		a := startAgent(t, vpp.Socket)
		awaitReady(t, a)
		a.want(true, loopKey, loop, webKey, webList, abfs+"1", policy("1"))
		done := a.want(true, loopKey, loop, webKey, webList, abfs+"2", policy("2"))
		var got []string
		for _, op := range done.Executed.All() {
			got = append(got, fmt.Sprint(op.Verb, " ", op.Key))
		}
		want := []string{
			"CREATE " + abfs + "2", "CREATE " + keys.ABFMembers.Key(2, "loop1"),
			"DELETE " + keys.ABFMembers.Key(1, "loop1"), "DELETE " + abfs + "1",
		}
		if !slices.Equal(got, want) {
			t.Errorf("executed %q; expected %q", got, want)
		}
		a.resyncsInSync(vpp)
	})
}
