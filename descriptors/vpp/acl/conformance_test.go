package acl

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	vppacl "go.fd.io/govpp/binapi/acl"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/existing"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/proto/ligato/vpp/acl"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/conformance"
)

// access is an Index of lists.
type access map[string]Meta

func (a access) Get(name string) (Meta, bool) { m, ok := a[name]; return m, ok }

func (a access) Names() map[uint32]string { return nil }

// onVPP returns a handler for a VPP with the loopbacks if1, if2 and if3.
func onVPP(t testing.TB, release string) (*handler, *simulated.VPP) {
	t.Helper()
	vpp := simulated.Start(t, release)
	c := vpp.Dial()
	all := existing.Loopbacks(vpp, c, "if1", "if2", "if3")
	return &handler{Options: Options{API: c, Interfaces: all}, lists: access{}, known: map[string]Meta{}}, vpp
}

func TestListConforms(t *testing.T) {
	parse := func(text string) *acl.ACL { return testkit.Parse[*acl.ACL](t, text) }
	a := func(more string) *acl.ACL { return parse(`name: "a" ` + more) }
	const (
		permit = `rules: { action: PERMIT ip_rule: { ip: { source_network: "10.0.0.0/8" } } } `
		macip  = `rules: { action: PERMIT macip_rule: { source_address: "10.0.0.1" source_address_prefix: 32
			source_mac_address: "02:00:00:00:00:01" source_mac_address_mask: "ff:ff:ff:ff:ff:ff" } } `
		ports = `destination_port_range: { lower_port: 80 upper_port: 90 } source_port_range: { upper_port: 65535 }`
		onAll = `interfaces: { ingress: "if1" ingress: "if2" egress: "if1" ingress: "if1" } `
	)
	change := func(name, from, to string, how conformance.How) conformance.Change[*acl.ACL] {
		return conformance.Change[*acl.ACL]{Name: name, From: a(from), To: a(to), How: how}
	}
	rule := func(ip string) string { return `rules: { action: DENY ip_rule: { ` + ip + ` } } ` }
	var h *handler
	existing.Conforms(t, func(t *testing.T, release string) scheduler.Descriptor[*acl.ACL, Meta] {
		h, _ = onVPP(t, release)
		return h.descriptor()
	}, conformance.Suite[*acl.ACL, Meta]{
		Parts: func(t *testing.T, base scheduler.Desired[*acl.ACL], meta Meta, parts []scheduler.KeyValue) {
			h.lists.(access)[base.Value.GetName()] = meta
			for _, part := range parts {
				if _, err := h.attach(t.Context(), part.Key, &emptypb.Empty{}); err != nil {
					t.Fatal(err)
				}
			}
		},
		Values: []scheduler.Desired[*acl.ACL]{
			{Value: a(permit + onAll)},
			{Value: parse(`name: "b" ` + rule(`tcp: { `+ports+` tcp_flags_mask: 18 tcp_flags_value: 2 }`) + rule(`udp: { `+ports+` }`) +
				`rules: { action: REFLECT ip_rule: { icmp: { icmpv6: true icmp_type_range: { first: 1 last: 3 } } } }`)},
			{Value: parse(`name: "m" ` + macip + `interfaces: { ingress: "if3" }`)},
			{Value: parse(`name: "any" ` + rule(``) + rule(`ip: { protocol: 89 }`) + rule(`ip: { protocol: 6 destination_network: "fd00::/8" }`))},
		},
		Changes: []conformance.Change[*acl.ACL]{
			change("another rule", permit, permit+permit, conformance.Updated),
			change("order of rules", permit+rule(``), rule(``)+permit, conformance.Updated),
			change("action", permit, strings.Replace(permit, "PERMIT", "REFLECT", 1), conformance.Updated),
			change("the other kind", permit, macip, conformance.Recreated),
			change("MAC address", macip, strings.Replace(macip, "00:01", "00:02", 1), conformance.Updated),
			change("spelling", rule(`ip: { source_network: "fd00::/8" destination_network: "::/0" }`), rule(`ip: { source_network: "FD00:0::/8" }`), conformance.Unchanged),
			change("implied protocol", rule(`tcp: { `+ports+` }`), rule(`ip: { protocol: 6 } tcp: { `+ports+` }`), conformance.Unchanged),
			change("an empty name of an interface", permit+onAll, permit+strings.Replace(onAll, "egress", `ingress: "" egress: "" egress`, 1), conformance.Unchanged),
			change("all ICMP messages", rule(`icmp: {}`), rule(`icmp: { icmp_type_range: { last: 255 } icmp_code_range: { last: 255 } }`), conformance.Unchanged),
		},
		Invalid: []conformance.Invalid[*acl.ACL]{
			{Name: "nothing", Value: &acl.ACL{}, Fields: []string{"name", "rules"}},
			{Name: "long name", Value: parse(`name: "` + strings.Repeat("x", 64) + `" ` + permit), Fields: []string{"name"}},
			{Name: "name like a key", Value: parse(`name: "a/interface" ` + permit), Fields: []string{"name"}},
			{Name: "empty rule", Value: a(`rules: { action: 3 }`), Fields: []string{"rules[0].action", "rules[0].ip_rule"}},
			{Name: "two kinds", Value: a(permit + macip), Fields: []string{"rules[1].ip_rule"}},
			{Name: "networks", Value: a(rule(`ip: { source_network: "10.0.0.1/8" destination_network: "x" protocol: 256 }`) +
				rule(`ip: { source_network: "10.0.0.0/8" destination_network: "fd00::/8" }`)),
				Fields: []string{"rules[0].ip_rule.ip.source_network", "rules[0].ip_rule.ip.destination_network", "rules[0].ip_rule.ip.protocol", "rules[1].ip_rule.ip.destination_network"}},
			{Name: "protocols", Value: a(rule(`tcp: {} udp: {}`) + rule(`ip: { protocol: 17 } tcp: {}`)), Fields: []string{"rules[0].ip_rule", "rules[1].ip_rule.ip.protocol"}},
			{Name: "ranges", Value: a(rule(`tcp: { source_port_range: { lower_port: 2 upper_port: 1 } destination_port_range: { upper_port: 65536 } tcp_flags_mask: 256 }`) +
				rule(`icmp: { icmp_type_range: { first: 2 last: 1 } icmp_code_range: { last: 256 } }`)),
				Fields: []string{"rules[0].ip_rule.tcp.source_port_range.upper_port", "rules[0].ip_rule.tcp.destination_port_range.upper_port", "rules[0].ip_rule.tcp.tcp_flags_mask",
					"rules[1].ip_rule.icmp.icmp_type_range.last", "rules[1].ip_rule.icmp.icmp_code_range.last"}},
			{Name: "MACIP", Value: a(`rules: { action: REFLECT macip_rule: { source_address: "10.0.0.0" source_address_prefix: 33 source_mac_address: "x" } } interfaces: { egress: "if1" ingress: "" }`),
				Fields: []string{"rules[0].action", "rules[0].macip_rule.source_address_prefix", "rules[0].macip_rule.source_mac_address", "interfaces.egress"}},
		},
	})
}

func TestInterfaceConforms(t *testing.T) {
	part := func(list, name string, egress bool) scheduler.Desired[*emptypb.Empty] {
		return scheduler.Desired[*emptypb.Empty]{Key: keys.ACLInterface{ACL: list, Egress: egress, Interface: name}.Key(), Value: &emptypb.Empty{}}
	}
	existing.Conforms(t, func(t *testing.T, release string) scheduler.Descriptor[*emptypb.Empty, struct{}] {
		h, _ := onVPP(t, release)
		for _, text := range []string{`name: "a" rules: { ip_rule: {} }`, `name: "b" rules: { ip_rule: {} }`, `name: "m" rules: { macip_rule: {} }`} {
			v := testkit.Parse[*acl.ACL](t, text)
			meta, err := h.create(t.Context(), "", v)
			if err != nil {
				t.Fatal(err)
			}
			h.lists.(access)[v.GetName()] = meta
		}
		return h.interfaceDescriptor()
	}, conformance.Suite[*emptypb.Empty, struct{}]{
		Values: []scheduler.Desired[*emptypb.Empty]{part("a", "if1", false), part("b", "if1", false), part("b", "if1", true), part("a", "if2", true), part("m", "if1", false)},
		Changes: []conformance.Change[*emptypb.Empty]{
			{Name: "nothing", Key: part("a", "if3", false).Key, From: &emptypb.Empty{}, To: &emptypb.Empty{}, How: conformance.Unchanged},
		},
	})
}

// vector returns the incoming IP lists of an interface by tag.
func vector(t *testing.T, h *handler, name string) (tags []string) {
	t.Helper()
	meta, _ := h.Interfaces.Get(name)
	all, err := h.applied(t.Context(), meta.SwIfIndex())
	if err != nil || len(all) != 1 {
		t.Fatalf("%d vectors, %v", len(all), err)
	}
	lists, err := h.read(t.Context(), false, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, number := range all[0].Acls[:all[0].NInput] {
		for _, one := range lists {
			if one.Meta == (Meta{Index: number}) {
				tags = append(tags, one.Value.GetName())
			}
		}
	}
	return tags
}

// TestOrder applies 100 lists at once, beside one of somebody else. They stand in the order of
// their names behind the other one, and one request sets them all.
func TestOrder(t *testing.T) {
	for _, release := range simulated.Releases() {
		t.Run(release, func(t *testing.T) {
			h, vpp := onVPP(t, release)
			c := vpp.Dial()
			var other vppacl.ACLAddReplaceReply
			vpp.Ask(c, &vppacl.ACLAddReplace{ACLIndex: none, Tag: "z"}, &other)
			link, _ := h.Interfaces.Get("if1")
			vpp.Ask(c, &vppacl.ACLInterfaceSetACLList{SwIfIndex: link.SwIfIndex(), NInput: 1, Acls: []uint32{other.ACLIndex}}, &vppacl.ACLInterfaceSetACLListReply{})
			at := h.attached.at(link.SwIfIndex())

			const lists = 100
			errs := make(chan error, lists)
			<-at.turn
			for n := range lists {
				name := fmt.Sprintf("%02d", (n*37)%lists)
				meta, err := h.create(t.Context(), "", testkit.Parse[*acl.ACL](t, `name: "`+name+`" rules: { ip_rule: {} }`))
				if err != nil {
					t.Fatal(err)
				}
				h.lists.(access)[name] = meta
			}
			for name := range h.lists.(access) {
				go func() {
					_, err := h.attach(t.Context(), keys.ACLInterface{ACL: name, Interface: "if1"}.Key(), &emptypb.Empty{})
					errs <- err
				}()
			}
			for {
				if _, changes := at.wanted(); changes == lists {
					break
				}
				runtime.Gosched()
			}
			vpp.Counts()
			at.turn <- struct{}{}
			for range lists {
				if err := <-errs; err != nil {
					t.Error(err)
				}
			}
			if n := vpp.Counts()["acl_interface_set_acl_list"]; n != 1 && vpp.Sim != nil {
				t.Errorf("%d requests for %d lists on one interface; expected 1", n, lists)
			}
			got := vector(t, h, "if1")
			if len(got) != lists+1 || got[0] != "z" || !slices.IsSorted(got[1:]) {
				t.Errorf("the vector is %v", got)
			}
		})
	}
}

// TestDeleteTakesOff deletes a list that somebody has applied to an interface.
func TestDeleteTakesOff(t *testing.T) {
	for _, release := range simulated.Releases() {
		t.Run(release, func(t *testing.T) {
			h, vpp := onVPP(t, release)
			v := testkit.Parse[*acl.ACL](t, `name: "a" rules: { ip_rule: {} }`)
			meta, err := h.create(t.Context(), "", v)
			if err != nil {
				t.Fatal(err)
			}
			link, _ := h.Interfaces.Get("if2")
			vpp.Ask(vpp.Dial(), &vppacl.ACLInterfaceSetACLList{SwIfIndex: link.SwIfIndex(), Acls: []uint32{meta.Index}}, &vppacl.ACLInterfaceSetACLListReply{})
			for range 2 { // the second time, there is none
				if err := h.delete(t.Context(), "", v, meta); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestTooManyLists applies one list more than VPP's message has room for. It is refused, and the
// others stay.
func TestTooManyLists(t *testing.T) {
	h, _ := onVPP(t, "")
	link, _ := h.Interfaces.Get("if1")
	err := h.apply(t.Context(), link.SwIfIndex(), make([]uint32, 200), make([]uint32, 56))
	if err == nil || err.Error() != "256 access lists on one interface; VPP applies at most 255 in both directions together" {
		t.Errorf("the error is %v", err)
	}
}
