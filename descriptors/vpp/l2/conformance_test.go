package l2

import (
	"context"
	"strings"
	"testing"

	"go.fd.io/govpp/binapi/interface_types"
	vppl2 "go.fd.io/govpp/binapi/l2"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/existing"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l2"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/conformance"
)

// an index knows what stands, by name.
type index[M any] map[string]M

func (x index[M]) Get(name string) (M, bool) { m, ok := x[name]; return m, ok }
func (x index[M]) All() map[string]M         { return x }

// onVPP returns a handler for a VPP that has the loopbacks if1, if2 and if3.
func onVPP(t testing.TB, release string) (*handler, *simulated.VPP) {
	t.Helper()
	vpp := simulated.Start(t, release)
	c := vpp.Dial()
	all := existing.Loopbacks(vpp, c, "if1", "if2", "if3")
	nothing := func(context.Context, interface_types.InterfaceIndex) error { return nil }
	return &handler{Options: Options{API: c, Interfaces: all, Reapply: nothing, Left: nothing}, bridges: index[BridgeMeta]{}, ids: map[string]uint32{}}, vpp
}

// bridged is onVPP where the bridge domain bd1 stands, with if1 and if2, and bd2.
func bridged(t testing.TB, release string) *handler {
	t.Helper()
	h, vpp := onVPP(t, release)
	for name, id := range map[string]uint32{"bd1": 1, "bd2": 2} {
		vpp.Ask(vpp.Dial(), &vppl2.BridgeDomainAddDel{BdID: id, IsAdd: true, BdTag: name}, &vppl2.BridgeDomainAddDelReply{})
		h.bridges.(index[BridgeMeta])[name] = BridgeMeta{ID: id}
	}
	for _, name := range []string{"if1", "if2"} {
		if _, err := h.createMember(t.Context(), keys.BridgeMembers.Key("bd1", name), &l2.BridgeDomain_Interface{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

func TestSpanConforms(t *testing.T) {
	v := func(from, to string, d interfaces.Span_Direction, l2 bool) *interfaces.Span {
		return &interfaces.Span{InterfaceFrom: from, InterfaceTo: to, Direction: d, IsL2: l2}
	}
	existing.Conforms(t, func(t *testing.T, release string) scheduler.Descriptor[*interfaces.Span, struct{}] {
		h, _ := onVPP(t, release)
		return h.spanDescriptor()
	}, conformance.Suite[*interfaces.Span, struct{}]{
		Values: []scheduler.Desired[*interfaces.Span]{
			{Value: v("if1", "if2", interfaces.Span_BOTH, false)}, {Value: v("if2", "if1", interfaces.Span_RX, true)},
		},
		Changes: []conformance.Change[*interfaces.Span]{
			{Name: "direction", From: v("if1", "if2", interfaces.Span_BOTH, false), To: v("if1", "if2", interfaces.Span_TX, false), How: conformance.Recreated},
			{Name: "L2", From: v("if1", "if2", interfaces.Span_BOTH, false), To: v("if1", "if2", interfaces.Span_BOTH, true), How: conformance.Recreated},
		},
		Invalid: []conformance.Invalid[*interfaces.Span]{
			{Name: "nothing", Value: &interfaces.Span{}, Fields: []string{"interface_from", "interface_to", "direction"}},
			{Name: "to itself", Value: v("if1", "if1", 9, false), Fields: []string{"interface_to", "direction"}},
		},
	})
}

func TestBridgeDomainConforms(t *testing.T) {
	b := func(text string) *l2.BridgeDomain { return testkit.Parse[*l2.BridgeDomain](t, text) }
	const (
		answer = `arp_termination_table: { ip_address: "10.0.0.9" phys_address: "02:00:00:00:00:09" } `
		flags  = `flood: true unknown_unicast_flood: true forward: true learn: true arp_termination: true`
	)
	var h *handler
	existing.Conforms(t, func(t *testing.T, release string) scheduler.Descriptor[*l2.BridgeDomain, BridgeMeta] {
		h, _ = onVPP(t, release)
		return h.bridgeDescriptor()
	}, conformance.Suite[*l2.BridgeDomain, BridgeMeta]{
		Parts: func(t *testing.T, base scheduler.Desired[*l2.BridgeDomain], meta BridgeMeta, parts []scheduler.KeyValue) {
			h.bridges.(index[BridgeMeta])[base.Value.GetName()] = meta
			for _, kv := range parts {
				if _, err := h.createMember(t.Context(), kv.Key, kv.Value.(*l2.BridgeDomain_Interface)); err != nil {
					t.Fatal(err)
				}
			}
		},
		Values: []scheduler.Desired[*l2.BridgeDomain]{
			{Value: b(`name: "members" forward: true interfaces: { name: "if1" split_horizon_group: 2 } interfaces: { name: "if2" bridged_virtual_interface: true }`)},
			{Value: b(`name: "a" flood: true learn: true forward: true mac_age: 255 ` + answer)},
			{Value: b(`name: "b" unknown_unicast_flood: true arp_termination: true`)},
			{Value: b(`name: "` + strings.Repeat("c", 63) + `"`)},
		},
		Changes: []conformance.Change[*l2.BridgeDomain]{
			{Name: "all flags come", From: b(`name: "a"`), To: b(`name: "a" ` + flags), How: conformance.Updated},
			{Name: "all flags go", From: b(`name: "a" ` + flags), To: b(`name: "a"`), How: conformance.Updated},
			{Name: "one flag for another", From: b(`name: "a" flood: true`), To: b(`name: "a" learn: true`), How: conformance.Updated},
			{Name: "age", From: b(`name: "a"`), To: b(`name: "a" mac_age: 3`), How: conformance.Updated},
			{Name: "answer comes", From: b(`name: "a"`), To: b(`name: "a" ` + answer), How: conformance.Updated},
			{Name: "answer goes", From: b(`name: "a" ` + answer), To: b(`name: "a"`), How: conformance.Updated},
			{Name: "another answer", From: b(`name: "a" ` + answer), How: conformance.Updated,
				To: b(`name: "a" arp_termination_table: { ip_address: "10.0.0.9" phys_address: "02:00:00:00:00:0a" }`)},
			{Name: "spelling", From: b(`name: "a" arp_termination_table: { ip_address: "fd00::9" phys_address: "02:00:00:00:00:0A" }`), How: conformance.Unchanged,
				To: b(`name: "a" arp_termination_table: { ip_address: "FD00:0::9" phys_address: "02:00:00:00:00:0a" }`)},
		},
		Invalid: []conformance.Invalid[*l2.BridgeDomain]{
			{Name: "all at once", Value: b(`mac_age: 256 interfaces: { split_horizon_group: 256 } interfaces: { name: "x" bridged_virtual_interface: true }
				interfaces: { name: "x" bridged_virtual_interface: true split_horizon_group: 1 } arp_termination_table: {}`),
				Fields: []string{"name", "mac_age", "interfaces[0].name", "interfaces[0].split_horizon_group", "interfaces[2].name",
					"interfaces[2].bridged_virtual_interface", "arp_termination_table[0].ip_address", "arp_termination_table[0].phys_address"}},
			{Name: "zone", Value: b(`name: "a" arp_termination_table: { ip_address: "fe80::1%if1" phys_address: "02:00:00:00:00:0a" }`),
				Fields: []string{"arp_termination_table[0].ip_address"}},
			{Name: "zero byte", Value: &l2.BridgeDomain{Name: "a\x00b"}, Fields: []string{"name"}},
			{Name: "name like a key", Value: &l2.BridgeDomain{Name: "a/interface"}, Fields: []string{"name"}},
			{Name: "long name", Value: &l2.BridgeDomain{Name: strings.Repeat("x", 64)}, Fields: []string{"name"}},
		},
	})
}

func TestMemberConforms(t *testing.T) {
	m := func(name, more string) scheduler.Desired[*l2.BridgeDomain_Interface] {
		return scheduler.Desired[*l2.BridgeDomain_Interface]{
			Key: keys.BridgeMembers.Key("bd1", name), Value: testkit.Parse[*l2.BridgeDomain_Interface](t, `name: "`+name+`" `+more),
		}
	}
	change := func(name, from, to string, how conformance.How) conformance.Change[*l2.BridgeDomain_Interface] {
		return conformance.Change[*l2.BridgeDomain_Interface]{Name: name, Key: m("if3", "").Key, From: m("if3", from).Value, To: m("if3", to).Value, How: how}
	}
	existing.Conforms(t, func(t *testing.T, release string) scheduler.Descriptor[*l2.BridgeDomain_Interface, struct{}] {
		return bridged(t, release).memberDescriptor()
	}, conformance.Suite[*l2.BridgeDomain_Interface, struct{}]{
		Values: []scheduler.Desired[*l2.BridgeDomain_Interface]{m("if1", ""), m("if2", `bridged_virtual_interface: true`), m("if3", `split_horizon_group: 1`)},
		Changes: []conformance.Change[*l2.BridgeDomain_Interface]{
			change("group", ``, `split_horizon_group: 3`, conformance.Updated),
			change("BVI", ``, `bridged_virtual_interface: true`, conformance.Recreated),
		},
	})
}

func TestFIBConforms(t *testing.T) {
	const mac = "02:FE:00:00:00:09"
	e := func(mac, more string) *l2.FIBEntry {
		return testkit.Parse[*l2.FIBEntry](t, `bridge_domain: "bd1" phys_address: "`+mac+`" `+more)
	}
	existing.Conforms(t, func(t *testing.T, release string) scheduler.Descriptor[*l2.FIBEntry, FIBMeta] {
		return bridged(t, release).fibDescriptor()
	}, conformance.Suite[*l2.FIBEntry, FIBMeta]{
		Values: []scheduler.Desired[*l2.FIBEntry]{
			{Value: e(mac, `outgoing_interface: "if1"`)},
			{Value: e("02:fe:00:00:00:0a", `outgoing_interface: "if2" static_config: true`)},
			{Value: e("02:fe:00:00:00:0b", `action: DROP`)},
		},
		Changes: []conformance.Change[*l2.FIBEntry]{
			{Name: "interface", From: e(mac, `outgoing_interface: "if1"`), To: e(mac, `outgoing_interface: "if2"`), How: conformance.Recreated},
			{Name: "drop", From: e(mac, `outgoing_interface: "if1"`), To: e(mac, `action: DROP`), How: conformance.Recreated},
			{Name: "static", From: e(mac, `outgoing_interface: "if1"`), To: e(mac, `outgoing_interface: "if1" static_config: true`), How: conformance.Recreated},
			{Name: "dropped by an interface", From: e(mac, `action: DROP`), To: e(mac, `action: DROP outgoing_interface: "if1"`), How: conformance.Unchanged},
			{Name: "what is dropped is static", From: e(mac, `action: DROP`), To: e(mac, `action: DROP static_config: true`), How: conformance.Unchanged},
		},
		Invalid: []conformance.Invalid[*l2.FIBEntry]{
			{Name: "all at once", Value: &l2.FIBEntry{PhysAddress: "x"}, Fields: []string{"phys_address", "bridge_domain", "outgoing_interface"}},
			{Name: "address of 8 bytes", Value: e("02:00:00:00:00:00:00:01", `action: DROP`), Fields: []string{"phys_address"}},
			{Name: "no such action", Value: e(mac, `action: 7`), Fields: []string{"action"}},
		},
	})
}

func TestXConnectConforms(t *testing.T) {
	x := func(rx, tx string) *l2.XConnectPair {
		return &l2.XConnectPair{ReceiveInterface: rx, TransmitInterface: tx}
	}
	existing.Conforms(t, func(t *testing.T, release string) scheduler.Descriptor[*l2.XConnectPair, XConnectMeta] {
		h, _ := onVPP(t, release)
		return h.xconnectDescriptor()
	}, conformance.Suite[*l2.XConnectPair, XConnectMeta]{
		Values: []scheduler.Desired[*l2.XConnectPair]{{Value: x("if1", "if2")}, {Value: x("if2", "if1")}},
		Changes: []conformance.Change[*l2.XConnectPair]{
			{Name: "transmitter", From: x("if1", "if2"), To: x("if1", "if3"), How: conformance.Recreated},
		},
		Invalid: []conformance.Invalid[*l2.XConnectPair]{
			{Name: "all at once", Value: x("", ""), Fields: []string{"receive_interface", "transmit_interface"}},
		},
	})
}
