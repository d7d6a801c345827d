package vppsim_test

import (
	"context"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/abf"
	"go.fd.io/govpp/binapi/fib_types"
	vppif "go.fd.io/govpp/binapi/interface"

	"github.com/keyplane/keyplane/internal/vppwire"
)

// policyRows are about forwarding by access lists. Requests that kill VPP are not among them: attaching a policy that
// does not exist, detaching it for the other IP version, and changing a policy while another of its paths is by a
// deleted interface.
func policyRows() []row {
	const newList = ^uint32(0)
	return []row{{"policies by access lists", func(v *vpp) {
		i, j := v.loop(), v.loop()
		list, other := v.list(newList, "a", 0), v.list(newList, "b", 0)
		path := func(at index, next string, weight uint8) fib_types.FibPath {
			out := fib_types.FibPath{SwIfIndex: uint32(at), Weight: weight}
			out.Nh.Address = vppwire.Address(vppwire.Addr(addr(next))).Un
			return out
		}
		set := func(add bool, list uint32, want api.VPPApiError, paths ...fib_types.FibPath) {
			v.Helper()
			v.call("abf_policy_add_del", want, &abf.AbfPolicyAddDel{IsAdd: add, Policy: abf.AbfPolicy{PolicyID: 7, ACLIndex: list, Paths: paths}}, &abf.AbfPolicyAddDelReply{})
		}
		attach := func(add bool, want api.VPPApiError) {
			v.Helper()
			v.call("abf_itf_attach_add_del", want, &abf.AbfItfAttachAddDel{IsAdd: add, Attach: abf.AbfItfAttach{PolicyID: 7, SwIfIndex: i, Priority: 3}}, &abf.AbfItfAttachAddDelReply{})
		}
		paths := func(want int) {
			v.Helper()
			got := 0
			for _, d := range dump[abf.AbfPolicyDetails](v, &abf.AbfPolicyDump{}) {
				got += len(d.Policy.Paths)
			}
			if got != want {
				v.Errorf("the policies have %d paths; expected %d", got, want)
			}
		}
		v.Cleanup(func() { // what a failed row leaves
			ctx := context.WithoutCancel(v.Context())
			_ = v.Call(ctx, &abf.AbfItfAttachAddDel{Attach: abf.AbfItfAttach{PolicyID: 7, SwIfIndex: i}}, &abf.AbfItfAttachAddDelReply{}) // usually gone
		})

		set(true, list, api.INVALID_VALUE)
		set(false, list, api.INVALID_VALUE, path(j, "10.0.0.1", 1))
		set(true, list, 0, path(j, "10.0.0.1", 1))
		set(true, other, api.INVALID_VALUE, path(j, "10.0.0.2", 1))
		set(true, list, 0, path(j, "10.0.0.2", 3))
		paths(2)
		attach(true, 0)
		attach(true, api.ENTRY_ALREADY_EXISTS)
		if all := dump[abf.AbfItfAttachDetails](v, &abf.AbfItfAttachDump{}); len(all) != 1 || all[0].Attach.SwIfIndex != i || all[0].Attach.Priority != 3 {
			v.Errorf("attached are %+v", all)
		}
		set(false, list, 0, path(j, "10.0.0.9", 1)) // has no such path
		paths(2)
		set(false, list, 0, path(j, "10.0.0.2", 1)) // the weight does not matter
		paths(1)
		attach(false, 0)
		attach(false, api.NO_SUCH_ENTRY)
		set(false, other, 0, path(j, "10.0.0.1", 1)) // nor does the list
		paths(0)
	}}, {"paths without a next hop", func(v *vpp) {
		i := v.loop()
		list := v.list(newList, "a", 0)
		paths := []fib_types.FibPath{
			{SwIfIndex: uint32(i), Weight: 1},
			{SwIfIndex: uint32(i), Weight: 1, Proto: fib_types.FIB_API_PATH_NH_PROTO_IP6},
			{SwIfIndex: uint32(i), Weight: 1, Proto: fib_types.FIB_API_PATH_NH_PROTO_IP6, Type: fib_types.FIB_API_PATH_TYPE_DVR},
		}
		for n, path := range paths {
			v.call("abf_policy_add_del", 0, &abf.AbfPolicyAddDel{IsAdd: true, Policy: abf.AbfPolicy{PolicyID: 9, ACLIndex: list, Paths: paths[n : n+1]}}, &abf.AbfPolicyAddDelReply{})
			all := dump[abf.AbfPolicyDetails](v, &abf.AbfPolicyDump{})
			if len(all) != 1 || len(all[0].Policy.Paths) != n+1 || !slices.Contains(all[0].Policy.Paths, path) {
				v.Errorf("the policies are %+v; expected path %+v", all, path)
			}
		}
		v.call("abf_policy_add_del", 0, &abf.AbfPolicyAddDel{Policy: abf.AbfPolicy{PolicyID: 9, ACLIndex: list, Paths: paths}}, &abf.AbfPolicyAddDelReply{})
	}}, {"a policy outlives its interface", func(v *vpp) {
		i, j := v.loop(), v.loop()
		list := v.list(newList, "a", 0)
		set := func(add bool, want api.VPPApiError, at index) {
			v.Helper()
			path := fib_types.FibPath{SwIfIndex: uint32(at), Weight: 1}
			path.Nh.Address = vppwire.Address(vppwire.Addr(addr("10.0.0.1"))).Un
			v.call("abf_policy_add_del", want, &abf.AbfPolicyAddDel{IsAdd: add, Policy: abf.AbfPolicy{PolicyID: 8, ACLIndex: list, Paths: []fib_types.FibPath{path}}}, &abf.AbfPolicyAddDelReply{})
		}
		unresolved := func(want bool) {
			v.Helper()
			if text := v.command("show abf policy"); strings.Contains(text, "unresolved") != want {
				v.Errorf("expected unresolved to be %v in:\n%s", want, text)
			}
		}
		set(true, 0, j)
		unresolved(false)
		v.call("delete_loopback", 0, &vppif.DeleteLoopback{SwIfIndex: j}, &vppif.DeleteLoopbackReply{})
		set(false, api.NO_MATCHING_INTERFACE, j)
		unresolved(true)
		if all := dump[abf.AbfPolicyDetails](v, &abf.AbfPolicyDump{}); len(all) != 1 || all[0].Policy.Paths[0].SwIfIndex != uint32(j) {
			v.Errorf("the policies are %+v; expected one by index %d", all, j)
		}
		if again := v.loop(); again != j {
			v.Fatalf("the next loopback has index %d; expected %d", again, j)
		}
		unresolved(true)
		set(true, 0, i) // the interfaces of all paths are looked up
		unresolved(false)
		set(false, 0, i)
		set(false, 0, j)
	}}}
}
