//nolint:staticcheck // The lists of the value are deprecated, and still work.
package nat

import (
	"context"
	"slices"
	"testing"

	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/nat44_ed"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/existing"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/nat"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/conformance"
)

// globals are versions of the value of NAT44.
func globals(t testing.TB) (out []*nat.Nat44Global) {
	for _, text := range []string{
		``, `forwarding: true`, `endpoint_independent: true`, `endpoint_independent: true forwarding: true virtual_reassembly: { timeout: 2 }`,
		`virtual_reassembly: { timeout: 3 max_reassemblies: 5 max_fragments: 6 }`,
		`nat_interfaces: { name: "if1" is_inside: true } nat_interfaces: { name: "if1" } nat_interfaces: { name: "if2" is_inside: true output_feature: true }
			address_pool: { address: "10.0.0.1" vrf_id: 4294967295 } address_pool: { address: "10.0.0.2" vrf_id: 5 } address_pool: { address: "10.0.0.1" twice_nat: true }`,
		`endpoint_independent: true nat_interfaces: { name: "if2" is_inside: true } nat_interfaces: { name: "if3" output_feature: true } address_pool: { address: "10.0.0.3" }`,
	} {
		out = append(out, testkit.Parse[*nat.Nat44Global](t, text))
	}
	return out
}

// A life is a value of NAT44 with its lists, followed as the scheduler does it.
type life struct {
	*testing.T
	h *handler
	d scheduler.Descriptor[*nat.Nat44Global, struct{}]
}

// parts calls a verb for each listed item of v that other does not list.
func (l *life) parts(v, other *nat.Nat44Global, create bool) {
	l.Helper()
	var kept []scheduler.KeyValue
	if other != nil {
		kept = derivedOfGlobal("", other)
	}
	interfaces, pool := l.h.listedInterfaceDescriptor(), l.h.listedAddressDescriptor()
	for _, part := range derivedOfGlobal("", v) {
		if slices.ContainsFunc(kept, func(o scheduler.KeyValue) bool { return o.Key == part.Key && proto.Equal(o.Value, part.Value) }) {
			continue
		}
		var err error
		switch item := part.Value.(type) {
		case *nat.Nat44Global_Interface:
			if create {
				_, err = interfaces.Create(l.Context(), part.Key, item)
			} else {
				err = interfaces.Delete(l.Context(), part.Key, item, struct{}{})
			}
		case *nat.Nat44Global_Address:
			if create {
				_, err = pool.Create(l.Context(), part.Key, item)
			} else {
				err = pool.Delete(l.Context(), part.Key, item, struct{}{})
			}
		}
		if err != nil {
			l.Fatalf("%s: %v", part.Key, err)
		}
	}
}

// change brings VPP from one version to another; nil is none.
func (l *life) change(from, to *nat.Nat44Global) {
	l.Helper()
	var err error
	switch {
	case from == nil:
		_, err = l.d.Create(l.Context(), "", to)
		l.check(err)
		l.parts(to, nil, true)
	case to == nil:
		l.parts(from, nil, false)
		l.check(l.d.Delete(l.Context(), "", from, struct{}{}))
	case l.d.Recreate("", from, to, struct{}{}):
		l.change(from, nil)
		l.change(nil, to)
	default:
		l.parts(from, to, false)
		if !l.d.Equivalent("", from, to) {
			_, err = l.d.Update(l.Context(), "", from, to, struct{}{})
			l.check(err)
		}
		l.parts(to, from, true)
	}
}

func (l *life) check(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// found returns what Retrieve finds; nil: nothing.
func (l *life) found(wanted ...*nat.Nat44Global) *nat.Nat44Global {
	l.Helper()
	var desired []scheduler.Desired[*nat.Nat44Global]
	for _, w := range wanted {
		desired = append(desired, scheduler.Desired[*nat.Nat44Global]{Value: w})
	}
	for f, err := range conformance.Taken(l.d.Retrieve(l.Context(), desired)) {
		l.check(err)
		if f.OwnerUnknown != (len(wanted) == 0) {
			l.Errorf("the owner is unknown: %v", f.OwnerUnknown)
		}
		return f.Value
	}
	return nil
}

// expect checks that VPP has a version, with all that it lists.
func (l *life) expect(v *nat.Nat44Global) {
	l.Helper()
	f := l.found(v)
	if f == nil || !l.d.Equivalent("", f, v) {
		l.Errorf("VPP has %v; expected %v", f, v)
		return
	}
	has := map[string]proto.Message{}
	for _, part := range derivedOfGlobal("", f) {
		has[part.Key] = part.Value
	}
	for _, part := range derivedOfGlobal("", v) {
		if !proto.Equal(has[part.Key], part.Value) {
			l.Errorf("%s is %v; expected %v", part.Key, has[part.Key], part.Value)
		}
		delete(has, part.Key)
	}
	if len(has) > 0 {
		l.Errorf("VPP has too much of %v: %v", v, has)
	}
}

// TestGlobalPairs has each version of NAT44 follow each other one, and undoes it.
func TestGlobalPairs(t *testing.T) {
	for _, release := range simulated.Releases() {
		t.Run(release, func(t *testing.T) {
			h, _, c := onVPP(t, release)
			l := &life{T: t, h: h, d: h.globalDescriptor()}
			all := globals(t)
			for _, a := range all {
				for _, b := range all {
					l.change(nil, a)
					l.expect(a)
					l.change(a, b)
					l.expect(b)
					l.change(b, a)
					l.expect(a)
					l.change(a, nil)
					if f := l.found(); f != nil {
						t.Fatalf("left behind from %v: %v", a, f)
					}
					var r ip.IPReassemblyGetReply
					if err := c.Call(t.Context(), &ip.IPReassemblyGet{Type: ip.IP_REASS_TYPE_SHALLOW_VIRTUAL}, &r); err != nil || r.TimeoutMs != 100 || r.MaxReassemblies != 1024 || r.MaxReassemblyLength != 3 {
						t.Fatalf("left behind from %v: %+v, %v", a, r, err)
					}
				}
			}
		})
	}
}

// TestGlobalAgain repeats each verb, as after an answer that was lost.
func TestGlobalAgain(t *testing.T) {
	for _, release := range simulated.Releases() {
		t.Run(release, func(t *testing.T) {
			h, _, _ := onVPP(t, release)
			l := &life{T: t, h: h, d: h.globalDescriptor()}
			for _, v := range globals(t) {
				l.change(nil, v)
				l.change(nil, v)
				l.expect(v)
				l.change(v, nil)
				l.change(v, nil)
			}
		})
	}
}

// TestGlobalFindsChanges has another client change all that the value has.
func TestGlobalFindsChanges(t *testing.T) {
	for _, release := range simulated.Releases() {
		t.Run(release, func(t *testing.T) {
			h, vpp, c := onVPP(t, release)
			l := &life{T: t, h: h, d: h.globalDescriptor()}
			v := testkit.Parse[*nat.Nat44Global](t, `forwarding: true virtual_reassembly: { timeout: 2 }`)
			l.change(nil, v)
			vpp.Ask(c, &nat44_ed.Nat44ForwardingEnableDisable{}, &nat44_ed.Nat44ForwardingEnableDisableReply{})
			if f := l.found(v); l.d.Equivalent("", f, v) {
				t.Errorf("found is %v", f)
			}
			l.change(testkit.Parse[*nat.Nat44Global](t, `virtual_reassembly: { timeout: 2 }`), v)
			l.expect(v)
			// VPP hangs with an interval of 0.
			set := &ip.IPReassemblySet{Type: ip.IP_REASS_TYPE_SHALLOW_VIRTUAL, TimeoutMs: 500, MaxReassemblies: 7, MaxReassemblyLength: 3, ExpireWalkIntervalMs: 10000}
			vpp.Ask(c, set, &ip.IPReassemblySetReply{})
			if f := l.found(v); l.d.Equivalent("", f, v) || f.GetVirtualReassembly().GetTimeout() != 1 || f.GetVirtualReassembly().GetMaxReassemblies() != 7 {
				t.Errorf("found is %v", f)
			}
			vpp.Ask(c, &nat44_ed.Nat44EdPluginEnableDisable{}, &nat44_ed.Nat44EdPluginEnableDisableReply{})
			if f := l.found(v); f != nil {
				t.Errorf("found is %v, though the plugin is disabled", f)
			}
			if err := h.addFeatures(t.Context(), "if1", features{inside: true}); err == nil {
				t.Error("an interface got a side of a disabled plugin")
			}
		})
	}
}

func TestGlobalIsValid(t *testing.T) {
	for text, want := range map[string][]string{
		`nat_interfaces: {} nat_interfaces: { name: "a" } nat_interfaces: { name: "a" } nat_interfaces: { name: "a" output_feature: true }
			nat_interfaces: { name: "b" output_feature: true } nat_interfaces: { name: "b" is_inside: true }`: {
			"nat_interfaces[0].name", "nat_interfaces[2].is_inside", "nat_interfaces[3].output_feature", "nat_interfaces[5].output_feature",
		},
		`address_pool: {} address_pool: { address: "10.0.0.1" } address_pool: { address: "10.0.0.1" twice_nat: true } address_pool: { address: "10.0.0.1" vrf_id: 7 }`: {
			"address_pool[0].address", "address_pool[3].address",
		},
	} {
		got := models.Fields(validateGlobal("", testkit.Parse[*nat.Nat44Global](t, text)))
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: refused are %q; expected %q", text, got, want)
		}
	}
	for _, v := range globals(t) {
		if err := validateGlobal("", v); err != nil {
			t.Error(err)
		}
	}
	v := testkit.Parse[*nat.Nat44Global](t, `virtual_reassembly: { timeout: 2 drop_fragments: true }`)
	if n, warnings := normalizeGlobal("", v); n.GetVirtualReassembly().GetDropFragments() || n.GetVirtualReassembly().GetTimeout() != 2 || len(warnings) != 1 || !v.GetVirtualReassembly().GetDropFragments() {
		t.Errorf("normalized is %v, with %q", n, warnings)
	}
}

// TestListsBesideValues has both ways of declaring at once. After a start, Retrieve finds each
// item in its own way, and nothing is taken from VPP.
func TestListsBesideValues(t *testing.T) {
	h, _, c := onVPP(t, simulated.Newest())
	v := testkit.Parse[*nat.Nat44Global](t, `nat_interfaces: { name: "if1" is_inside: true } address_pool: { address: "10.0.0.1" }`)
	(&life{T: t, h: h, d: h.globalDescriptor()}).change(nil, v)
	single := &nat.Nat44Interface{Name: "if2", NatOutside: true}
	pool := &nat.Nat44AddressPool{FirstIp: "10.0.0.2"}
	if _, err := h.interfaceDescriptor().Create(t.Context(), "", single); err != nil {
		t.Fatal(err)
	}
	if _, err := h.poolDescriptor().Create(t.Context(), "", pool); err != nil {
		t.Fatal(err)
	}

	again := &handler{Options: Options{API: c, Interfaces: h.Interfaces}} // of an agent that has just started
	l := &life{T: t, h: again, d: again.globalDescriptor()}
	for round := range 2 {
		found := l.found(v)
		if n := len(found.GetNatInterfaces()) + len(found.GetAddressPool()); n != 4-2*round {
			t.Errorf("round %d: %d listed; expected %d", round, n, 4-2*round)
		}
		interfaces := drained(t, again.interfaceDescriptor(), scheduler.Desired[*nat.Nat44Interface]{Key: "i", Value: single})
		pools := drained(t, again.poolDescriptor(), scheduler.Desired[*nat.Nat44AddressPool]{Key: "p", Value: pool})
		if len(interfaces) != 1 || interfaces[0].Key != "i" || len(pools) != 1 || pools[0].Key != "p" {
			t.Errorf("round %d: found are %v and %v", round, interfaces, pools)
		}
		l.parts(found, v, false)
	}
	l.expect(v)
	if interfaces := drained(t, again.interfaceDescriptor(), scheduler.Desired[*nat.Nat44Interface]{Key: "i", Value: single}); len(interfaces) != 1 {
		t.Errorf("found are %v", interfaces)
	}
}

// drained returns all that Retrieve finds.
func drained[V proto.Message](t *testing.T, d scheduler.Descriptor[V, struct{}], wanted ...scheduler.Desired[V]) (out []scheduler.Found[V, struct{}]) {
	t.Helper()
	for f, err := range conformance.Taken(d.Retrieve(context.WithoutCancel(t.Context()), wanted)) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, f)
	}
	return out
}

func TestListedConform(t *testing.T) {
	type (
		listedInterface = scheduler.Desired[*nat.Nat44Global_Interface]
		address         = scheduler.Desired[*nat.Nat44Global_Address]
	)
	i := func(name string, inside, output bool) listedInterface {
		return listedInterface{Key: keys.NATInterface(name, inside), Value: &nat.Nat44Global_Interface{Name: name, IsInside: inside, OutputFeature: output}}
	}
	a := func(text string, vrf uint32) address {
		return address{Key: keys.NATAddress(text, false), Value: &nat.Nat44Global_Address{Address: text, VrfId: vrf}}
	}
	each(t, func(t *testing.T, endpointIndependent bool) {
		existing.Conforms(t, func(t *testing.T, release string) scheduler.Descriptor[*nat.Nat44Global_Interface, struct{}] {
			h, _, _ := enabledVPP(t, release, endpointIndependent)
			return h.listedInterfaceDescriptor()
		}, conformance.Suite[*nat.Nat44Global_Interface, struct{}]{
			Values:  []listedInterface{i("if1", true, false), i("if1", false, false), i("if2", false, true)},
			Changes: []conformance.Change[*nat.Nat44Global_Interface]{{Name: "output", Key: i("if3", true, false).Key, From: i("if3", true, false).Value, To: i("if3", true, true).Value, How: conformance.Recreated}},
		})
		existing.Conforms(t, func(t *testing.T, release string) scheduler.Descriptor[*nat.Nat44Global_Address, struct{}] {
			h, _, _ := enabledVPP(t, release, endpointIndependent)
			return h.listedAddressDescriptor()
		}, conformance.Suite[*nat.Nat44Global_Address, struct{}]{
			Values:  []address{a("10.0.0.1", 0), a("10.0.0.2", anyVRF)},
			Changes: []conformance.Change[*nat.Nat44Global_Address]{{Name: "VRF", Key: a("10.0.0.3", 0).Key, From: a("10.0.0.3", 0).Value, To: a("10.0.0.3", 5).Value, How: conformance.Recreated}},
		})
	})
}
