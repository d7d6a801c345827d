package nat

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/existing"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/proto/ligato/vpp/nat"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/conformance"
)

// Mappings of tests.
const (
	web      = `st_mappings: { external_ip: "10.0.0.1" external_port: 80 local_ips: { local_ip: "192.168.0.1" local_port: 8080 } } `
	udp      = `st_mappings: { external_ip: "10.0.0.1" external_port: 80 protocol: UDP local_ips: { local_ip: "192.168.0.1" local_port: 8080 vrf_id: 5 } twice_nat: SELF } `
	allPorts = `st_mappings: { external_ip: "10.0.0.2" local_ips: { local_ip: "192.168.0.2" } } `
	pooled   = `st_mappings: { external_ip: "10.0.0.3" external_port: 1 protocol: ICMP local_ips: { local_ip: "192.168.0.3" local_port: 2 } twice_nat: ENABLED twice_nat_pool_ip: "10.9.0.1" } `
	ofIf1    = `st_mappings: { external_interface: "if1" external_port: 81 local_ips: { local_ip: "192.168.0.1" local_port: 81 } twice_nat: SELF } `
	ofIf2    = `st_mappings: { external_interface: "if2" external_ip: "ignored" local_ips: { local_ip: "192.168.0.9" } } `
	balanced = `st_mappings: { external_ip: "10.0.0.4" external_port: 443 session_affinity: 30
		local_ips: { local_ip: "192.168.0.5" local_port: 1 probability: 40 } local_ips: { local_ip: "192.168.0.6" local_port: 2 probability: 60 vrf_id: 5 } } `
	equally = `st_mappings: { external_ip: "10.0.0.4" external_port: 444 twice_nat: ENABLED
		local_ips: { local_ip: "192.168.0.5" local_port: 1 } local_ips: { local_ip: "192.168.0.6" local_port: 2 } local_ips: { local_ip: "192.168.0.6" local_port: 3 } } `
	identity = `id_mappings: { ip_address: "10.0.0.5" port: 22 } id_mappings: { ip_address: "10.0.0.5" port: 22 vrf_id: 5 } id_mappings: { ip_address: "10.0.0.6" } `
	// an identity mapping of several VRFs that the endpoint-independent plugin has, too
	identityPlain = `id_mappings: { ip_address: "10.0.0.5" port: 22 } id_mappings: { ip_address: "10.0.0.6" } id_mappings: { ip_address: "10.0.0.6" vrf_id: 5 } `
	identityIf    = `id_mappings: { interface: "if1" port: 53 protocol: UDP } id_mappings: { interface: "if3" } `
	// Mappings that the endpoint-independent plugin has, too. Their local sides differ.
	dns = `st_mappings: { external_ip: "10.0.0.1" external_port: 80 protocol: UDP local_ips: { local_ip: "192.168.0.1" local_port: 53 vrf_id: 5 } } `
)

// dnatVPP is enabledVPP with addresses on if1 and if2.
func dnatVPP(t testing.TB, release string) (*handler, *simulated.VPP) {
	t.Helper()
	h, vpp, c := enabledVPP(t, release, false)
	for name, address := range map[string]string{"if1": "10.1.0.1/24", "if2": "10.2.0.1/24"} {
		link, _ := h.Interfaces.Get(name)
		vpp.Ask(c, &vppif.SwInterfaceAddDelAddress{
			SwIfIndex: link.SwIfIndex(), IsAdd: true, Prefix: vppwire.AddressWithPrefix(netip.MustParsePrefix(address)),
		}, &vppif.SwInterfaceAddDelAddressReply{})
	}
	return h, vpp
}

// independentVPP has the endpoint-independent NAT44 and a pool for all mappings.
func independentVPP(t testing.TB, release string) *handler {
	t.Helper()
	h, _, _ := enabledVPP(t, release, true)
	pool := testkit.Parse[*nat.Nat44AddressPool](t, `first_ip: "10.0.0.1" last_ip: "10.0.0.9"`)
	if _, err := h.poolDescriptor().Create(t.Context(), "", pool); err != nil {
		t.Fatal(err)
	}
	return h
}

func dnat(t testing.TB, label, text string) *nat.DNat44 {
	t.Helper()
	return testkit.Parse[*nat.DNat44](t, `label: "`+label+`" `+text)
}

func TestDNATConforms(t *testing.T) {
	change := func(name, from, to string, how conformance.How) conformance.Change[*nat.DNat44] {
		return conformance.Change[*nat.DNat44]{Name: name, From: dnat(t, "c", from), To: dnat(t, "c", to), How: how}
	}
	invalid := func(name, text string, fields ...string) conformance.Invalid[*nat.DNat44] {
		return conformance.Invalid[*nat.DNat44]{Name: name, Value: dnat(t, "a", text), Fields: fields}
	}
	const st = "st_mappings[0]."
	existing.Conforms(t, func(t *testing.T, release string) scheduler.Descriptor[*nat.DNat44, struct{}] {
		h, _ := dnatVPP(t, release)
		return h.dnatDescriptor()
	}, conformance.Suite[*nat.DNat44, struct{}]{
		Values: []scheduler.Desired[*nat.DNat44]{
			{Value: dnat(t, "a", web+udp+allPorts)}, {Value: dnat(t, "b", pooled+identity)}, {Value: dnat(t, "balanced", balanced+equally)},
			{Value: dnat(t, "interfaces", ofIf1+ofIf2+identityIf)},
		},
		Changes: []conformance.Change[*nat.DNat44]{
			change("another mapping", web, web+udp, conformance.Updated),
			change("one less", web+allPorts+identity, allPorts, conformance.Updated),
			change("local port", web, strings.Replace(web, "8080", "8081", 1), conformance.Updated),
			change("twice-NAT", web, strings.Replace(web, "st_mappings: {", "st_mappings: { twice_nat: ENABLED", 1), conformance.Updated),
			change("pool", pooled, strings.Replace(pooled, "10.9.0.1", "10.9.0.2", 1), conformance.Updated),
			change("affinity", balanced, strings.Replace(balanced, "30", "31", 1), conformance.Updated),
			change("probability", balanced, strings.Replace(balanced, "60", "61", 1), conformance.Updated),
			change("one of several", equally, strings.Replace(equally, "local_port: 3", "local_port: 4", 1), conformance.Updated),
			change("from an interface to its address", ofIf1, strings.Replace(ofIf1, `external_interface: "if1"`, `external_ip: "10.1.0.1"`, 1), conformance.Updated),
			change("VRFs of an identity mapping", identity, strings.Replace(identity, "vrf_id: 5", "vrf_id: 6", 1), conformance.Updated),
			change("equal probabilities", equally, strings.ReplaceAll(equally, "local_port", "probability: 1 local_port"), conformance.Unchanged),
			change("ports of all ports", allPorts, strings.Replace(allPorts, `"192.168.0.2"`, `"192.168.0.2" local_port: 7`, 1), conformance.Unchanged),
			// The older agent used the address.
			change("an interface beside the address", balanced, strings.Replace(balanced, "st_mappings: {", `st_mappings: { external_interface: "if1"`, 1), conformance.Unchanged),
			change("order", web+udp, udp+web, conformance.Unchanged),
			{Name: "label", Key: "config/vpp/nat/v2/dnat44/l", From: dnat(t, "l", web), To: dnat(t, "m", web), How: conformance.Recreated},
		},
		Invalid: []conformance.Invalid[*nat.DNat44]{
			{Name: "no label", Value: &nat.DNat44{}, Fields: []string{"label"}},
			{Name: "a label like a setting", Value: dnat(t, "a?affinity=3", ""), Fields: []string{"label"}},
			{Name: "a long label", Value: dnat(t, strings.Repeat("x", 50), balanced+pooled), Fields: []string{"label"}},
			invalid("nothing", `st_mappings: {} id_mappings: {}`, st+"external_ip", st+"local_ips", "id_mappings[0].ip_address"),
			invalid("numbers", `st_mappings: { external_ip: "x" external_port: 65536 protocol: 9 twice_nat: 9 local_ips: { local_ip: "fd00::1" local_port: 65536 vrf_id: 4294967295 } }`,
				st+"external_ip", st+"external_port", st+"protocol", st+"twice_nat", st+"local_ips[0].local_ip", st+"local_ips[0].local_port", st+"local_ips[0].vrf_id"),
			invalid("all ports", `st_mappings: { external_ip: "10.0.0.1" twice_nat: SELF local_ips: { local_ip: "10.0.0.2" } local_ips: { local_ip: "10.0.0.3" } }`,
				st+"external_port", st+"twice_nat"),
			invalid("local port", `st_mappings: { external_ip: "10.0.0.1" external_port: 1 local_ips: { local_ip: "10.0.0.2" } }`, st+"local_ips[0].local_port"),
			invalid("balanced", `st_mappings: { external_interface: "if1" external_port: 1 twice_nat: ENABLED twice_nat_pool_ip: "10.0.0.9" local_ips: { local_ip: "10.0.0.2" local_port: 1 probability: 200 }
				local_ips: { local_ip: "10.0.0.2" local_port: 1 probability: 56 } }`, st+"external_interface", st+"local_ips", st+"local_ips[1]", st+"twice_nat_pool_ip"),
			invalid("pool without twice-NAT", strings.Replace(pooled, "ENABLED", "SELF", 1), st+"twice_nat_pool_ip"),
			invalid("twice", web+udp+web+`id_mappings: { ip_address: "10.0.0.1" port: 80 } `+identity+identity,
				"st_mappings[2]", "id_mappings[0]", "id_mappings[4]", "id_mappings[5]", "id_mappings[6]"),
		},
	})
}

// TestIndependentDNATConforms has the mappings that need no endpoint-dependent NAT44.
func TestIndependentDNATConforms(t *testing.T) {
	change := func(name, from, to string, how conformance.How) conformance.Change[*nat.DNat44] {
		return conformance.Change[*nat.DNat44]{Name: name, From: dnat(t, "c", from), To: dnat(t, "c", to), How: how}
	}
	existing.Conforms(t, func(t *testing.T, release string) scheduler.Descriptor[*nat.DNat44, struct{}] {
		return independentVPP(t, release).dnatDescriptor()
	}, conformance.Suite[*nat.DNat44, struct{}]{
		Values: []scheduler.Desired[*nat.DNat44]{{Value: dnat(t, "a", web+dns+allPorts)}, {Value: dnat(t, "b", identityPlain)}},
		Changes: []conformance.Change[*nat.DNat44]{
			change("another mapping", web, web+dns, conformance.Updated),
			change("one less", web+allPorts+identityPlain, allPorts, conformance.Updated),
			change("local port", web, strings.Replace(web, "8080", "8081", 1), conformance.Updated),
			change("external port", web, strings.Replace(web, "80", "81", 1), conformance.Updated),
			change("VRFs of an identity mapping", identityPlain, strings.Replace(identityPlain, "vrf_id: 5", "vrf_id: 6", 1), conformance.Updated),
			change("order", web+dns, dns+web, conformance.Unchanged),
			{Name: "label", Key: "config/vpp/nat/v2/dnat44/l", From: dnat(t, "l", web), To: dnat(t, "m", web), How: conformance.Recreated},
		},
		Invalid: []conformance.Invalid[*nat.DNat44]{{Name: "no label", Value: &nat.DNat44{}, Fields: []string{"label"}}},
	})
}

// TestDNATPairs has each set of mappings follow each other one, and undoes it.
func TestDNATPairs(t *testing.T) {
	t.Run("endpoint-dependent", func(t *testing.T) {
		pairs(t, func(t *testing.T, release string) *handler { h, _ := dnatVPP(t, release); return h },
			"", web, udp+allPorts, pooled, ofIf1, ofIf2+identityIf, balanced, equally+identity, web+balanced+ofIf1)
	})
	t.Run("endpoint-independent", func(t *testing.T) {
		pairs(t, func(t *testing.T, release string) *handler { return independentVPP(t, release) },
			"", web, dns+allPorts, identityPlain, web+identityPlain, strings.Replace(web, "80", "81", 1))
	})
}

// pairs has each of sets follow each other one on each release, and undoes it.
func pairs(t *testing.T, on func(t *testing.T, release string) *handler, sets ...string) {
	for _, release := range simulated.Releases() {
		t.Run(release, func(t *testing.T) {
			d := on(t, release).dnatDescriptor()
			expect := func(v *nat.DNat44) {
				t.Helper()
				found := drained(t, d, scheduler.Desired[*nat.DNat44]{Key: "k", Value: v})
				if len(found) != 1 || !d.Equivalent("", found[0].Value, v) {
					t.Fatalf("VPP has %v; expected %v", found, v)
				}
			}
			for _, a := range sets {
				for _, b := range sets {
					from, to := dnat(t, "a", a), dnat(t, "a", b)
					if _, err := d.Create(t.Context(), "", from); err != nil {
						t.Fatal(err)
					}
					expect(from)
					for _, change := range [][2]*nat.DNat44{{from, to}, {to, from}} {
						if _, err := d.Update(t.Context(), "", change[0], change[1], struct{}{}); err != nil {
							t.Fatal(err)
						}
						expect(change[1])
					}
					if err := d.Delete(t.Context(), "", from, struct{}{}); err != nil {
						t.Fatal(err)
					}
					if found := drained(t, d); len(found) > 0 {
						t.Fatalf("left behind: %v", found)
					}
				}
			}
		})
	}
}

// TestDNATIsRepaired has VPP have a part of a value, and mappings in its place: created, all is as
// declared. A place that somebody else has is an error.
func TestDNATIsRepaired(t *testing.T) {
	for _, release := range simulated.Releases() {
		t.Run(release, func(t *testing.T) {
			h, vpp := dnatVPP(t, release)
			d := h.dnatDescriptor()
			part, whole := dnat(t, "a", strings.Replace(web, "8080", "9", 1)+identity), dnat(t, "a", web+udp+identity)
			for _, v := range []*nat.DNat44{part, whole} {
				if _, err := d.Create(t.Context(), "", v); err != nil {
					t.Fatal(err)
				}
			}
			found := drained(t, d, scheduler.Desired[*nat.DNat44]{Key: "k", Value: whole})
			if len(found) != 1 || !d.Equivalent("", found[0].Value, whole) {
				t.Errorf("VPP has %v; expected %v", found, whole)
			}
			if _, err := d.Create(t.Context(), "", dnat(t, "b", web)); err == nil || !strings.Contains(err.Error(), `with the tag "a" is in the way of `) {
				t.Errorf("two values have one external side: %v", err)
			}
			q := &nat44_ed.Nat44AddDelStaticMapping{
				IsAdd: true, Flags: nat_types.NAT_IS_ADDR_ONLY, ExternalIPAddress: [4]byte{10, 7, 0, 1}, LocalIPAddress: [4]byte{10, 7, 0, 2}, ExternalSwIfIndex: noInterface,
			}
			vpp.Ask(vpp.Dial(), q, &nat44_ed.Nat44AddDelStaticMappingReply{})
			if found := drained(t, d, scheduler.Desired[*nat.DNat44]{Key: "k", Value: whole}); len(found) != 1 {
				t.Errorf("a mapping of somebody else is in %v", found)
			}
		})
	}
}

// TestIndependentDNATIsRefused has what the endpoint-independent NAT44 refuses: a second mapping of a
// local side, and kinds that it does not have.
func TestIndependentDNATIsRefused(t *testing.T) {
	d := independentVPP(t, simulated.Releases()[0]).dnatDescriptor()
	for text, want := range map[string]string{
		web + strings.Replace(web, "80", "81", 1): `TCP with the tag "a" has the local side of`,
		balanced: "expected the endpoint-dependent NAT44",
		ofIf1:    "expected the endpoint-dependent NAT44",
		identity: "expected the endpoint-dependent NAT44",
	} {
		v := dnat(t, "a", text)
		_, err := d.Create(t.Context(), "", v)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v; expected %q", err, want)
		}
		if err := d.Delete(t.Context(), "", v, struct{}{}); err != nil {
			t.Error(err)
		}
	}
	if found := drained(t, d); len(found) > 0 {
		t.Errorf("left behind: %v", found)
	}
}

// TestTags has tags read as they were written.
func TestTags(t *testing.T) {
	for _, text := range []string{web, pooled, ofIf1, balanced} {
		for _, m := range mappingsOf(dnat(t, "a", text)) {
			for _, label := range []string{"a", "a?b", "?", "a?affinity="} {
				name, affinity, pool, self := parseTag(m.tag(label))
				if name != label || affinity != m.affinity || pool != m.pool || self != (m.link != "" && m.twice == nat.DNat44_StaticMapping_SELF) {
					t.Errorf("%q is read as %q, %d, %v, %v", m.tag(label), name, affinity, pool, self)
				}
			}
		}
	}
}

func FuzzTag(f *testing.F) {
	f.Add("a?affinity=3&pool=10.0.0.1&self")
	f.Add("a?self&x")
	f.Fuzz(func(t *testing.T, tag string) {
		if label, _, _, _ := parseTag(tag); !strings.HasPrefix(tag, label) {
			t.Errorf("%q has the label %q", tag, label)
		}
	})
}

// TestDNATDepends has the dependencies of a value with one mapping of each kind.
func TestDNATDepends(t *testing.T) {
	var got []string
	for _, d := range dnatDependencies("", dnat(t, "a", udp+pooled+ofIf1+identityIf+balanced)) {
		got = append(got, d.Label)
		if d.Label == "reference-to-twiceNATPoolIP" && (!d.MetBy("vpp/nat44/twiceNAT-pool/vrf/0/addresses/10.9.0.0-10.9.0.3") || d.MetBy("vpp/nat44/twiceNAT-pool/vrf/0/addresses/10.9.0.2")) {
			t.Error("it is met by the wrong pool")
		}
	}
	want := []string{"nat44-is-in-endpoint-dependent-mode", "interface-exists-if1", "interface-exists-if3", "vrf-table-exists-5", "reference-to-twiceNATPoolIP"}
	if !slices.Equal(got, want) {
		t.Errorf("it depends on %q; expected %q", got, want)
	}
}

// TestDNATOfSeveralVRFs has identity mappings of one address in several VRFs: those with a port need
// the endpoint-dependent NAT44.
func TestDNATOfSeveralVRFs(t *testing.T) {
	const ofUDP = `id_mappings: { ip_address: "10.0.0.5" port: 22 protocol: UDP vrf_id: 5 } `
	for text, want := range map[string]string{
		identity:              "nat44-is-in-endpoint-dependent-mode",
		identityPlain:         "nat44-global-config-exists",
		identityPlain + ofUDP: "nat44-global-config-exists",
	} {
		if got := dnatDependencies("", dnat(t, "a", text))[0].Label; got != want {
			t.Errorf("%s depends on %s; expected %s", text, got, want)
		}
	}
}

// TestDNATDependsOnAPool: a mapping that both kinds of NAT44 have needs its address in a pool,
// unless NAT44 is endpoint-dependent.
func TestDNATDependsOnAPool(t *testing.T) {
	all := dnatDependencies("", dnat(t, "a", web+dns+allPorts+identityPlain)) // 10.0.0.1 and 10.0.0.5 have ports
	var got []string
	for _, d := range all {
		got = append(got, d.Label)
	}
	want := []string{
		"nat44-global-config-exists", "pool-has-external-addresses-or-nat44-is-endpoint-dependent", "vrf-table-exists-5",
	}
	if !slices.Equal(got, want) {
		t.Fatalf("it depends on %q; expected %q", got, want)
	}
	for key, want := range map[string]bool{
		"vpp/nat44/endpoint-dependent":                              true,
		"vpp/nat44/pool/vrf/7/addresses/10.0.0.0-10.0.0.5":          true,
		"vpp/nat44/pool/vrf/0/addresses/10.0.0.1":                   false,
		"vpp/nat44/pool/vrf/0/addresses/10.0.0.2-10.0.0.9":          false,
		"vpp/nat44/twiceNAT-pool/vrf/0/addresses/10.0.0.1-10.0.0.9": false,
		"vpp/nat44/address/10.0.0.1/twice-nat/off":                  false,
		"vpp/nat44/address/10.0.0.1/twice-nat/on":                   false,
		"vpp/nat44/address/10.0.0.2/twice-nat/off":                  false,
		"config/vpp/nat/v2/nat44-pool/vrf/0/address/10.0.0.1":       false,
		"vpp/nat44/pool/vrf/0/addresses/10.0.0.1-10.0.0.9/garbage":  false,
	} {
		if all[1].MetBy(key) != want {
			t.Errorf("%s meets it, or not; expected %v", key, want)
		}
	}
	if one := dnatDependencies("", dnat(t, "a", web))[1]; !one.MetBy("vpp/nat44/address/10.0.0.1/twice-nat/off") || one.MetBy("vpp/nat44/address/10.0.0.1/twice-nat/on") {
		t.Error("a listed address does not meet it, or one for twice-NAT does")
	}
}
