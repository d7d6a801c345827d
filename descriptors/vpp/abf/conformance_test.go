package abf

import (
	"strings"
	"testing"

	vppabf "go.fd.io/govpp/binapi/abf"
	vppacl "go.fd.io/govpp/binapi/acl"

	"github.com/keyplane/keyplane/descriptors/vpp/acl"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/existing"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/proto/ligato/vpp/abf"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/conformance"
)

// access are existing access lists.
type access map[string]acl.Meta

func (a access) Get(name string) (acl.Meta, bool) { m, ok := a[name]; return m, ok }

func (a access) Names() map[uint32]string {
	out := map[uint32]string{}
	for name, meta := range a {
		out[meta.Index] = name
	}
	return out
}

// onVPP returns a handler for a VPP with the loopbacks if1, if2 and if3, and the lists a and b.
func onVPP(t testing.TB, release string) (*handler, *simulated.VPP) {
	t.Helper()
	vpp := simulated.Start(t, release)
	c := vpp.Dial()
	lists := access{}
	for _, name := range []string{"a", "b"} {
		var r vppacl.ACLAddReplaceReply
		vpp.Ask(c, &vppacl.ACLAddReplace{ACLIndex: ^uint32(0), Tag: name}, &r)
		lists[name] = acl.Meta{Index: r.ACLIndex}
	}
	return &handler{Options: Options{API: c, Interfaces: existing.Loopbacks(vpp, c, "if1", "if2", "if3"), Lists: lists}}, vpp
}

func TestPolicyConforms(t *testing.T) {
	p := func(text string) *abf.ABF { return testkit.Parse[*abf.ABF](t, text) }
	via := func(name, more string) string {
		return ` forwarding_paths: { interface_name: "` + name + `" ` + more + ` }`
	}
	const (
		next  = `next_hop_ip: "10.0.0.1"`
		onIf1 = ` attached_interfaces: { input_interface: "if1" priority: 7 }`
		on6   = ` attached_interfaces: { input_interface: "if2" is_ipv6: true }`
	)
	change := func(name, from, to string, how conformance.How) conformance.Change[*abf.ABF] {
		return conformance.Change[*abf.ABF]{Name: name, From: p(`index: 1 acl_name: "a"` + from), To: p(`index: 1 acl_name: "a"` + to), How: how}
	}
	var h *handler
	existing.Conforms(t, func(t *testing.T, release string) scheduler.Descriptor[*abf.ABF, struct{}] {
		h, _ = onVPP(t, release)
		return h.descriptor()
	}, conformance.Suite[*abf.ABF, struct{}]{
		Parts: func(t *testing.T, _ scheduler.Desired[*abf.ABF], _ struct{}, parts []scheduler.KeyValue) {
			for _, part := range parts {
				if err := h.attach(t.Context(), part.Key, part.Value.(*abf.ABF_AttachedInterface)); err != nil {
					t.Fatal(err)
				}
			}
		},
		Values: []scheduler.Desired[*abf.ABF]{
			{Value: p(`index: 1 acl_name: "a"` + via("if2", next) + via("if3", `next_hop_ip: "10.0.0.2" weight: 3 preference: 1`) + onIf1)},
			{Value: p(`index: 0 acl_name: "b"` + via("if2", `next_hop_ip: "fd00::1"`) + ` attached_interfaces: { input_interface: "if1" is_ipv6: true } attached_interfaces: { input_interface: "if3" is_ipv6: true }`)},
			{Value: p(`index: 4294967295 acl_name: "b"` + via("if2", `dvr: true`))},
			{Value: p(`index: 3 acl_name: "b"` + via("if2", ``))},
			{Value: p(`index: 4 acl_name: "b"` + via("if2", `next_hop_ip: "::"`) + via("if2", `dvr: true`) + via("if3", ``) + on6)},
		},
		Changes: []conformance.Change[*abf.ABF]{
			change("another path", via("if2", next), via("if2", next)+via("if3", next), conformance.Updated),
			change("all paths", via("if2", next), via("if3", next), conformance.Updated),
			change("weight", via("if2", next), via("if2", next+` weight: 2`), conformance.Recreated),
			change("default weight", via("if2", next), via("if2", next+` weight: 1`), conformance.Unchanged),
			change("order", via("if2", next)+via("if3", next), via("if3", next)+via("if2", next), conformance.Unchanged),
			change("order by dvr", via("if2", ``)+via("if2", `dvr: true`), via("if2", `dvr: true`)+via("if2", ``), conformance.Unchanged),
			change("unspecified next hop", via("if2", ``)+on6, via("if2", `next_hop_ip: "::"`)+on6, conformance.Unchanged),
			change("IP version", via("if2", ``)+strings.Replace(on6, "true", "false", 1), via("if2", ``)+on6, conformance.Updated),
			{Name: "list", From: p(`index: 1 acl_name: "a"` + via("if2", next)), To: p(`index: 1 acl_name: "b"` + via("if2", next)), How: conformance.Recreated},
		},
		Invalid: []conformance.Invalid[*abf.ABF]{
			{Name: "nothing", Value: &abf.ABF{Index: 1}, Fields: []string{"acl_name", "forwarding_paths"}},
			{Name: "paths", Value: p(`index: 1 acl_name: "a"` + via("", `next_hop_ip: "x" weight: 256 preference: 256`) + via("if2", `dvr: true next_hop_ip: "10.0.0.1"`)),
				Fields: []string{"forwarding_paths[0].interface_name", "forwarding_paths[0].next_hop_ip", "forwarding_paths[0].weight", "forwarding_paths[0].preference", "forwarding_paths[1].next_hop_ip"}},
			{Name: "both IP versions", Value: p(`index: 1 acl_name: "a"` + via("if2", ``) + via("if3", next) + onIf1 + on6), Fields: []string{"forwarding_paths[0].next_hop_ip"}},
			{Name: "other IP version", Value: p(`index: 1 acl_name: "a"` + via("if2", `next_hop_ip: "0.0.0.0"`) + via("if3", `next_hop_ip: "::"`) + on6), Fields: []string{"forwarding_paths[0].next_hop_ip"}},
			{Name: "twice", Value: p(`index: 1 acl_name: "a"` + via("if2", next) + via("if2", next+` weight: 2`) + onIf1 + onIf1 + ` attached_interfaces: {}`),
				Fields: []string{"forwarding_paths[1]", "attached_interfaces[1].input_interface", "attached_interfaces[2].input_interface"}},
		},
	})
}

func TestInterfaceConforms(t *testing.T) {
	part := func(name, more string) scheduler.Desired[*abf.ABF_AttachedInterface] {
		return scheduler.Desired[*abf.ABF_AttachedInterface]{
			Key: keys.ABFMembers.Key(1, name), Value: testkit.Parse[*abf.ABF_AttachedInterface](t, `input_interface: "`+name+`" `+more),
		}
	}
	existing.Conforms(t, func(t *testing.T, release string) scheduler.Descriptor[*abf.ABF_AttachedInterface, struct{}] {
		h, _ := onVPP(t, release)
		v := testkit.Parse[*abf.ABF](t, `index: 1 acl_name: "a" forwarding_paths: { interface_name: "if3" next_hop_ip: "10.0.0.1" }`)
		if err := h.setPaths(t.Context(), v, pathsOf(v), true); err != nil {
			t.Fatal(err)
		}
		return h.interfaceDescriptor()
	}, conformance.Suite[*abf.ABF_AttachedInterface, struct{}]{
		Values: []scheduler.Desired[*abf.ABF_AttachedInterface]{part("if1", ""), part("if2", `priority: 3 is_ipv6: true`)},
		Changes: []conformance.Change[*abf.ABF_AttachedInterface]{
			{Name: "IP version", Key: part("if1", "").Key, From: part("if1", "").Value, To: part("if1", "is_ipv6: true").Value, How: conformance.Recreated},
			{Name: "priority", Key: part("if1", "").Key, From: part("if1", "").Value, To: part("if1", "priority: 9").Value, How: conformance.Recreated},
		},
	})
}

// TestDeleteRemovesForeignPaths deletes a policy to which somebody has added a path. Otherwise it
// would stay, and take packets along that path.
func TestDeleteRemovesForeignPaths(t *testing.T) {
	for _, release := range simulated.Releases() {
		t.Run(release, func(t *testing.T) {
			h, vpp := onVPP(t, release)
			v := testkit.Parse[*abf.ABF](t, `index: 1 acl_name: "a" forwarding_paths: { interface_name: "if3" next_hop_ip: "10.0.0.1" }`)
			more := testkit.Parse[*abf.ABF](t, `index: 1 acl_name: "a" forwarding_paths: { interface_name: "if2" next_hop_ip: "10.0.0.2" }`)
			for _, one := range []*abf.ABF{v, more} {
				request, err := h.request(v, pathsOf(one), true)
				if err != nil {
					t.Fatal(err)
				}
				vpp.Ask(vpp.Dial(), request, &vppabf.AbfPolicyAddDelReply{})
			}
			for range 2 { // the second time, there is none
				if err := h.delete(t.Context(), "", v, struct{}{}); err != nil {
					t.Error(err)
				}
			}
			if left, err := h.read(t.Context(), true); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}
