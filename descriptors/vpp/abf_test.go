package vpp_test

import (
	"fmt"
	"strings"
	"testing"

	vppabf "go.fd.io/govpp/binapi/abf"
	vppacl "go.fd.io/govpp/binapi/acl"
	"go.fd.io/govpp/binapi/fib_types"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/vlib"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
)

// A policyWorld is a VPP with a policy, whose interfaces somebody deletes by hand.
type policyWorld struct {
	*testing.T
	vpp    *simulated.VPP
	hand   *conn.Conn
	memory notebook
	agent  *agent
}

// policyValues are a list, the loopbacks loop1 to loop3, and a policy that is attached to loop3, with paths
// by these loopbacks.
func policyValues(by ...string) []string {
	var paths []string
	for _, name := range by {
		paths = append(paths, `{"interface_name":"`+name+`","next_hop_ip":"10.1.0.9"}`)
	}
	all := []string{
		webKey, `{"name":"web","rules":[{"action":"PERMIT","ip_rule":{"ip":{"source_network":"10.0.0.0/8"}}}]}`,
		"config/vpp/abfs/v2/abf/1", `{"index":1,"acl_name":"web","attached_interfaces":[{"input_interface":"loop3"}],"forwarding_paths":[` + strings.Join(paths, ",") + `]}`,
	}
	for _, name := range []string{"loop1", "loop2", "loop3"} {
		all = append(all, interfacesPrefix+name, `{"name":"`+name+`","type":"SOFTWARE_LOOPBACK","enabled":true}`)
	}
	return all
}

func (w *policyWorld) start() {
	w.Helper()
	w.agent = startAgentWith(w.T, w.vpp.Socket, nil, w.memory)
	awaitReady(w.T, w.agent)
}

// deleteByHand deletes a loopback behind the agent's back.
func (w *policyWorld) deleteByHand(name string) {
	w.Helper()
	for _, d := range listed[vppif.SwInterfaceDetails](w.T, w.hand, &vppif.SwInterfaceDump{SwIfIndex: ^interface_types.InterfaceIndex(0)}) {
		if strings.HasPrefix(d.Tag, name) {
			w.vpp.Ask(w.hand, &vppif.DeleteLoopback{SwIfIndex: d.SwIfIndex}, &vppif.DeleteLoopbackReply{})
			return
		}
	}
	w.Fatalf("VPP has no %s", name)
}

// policies is the page of policies. It says which paths drop packets.
func (w *policyWorld) policies() string {
	w.Helper()
	var r vlib.CliInbandReply
	w.vpp.Ask(w.hand, &vlib.CliInband{Cmd: "show abf policy"}, &r)
	return r.Reply
}

// awaitForwarding waits until the policy is attached, and has so many paths, of which none drops packets. Late
// events about the deleted interfaces may take it away for a moment.
func (w *policyWorld) awaitForwarding(paths int) {
	w.Helper()
	w.agent.awaitApplied()
	text, got, attached := "", 0, 0
	until(w.T, func() bool {
		got = 0
		for _, d := range listed[vppabf.AbfPolicyDetails](w.T, w.hand, &vppabf.AbfPolicyDump{}) {
			got += len(d.Policy.Paths)
		}
		attached = len(listed[vppabf.AbfItfAttachDetails](w.T, w.hand, &vppabf.AbfItfAttachDump{}))
		text = w.policies()
		return got == paths && attached == 1 && !strings.Contains(text, "unresolved")
	}, func() string {
		return fmt.Sprintf("the policy has %d paths and %d attachments; expected %d and 1, and none that is unresolved:\n%s", got, attached, paths, text)
	})
}

// expectNothing declares nothing, and waits until there are neither policies nor lists. The first attempt may fail:
// other interfaces are deleted at the same time, so that the index of a deleted one cannot be filled.
func (w *policyWorld) expectNothing() {
	w.Helper()
	_, err := w.agent.declare(true)
	policies, lists := "", 0
	until(w.T, func() bool {
		policies = strings.TrimSpace(w.policies())
		lists = len(listed[vppacl.ACLDetails](w.T, w.hand, &vppacl.ACLDump{ACLIndex: ^uint32(0)}))
		return policies == "" && lists == 0
	}, func() string {
		return fmt.Sprintf("%d lists and these policies are left: %s\n%v", lists, policies, err)
	})
}

// TestPolicyWithoutNextHop attaches a policy for IPv6 whose paths name only interfaces. They have the IP
// version of the attachment, and nothing changes at a resync: VPP dies of a path that is added twice.
func TestPolicyWithoutNextHop(t *testing.T) { onEachVPP(t, policyWithoutNextHop) }

func policyWithoutNextHop(t *testing.T, vpp *simulated.VPP) {
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	values := policyValues()
	values[3] = `{"index":1,"acl_name":"web","attached_interfaces":[{"input_interface":"loop3","is_ipv6":true}],` +
		`"forwarding_paths":[{"interface_name":"loop1","next_hop_ip":"::"},{"interface_name":"loop2"},{"interface_name":"loop2","dvr":true}]}`
	for range 2 {
		a.want(true, values...)
	}
	a.awaitApplied()
	a.resyncsInSync(vpp)
	hand := vpp.Dial()
	expect := func(want fib_types.FibPathNhProto) {
		t.Helper()
		paths := 0
		for _, d := range listed[vppabf.AbfPolicyDetails](t, hand, &vppabf.AbfPolicyDump{}) {
			for _, p := range d.Policy.Paths {
				paths++
				if p.Proto != want {
					t.Errorf("a path has %s, want %s: %+v", p.Proto, want, p)
				}
			}
		}
		if paths != 3 {
			t.Errorf("the policy has %d paths, want 3", paths)
		}
	}
	expect(fib_types.FIB_API_PATH_NH_PROTO_IP6)
	a.want(false, values[2], strings.NewReplacer(`"is_ipv6":true`, `"is_ipv6":false`, `"::"`, `""`).Replace(values[3]))
	a.resyncsInSync(vpp)
	expect(fib_types.FIB_API_PATH_NH_PROTO_IP4)
	if vpp.Revive() {
		t.Error("VPP died")
	}
}

// TestPolicyOutlivesItsInterface deletes an interface by hand through which a policy sends packets. VPP keeps
// the path, drops its packets for ever, refuses to remove it while no interface has the index, and dies if
// another path of the policy comes or goes meanwhile.
func TestPolicyOutlivesItsInterface(t *testing.T) {
	for name, story := range map[string]func(w *policyWorld){
		"nothing is declared": func(w *policyWorld) {
			w.deleteByHand("loop1")
			w.expectNothing()
		},
		"the loopback returns": func(w *policyWorld) {
			w.deleteByHand("loop1")
			w.awaitForwarding(1)
			w.expectNothing()
		},
		"nothing is declared to the next agent": func(w *policyWorld) {
			w.agent.stop()
			w.deleteByHand("loop1")
			w.start()
			w.expectNothing()
		},
		"the next agent makes the loopback with the same index": func(w *policyWorld) {
			w.agent.stop()
			w.deleteByHand("loop1")
			w.start()
			w.agent.want(true, policyValues("loop1")...)
			w.awaitForwarding(1)
			w.expectNothing()
		},
		"the next agent makes the loopback with another index": func(w *policyWorld) {
			w.agent.stop()
			w.deleteByHand("loop1")
			w.vpp.Ask(w.hand, &vppif.CreateLoopback{}, &vppif.CreateLoopbackReply{})
			w.start()
			w.agent.want(true, policyValues("loop1")...)
			w.awaitForwarding(1)
			w.expectNothing()
		},
		"the next agent has other paths": func(w *policyWorld) {
			w.agent.want(true, policyValues("loop1", "loop2")...)
			w.agent.stop()
			w.deleteByHand("loop1")
			w.start()
			values := policyValues("loop2", "loop3")
			for i := 0; i < len(values); i += 2 {
				if values[i] == loopKey {
					values = append(values[:i], values[i+2:]...)
				}
			}
			w.agent.want(true, values...)
			w.awaitForwarding(2)
			w.expectNothing()
		},
		"both interfaces of a policy": func(w *policyWorld) {
			w.agent.want(true, policyValues("loop1", "loop2")...)
			w.deleteByHand("loop2")
			w.awaitForwarding(2)
			w.deleteByHand("loop1")
			w.awaitForwarding(2)
			w.deleteByHand("loop3") // to which it is attached
			w.awaitForwarding(2)
			w.agent.stop()
			w.deleteByHand("loop1")
			w.deleteByHand("loop2")
			w.deleteByHand("loop3")
			w.start()
			w.expectNothing()
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEachVPP(t, func(t *testing.T, vpp *simulated.VPP) {
				w := &policyWorld{T: t, vpp: vpp, hand: vpp.Dial(), memory: notebook{}}
				w.start()
				w.agent.want(true, policyValues("loop1")...)
				w.awaitForwarding(1)
				story(w)
				if vpp.Revive() {
					t.Error("VPP has died")
				}
			})
		})
	}
}
