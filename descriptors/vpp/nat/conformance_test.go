package nat

import (
	"errors"
	"slices"
	"testing"

	"go.fd.io/govpp/binapi/nat44_ed"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/existing"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/proto/ligato/vpp/nat"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/conformance"
)

// onVPP returns a handler for a VPP with the loopbacks if1, if2 and if3, and its connection.
func onVPP(t testing.TB, release string) (*handler, *simulated.VPP, *conn.Conn) {
	t.Helper()
	vpp := simulated.Start(t, release)
	c := vpp.Dial()
	return &handler{Options: Options{API: c, Interfaces: existing.Loopbacks(vpp, c, "if1", "if2", "if3")}}, vpp, c
}

// enabledVPP is onVPP where NAT44 is enabled.
func enabledVPP(t testing.TB, release string, endpointIndependent bool) (*handler, *simulated.VPP, *conn.Conn) {
	t.Helper()
	h, vpp, c := onVPP(t, release)
	if err := h.setEnabled(t.Context(), h.plugin(endpointIndependent), true); err != nil {
		t.Fatal(err)
	}
	h.independent.Store(endpointIndependent)
	return h, vpp, c
}

// each runs a test for both kinds of NAT44.
func each(t *testing.T, test func(t *testing.T, endpointIndependent bool)) {
	t.Run("endpoint-dependent", func(t *testing.T) { test(t, false) })
	t.Run("endpoint-independent", func(t *testing.T) { test(t, true) })
}

func TestInterfaceConforms(t *testing.T) {
	v := func(name, more string) *nat.Nat44Interface {
		return testkit.Parse[*nat.Nat44Interface](t, `name: "`+name+`" `+more)
	}
	change := func(name, from, to string, how conformance.How) conformance.Change[*nat.Nat44Interface] {
		return conformance.Change[*nat.Nat44Interface]{Name: name, From: v("if1", from), To: v("if1", to), How: how}
	}
	const in, out, both, output = `nat_inside: true`, `nat_outside: true`, `nat_inside: true nat_outside: true`, `output_feature: true`
	each(t, func(t *testing.T, endpointIndependent bool) {
		existing.Conforms(t, func(t *testing.T, release string) scheduler.Descriptor[*nat.Nat44Interface, struct{}] {
			h, _, _ := enabledVPP(t, release, endpointIndependent)
			return h.interfaceDescriptor()
		}, conformance.Suite[*nat.Nat44Interface, struct{}]{
			Values: []scheduler.Desired[*nat.Nat44Interface]{{Value: v("if1", both)}, {Value: v("if2", output+" "+out)}, {Value: v("if3", in)}},
			Changes: []conformance.Change[*nat.Nat44Interface]{
				change("the other side", in, out, conformance.Updated),
				change("both sides", in, both, conformance.Updated),
				change("one of two", both, out, conformance.Updated),
				change("on output", in, output, conformance.Recreated),
				change("sides of output", output+" "+in, output+" "+out, conformance.Unchanged),
			},
			Invalid: []conformance.Invalid[*nat.Nat44Interface]{
				{Name: "nothing", Value: &nat.Nat44Interface{}, Fields: []string{"name", "nat_inside"}},
				{Name: "all", Value: v("if1", both+" "+output), Fields: []string{"output_feature"}},
			},
		})
	})
}

func TestPoolConforms(t *testing.T) {
	p := func(text string) *nat.Nat44AddressPool { return testkit.Parse[*nat.Nat44AddressPool](t, text) }
	each(t, func(t *testing.T, endpointIndependent bool) {
		last := p(`first_ip: "10.0.0.1" last_ip: "10.0.0.4" vrf_id: 4294967295 twice_nat: true`)
		if endpointIndependent {
			last = p(`first_ip: "10.0.2.1" last_ip: "10.0.2.4" vrf_id: 4294967295`)
		}
		change := func(name, from, to string, how conformance.How) conformance.Change[*nat.Nat44AddressPool] {
			return conformance.Change[*nat.Nat44AddressPool]{Name: name, Key: keyOfPool + "p", From: p(`name: "p" ` + from), To: p(`name: "p" ` + to), How: how}
		}
		existing.Conforms(t, func(t *testing.T, release string) scheduler.Descriptor[*nat.Nat44AddressPool, struct{}] {
			h, _, _ := enabledVPP(t, release, endpointIndependent)
			return h.poolDescriptor()
		}, conformance.Suite[*nat.Nat44AddressPool, struct{}]{
			Values: []scheduler.Desired[*nat.Nat44AddressPool]{
				{Value: p(`first_ip: "10.0.0.1" last_ip: "10.0.0.9"`)}, {Value: p(`name: "a" first_ip: "10.0.0.10" vrf_id: 5`)},
				{Value: p(`name: "b" first_ip: "10.0.1.1" last_ip: "10.0.1.1" vrf_id: 5`)}, {Value: last},
			},
			Changes: []conformance.Change[*nat.Nat44AddressPool]{
				change("more addresses", `first_ip: "10.0.0.1"`, `first_ip: "10.0.0.1" last_ip: "10.0.0.3"`, conformance.Updated),
				change("some other addresses", `first_ip: "10.0.0.3" last_ip: "10.0.0.6"`, `first_ip: "10.0.0.1" last_ip: "10.0.0.4"`, conformance.Updated),
				change("addresses around it", `first_ip: "10.0.0.3"`, `first_ip: "10.0.0.1" last_ip: "10.0.0.4"`, conformance.Updated),
				change("an address within", `first_ip: "10.0.0.1" last_ip: "10.0.0.4"`, `first_ip: "10.0.0.3"`, conformance.Updated),
				change("all other addresses", `first_ip: "10.0.0.1" last_ip: "10.0.0.4"`, `first_ip: "10.0.0.9"`, conformance.Updated),
				change("VRF", `first_ip: "10.0.0.1"`, `first_ip: "10.0.0.1" vrf_id: 7`, conformance.Recreated),
				change("last is first", `first_ip: "10.0.0.1"`, `first_ip: "10.0.0.1" last_ip: "10.0.0.1"`, conformance.Unchanged),
				change("prefix length", `first_ip: "10.0.0.1"`, `first_ip: "10.0.0.1/32" last_ip: "10.0.0.1/24"`, conformance.Unchanged),
			},
			Invalid: []conformance.Invalid[*nat.Nat44AddressPool]{
				{Name: "nothing", Value: &nat.Nat44AddressPool{}, Fields: []string{"first_ip"}},
				{Name: "IPv6", Value: p(`first_ip: "fd00::1" last_ip: "x"`), Fields: []string{"first_ip", "last_ip"}},
				{Name: "order", Value: p(`first_ip: "10.0.0.2" last_ip: "10.0.0.1"`), Fields: []string{"last_ip"}},
				{Name: "too many", Value: p(`first_ip: "10.0.0.0" last_ip: "10.0.64.0"`), Fields: []string{"last_ip"}},
			},
		})
	})
}

const keyOfPool = "config/vpp/nat/v2/nat44-pool/"

// lacksVRFs reports whether a VPP has no VRF tables of NAT44, like 22.02. Such a VPP must refuse
// tables and routes as unimplemented.
func lacksVRFs(t *testing.T, h *handler) bool {
	t.Helper()
	if h.API.Has(&nat44_ed.Nat44EdAddDelVrfTable{}) {
		return false
	}
	if _, err := h.createVRF(t.Context(), "", &nat.Nat44VrfTable{SrcVrfId: 7}); !errors.Is(err, scheduler.ErrUnimplemented) {
		t.Errorf("creating a table: %v", err)
	}
	if _, err := h.routeDescriptor().Create(t.Context(), "", &nat.Nat44VrfRoute{SrcVrfId: 7, DestVrfId: 8}); !errors.Is(err, scheduler.ErrUnimplemented) {
		t.Errorf("creating a route: %v", err)
	}
	return true
}

func TestVRFConforms(t *testing.T) {
	v := func(id uint32, to ...uint32) *nat.Nat44VrfTable {
		return &nat.Nat44VrfTable{SrcVrfId: id, DestVrfIds: to}
	}
	for _, release := range simulated.Releases() {
		t.Run(release, func(t *testing.T) {
			if h, _, _ := enabledVPP(t, release, false); lacksVRFs(t, h) {
				return
			}
			conformance.Run(t, conformance.Suite[*nat.Nat44VrfTable, struct{}]{
				New: func(t *testing.T) scheduler.Descriptor[*nat.Nat44VrfTable, struct{}] {
					h, _, _ := enabledVPP(t, release, false)
					return h.vrfDescriptor()
				},
				Values: []scheduler.Desired[*nat.Nat44VrfTable]{{Value: v(7)}, {Value: v(0, 5, 6)}, {Value: v(300, 301)}},
				Changes: []conformance.Change[*nat.Nat44VrfTable]{
					{Name: "routes", From: v(1, 2, 3), To: v(1, 3, 4), How: conformance.Updated},
					{Name: "order", From: v(1, 2, 3), To: v(1, 3, 2), How: conformance.Unchanged},
				},
				Invalid: []conformance.Invalid[*nat.Nat44VrfTable]{{Name: "twice", Value: v(1, 5, 6, 5), Fields: []string{"dest_vrf_ids[2]"}}},
			})
		})
	}
}

// TestRouteConforms has no Retrieve: a route that nobody declares belongs to its table, and the
// suite wants it reported. TestRoutesBelongToTables tests Retrieve.
func TestRouteConforms(t *testing.T) {
	v := func(from, to uint32) *nat.Nat44VrfRoute { return &nat.Nat44VrfRoute{SrcVrfId: from, DestVrfId: to} }
	for _, release := range simulated.Releases() {
		t.Run(release, func(t *testing.T) {
			if h, _, _ := enabledVPP(t, release, false); lacksVRFs(t, h) {
				return
			}
			conformance.Run(t, conformance.Suite[*nat.Nat44VrfRoute, struct{}]{
				New: func(t *testing.T) scheduler.Descriptor[*nat.Nat44VrfRoute, struct{}] {
					h, _, _ := enabledVPP(t, release, false)
					if _, err := h.createVRF(t.Context(), "", &nat.Nat44VrfTable{SrcVrfId: 7}); err != nil {
						t.Fatal(err)
					}
					d := h.routeDescriptor()
					d.Retrieve = nil
					return d
				},
				Values:  []scheduler.Desired[*nat.Nat44VrfRoute]{{Value: v(7, 8)}, {Value: v(7, 0)}},
				Changes: []conformance.Change[*nat.Nat44VrfRoute]{{Name: "nothing", From: v(7, 8), To: v(7, 8), How: conformance.Unchanged}},
			})
		})
	}
}

// TestRoutesBelongToTables has routes that are values of their own beside those of a table. Each is
// found where it is declared, and one that nobody declares in its table.
func TestRoutesBelongToTables(t *testing.T) {
	for _, release := range simulated.Releases() {
		t.Run(release, func(t *testing.T) {
			h, _, c := enabledVPP(t, release, false)
			if lacksVRFs(t, h) {
				return
			}
			table := &nat.Nat44VrfTable{SrcVrfId: 7, DestVrfIds: []uint32{8}}
			route := &nat.Nat44VrfRoute{SrcVrfId: 7, DestVrfId: 9}
			if _, err := h.createVRF(t.Context(), "", table); err != nil {
				t.Fatal(err)
			}
			if _, err := h.routeDescriptor().Create(t.Context(), "", route); err != nil {
				t.Fatal(err)
			}
			if err := h.setRoutes(t.Context(), 7, []uint32{10}, true); err != nil {
				t.Fatal(err)
			}
			looked := drained(t, h.vrfDescriptor(), scheduler.Desired[*nat.Nat44VrfTable]{Value: table})
			if len(looked) != 1 || !slices.Equal(looked[0].Value.GetDestVrfIds(), []uint32{8, 10}) {
				t.Errorf("before the next read-back, tables are %v", looked)
			}
			again := &handler{Options: Options{API: c, Interfaces: h.Interfaces}}
			absent := &nat.Nat44VrfRoute{SrcVrfId: 7, DestVrfId: 11}
			routes := drained(t, again.routeDescriptor(), scheduler.Desired[*nat.Nat44VrfRoute]{Key: "a", Value: route}, scheduler.Desired[*nat.Nat44VrfRoute]{Key: "b", Value: absent})
			if len(routes) != 1 || routes[0].Key != "a" {
				t.Errorf("routes are %v", routes)
			}
			tables := drained(t, again.vrfDescriptor(), scheduler.Desired[*nat.Nat44VrfTable]{Value: table})
			if len(tables) != 1 || tables[0].OwnerUnknown || !slices.Equal(tables[0].Value.GetDestVrfIds(), []uint32{8, 10}) {
				t.Errorf("tables are %v", tables)
			}
			if tables := drained(t, again.vrfDescriptor()); len(tables) != 1 || !tables[0].OwnerUnknown {
				t.Errorf("tables are %v", tables)
			}
		})
	}
}
