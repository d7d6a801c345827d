package ipsec

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.fd.io/govpp/api"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	vppipsec "go.fd.io/govpp/binapi/ipsec"
	"go.fd.io/govpp/binapi/ipsec_types"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/existing"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/ipsec"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/conformance"
)

// known are existing associations.
type known map[string]Meta

func (k known) Get(number string) (Meta, bool) { m, ok := k[number]; return m, ok }

// onVPP returns a handler for a VPP with the loopbacks if1 and if2.
func onVPP(t testing.TB, release string) (*handler, *simulated.VPP) {
	t.Helper()
	vpp := simulated.Start(t, release)
	c := vpp.Dial()
	h := newHandler(Options{API: c, Interfaces: existing.Loopbacks(vpp, c, "if1", "if2")})
	h.associations = known{}
	return h, vpp
}

// digits returns a key of a length in bytes.
func digits(bytes int) string { return strings.Repeat("4b", bytes) }

// sha1 is the authentication of most associations here.
var sha1 = ` integ_alg: SHA1_96 integ_key: "` + digits(20) + `"`

// cbc is the text of an association with AES-CBC.
func cbc(more string) string {
	return `protocol: ESP crypto_alg: AES_CBC_128 crypto_key: "` + digits(16) + `"` + sha1 + " " + more
}

func TestAssociationConforms(t *testing.T) {
	a := func(number uint32, text string) *ipsec.SecurityAssociation {
		return testkit.Parse[*ipsec.SecurityAssociation](t, fmt.Sprint("index: ", number, " spi: 1000 ", text))
	}
	change := func(name, from, to string, how conformance.How) conformance.Change[*ipsec.SecurityAssociation] {
		return conformance.Change[*ipsec.SecurityAssociation]{Name: name, From: a(1, from), To: a(1, to), How: how}
	}
	const ends = `tunnel_src_addr: "10.0.0.1" tunnel_dst_addr: "10.0.0.2" `
	suite := conformance.Suite[*ipsec.SecurityAssociation, Meta]{
		Values: []scheduler.Desired[*ipsec.SecurityAssociation]{
			{Value: a(1, cbc(``))},
			{Value: a(0, cbc(`use_esn: true use_anti_replay: true `+ends))},
			{Value: a(4294967295, `protocol: AH crypto_alg: AES_CBC_256 tunnel_src_addr: "fd00::1" tunnel_dst_addr: "fd00::2" `+sha1)},
			{Value: a(4, `protocol: ESP crypto_salt: 9`)},
			{Value: a(5, cbc(ends+`enable_udp_encap: true tunnel_src_port: 1 tunnel_dst_port: 65534`))},
		},
		Changes: []conformance.Change[*ipsec.SecurityAssociation]{
			{Name: "authenticates twice", From: a(1, `protocol: ESP crypto_alg: AES_GCM_128 crypto_key: "`+digits(16)+`"`), To: a(1, `protocol: ESP crypto_alg: AES_GCM_128 crypto_key: "`+digits(16)+`"`+sha1), How: conformance.Unchanged},
			change("key", cbc(``), strings.Replace(cbc(``), "4b", "4c", 1), conformance.Recreated),
			change("spelling of keys", cbc(``), strings.ReplaceAll(cbc(``), "4b", "4B"), conformance.Unchanged),
			change("tunnel", cbc(``), cbc(ends), conformance.Recreated),
			change("spelling of ends", cbc(`tunnel_src_addr: "fd00::1" tunnel_dst_addr: "fd00::2"`), cbc(`tunnel_src_addr: "FD00:0::1" tunnel_dst_addr: "fd00:0::2"`), conformance.Unchanged),
			change("flags", cbc(``), cbc(`use_esn: true`), conformance.Recreated),
			change("default ports", cbc(`enable_udp_encap: true`), cbc(`enable_udp_encap: true tunnel_src_port: 4500 tunnel_dst_port: 4500`), conformance.Unchanged),
			change("ports without UDP", cbc(``), cbc(`tunnel_src_port: 9`), conformance.Unchanged),
			change("salt that is not used", cbc(``), cbc(`crypto_salt: 9`), conformance.Unchanged),
			change("key that is not used", `protocol: ESP`, `protocol: ESP integ_key: "00" crypto_key: "00"`, conformance.Unchanged),
			change("encryption of AH", `protocol: AH`+sha1, `protocol: AH crypto_alg: DES_CBC`+sha1, conformance.Unchanged),
		},
		Invalid: []conformance.Invalid[*ipsec.SecurityAssociation]{
			{Name: "nothing", Value: &ipsec.SecurityAssociation{}, Fields: []string{"integ_alg"}},
			{Name: "numbers", Value: a(1, `protocol: 2 crypto_alg: 12 integ_alg: 7 tunnel_src_port: 65535 tunnel_dst_port: 65536`),
				Fields: []string{"protocol", "crypto_alg", "integ_alg", "integ_key", "tunnel_src_port", "tunnel_dst_port"}},
			{Name: "keys", Value: a(1, `protocol: ESP crypto_alg: AES_CTR_192 crypto_key: "x" integ_alg: MD5_96 integ_key: "0"`), Fields: []string{"crypto_key", "integ_key"}},
			{Name: "length of keys", Value: a(1, `protocol: ESP crypto_alg: DES_CBC crypto_key: "`+digits(8)+`" integ_alg: SHA_512_256 integ_key: "`+digits(129)+`"`), Fields: []string{"crypto_key", "integ_key"}},
			{Name: "ends", Value: a(1, cbc(`tunnel_src_addr: "x"`)), Fields: []string{"tunnel_src_addr", "tunnel_dst_addr"}},
			{Name: "one end", Value: a(1, cbc(`tunnel_src_addr: "10.0.0.1" tunnel_dst_addr: "10.0.0.1"`)), Fields: []string{"tunnel_dst_addr"}},
			{Name: "IP versions", Value: a(1, cbc(`tunnel_src_addr: "10.0.0.1" tunnel_dst_addr: "fd00::1"`)), Fields: []string{"tunnel_dst_addr"}},
		},
	}
	for n := range int32(len(ipsec.CryptoAlg_name)) { // every algorithm that encrypts, with a salt
		algorithm := ipsec.CryptoAlg(n)
		v := a(100+uint32(n), fmt.Sprintf(`protocol: ESP crypto_alg: %s crypto_key: "%s" crypto_salt: %d`, algorithm, digits(keyBytes(algorithm)), 0x01020304))
		suite.Values = append(suite.Values, scheduler.Desired[*ipsec.SecurityAssociation]{Value: v})
	}
	for n := range int32(len(ipsec.IntegAlg_name)) {
		v := a(200+uint32(n), fmt.Sprintf(`protocol: ESP integ_alg: %s integ_key: "%s"`, ipsec.IntegAlg(n), digits(32)))
		suite.Values = append(suite.Values, scheduler.Desired[*ipsec.SecurityAssociation]{Value: v})
	}
	existing.Conforms(t, func(t *testing.T, release string) scheduler.Descriptor[*ipsec.SecurityAssociation, Meta] {
		h, _ := onVPP(t, release)
		return h.associationDescriptor()
	}, suite)
}

// TestSecretsAreHidden has VPP and Validate refuse values: their errors have no key and no salt.
func TestSecretsAreHidden(t *testing.T) {
	h, _ := onVPP(t, simulated.Newest())
	v := testkit.Parse[*ipsec.SecurityAssociation](t, `index: 1 protocol: ESP crypto_alg: AES_GCM_128 crypto_key: "4b4b" crypto_salt: 987654 integ_alg: SHA1_96 integ_key: "4b4bz"`)
	_, refused := h.createAssociation(t.Context(), "", v)
	for _, err := range []error{refused, validateAssociation("", v)} {
		if err == nil || strings.Contains(err.Error(), "4b4b") || strings.Contains(err.Error(), "75 75") || strings.Contains(err.Error(), "987654") {
			t.Errorf("the error is %v", err)
		}
	}
	if !errors.Is(refused, api.KEY_LENGTH) && !errors.Is(refused, scheduler.ErrInvalid) { // from 26.06 on, it looks at the pair before
		t.Errorf("VPP refuses with %v", refused)
	}
}

// TestPairsOfAlgorithms declares algorithms that VPP does not combine from 26.06 on: the value is INVALID, and
// its error names the field. Older releases have them.
func TestPairsOfAlgorithms(t *testing.T) {
	for _, release := range simulated.Releases() {
		t.Run(release, func(t *testing.T) {
			h, _ := onVPP(t, release)
			for i, algorithms := range []string{
				`crypto_alg: DES_CBC crypto_key: "` + strings.Repeat("4b", 7) + `" integ_alg: SHA1_96`,
				`crypto_alg: AES_CTR_128 crypto_key: "` + strings.Repeat("4b", 16) + `" integ_alg: MD5_96`,
			} {
				v := testkit.Parse[*ipsec.SecurityAssociation](t, fmt.Sprintf(`index: %d protocol: ESP %s integ_key: "4b4b"`, i+1, algorithms))
				_, err := h.createAssociation(t.Context(), "", v)
				if release != simulated.Real && release < "26.06" || err == nil {
					if err != nil {
						t.Errorf("%s: %v", algorithms, err)
					}
					continue
				}
				if field, is := errors.AsType[*models.FieldError](err); !errors.Is(err, scheduler.ErrInvalid) || !is || field.Field != "integ_alg" {
					t.Errorf("%s: the error is %v; expected an invalid integ_alg", algorithms, err)
				}
			}
		})
	}
}

// TestAssociationInUse deletes an association that a policy of somebody else uses: it stays, and
// goes when the policy is gone.
func TestAssociationInUse(t *testing.T) {
	for _, release := range simulated.Releases() {
		t.Run(release, func(t *testing.T) {
			h, vpp := onVPP(t, release)
			c := vpp.Dial()
			v := testkit.Parse[*ipsec.SecurityAssociation](t, `index: 1 `+cbc(``))
			meta, err := h.createAssociation(t.Context(), "", v)
			if err != nil {
				t.Fatal(err)
			}
			vpp.Ask(c, &vppipsec.IpsecSpdAddDel{IsAdd: true, SpdID: 7}, &vppipsec.IpsecSpdAddDelReply{})
			policy := ipsec_types.IpsecSpdEntry{SpdID: 7, SaID: 1, Policy: protect, IsOutbound: true}
			vpp.Ask(c, &vppipsec.IpsecSpdEntryAddDel{IsAdd: true, Entry: policy}, &vppipsec.IpsecSpdEntryAddDelReply{})
			for range 2 { // a second attempt must not take the hold of the policy
				err := h.deleteAssociation(t.Context(), "", v, meta)
				if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), "security association 1 is in use in VPP: a policy of database 7") {
					t.Errorf("the error is %v", err)
				}
			}
			if err := h.deleteDatabase(t.Context(), "", &ipsec.SecurityPolicyDatabase{Index: 7}, struct{}{}); err != nil {
				t.Error(err)
			}
			if err := h.deleteAssociation(t.Context(), "", v, meta); err != nil {
				t.Error(err)
			}
			if left, err := h.readEntries(t.Context()); err != nil || len(left) > 0 {
				t.Errorf("policies are %v, %v", left, err)
			}
			expectAssociations(t, h)
		})
	}
}

// expectAssociations checks the numbers of the associations in VPP.
func expectAssociations(t *testing.T, h *handler, want ...uint32) {
	t.Helper()
	var got []uint32
	for f, err := range h.retrieveAssociations(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, f.Value.GetIndex())
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("associations are %v; expected %v", got, want)
	}
}

// TestAssociationWithoutUsers has VPP keep holds of requests that it refuses: the association goes
// nevertheless.
func TestAssociationWithoutUsers(t *testing.T) {
	for _, release := range simulated.Releases() {
		t.Run(release, func(t *testing.T) {
			h, vpp := onVPP(t, release)
			v := testkit.Parse[*ipsec.SecurityAssociation](t, `index: 1 `+cbc(``))
			meta, err := h.createAssociation(t.Context(), "", v)
			if err != nil {
				t.Fatal(err)
			}
			link, _ := h.Interfaces.Get("if1")
			for range 3 {
				q := &vppipsec.IpsecTunnelProtectUpdate{Tunnel: vppipsec.IpsecTunnelProtect{SwIfIndex: link.SwIfIndex(), SaOut: 9, SaIn: []uint32{1}}}
				if err := vpp.Dial().Call(t.Context(), q, &vppipsec.IpsecTunnelProtectUpdateReply{}); !errors.Is(err, api.INVALID_VALUE) {
					t.Fatal(err)
				}
			}
			if err := h.deleteAssociation(t.Context(), "", v, meta); err != nil {
				t.Error(err)
			}
			expectAssociations(t, h)
		})
	}
}

// TestManyAssociations deletes many at once, beside one that is in use: few dumps tell who uses them.
func TestManyAssociations(t *testing.T) {
	h, vpp := onVPP(t, simulated.Newest())
	var values []scheduler.Desired[*ipsec.SecurityAssociation]
	for n := range 200 {
		values = append(values, scheduler.Desired[*ipsec.SecurityAssociation]{Value: testkit.Parse[*ipsec.SecurityAssociation](t, fmt.Sprint("index: ", n, " ", cbc(``)))})
	}
	for _, one := range h.createAssociations(t.Context(), values) {
		if one.Err != nil {
			t.Fatal(one.Err)
		}
	}
	again := h.createAssociations(t.Context(), values[:2]) // as after a lost answer
	for _, one := range again {
		if one.Err != nil {
			t.Error(one.Err)
		}
	}
	vpp.Watch()
	<-h.users.turn // somebody else reads
	errs := make(chan error)
	for _, w := range values {
		go func() { errs <- h.deleteAssociation(t.Context(), "", w.Value, Meta{}) }()
	}
	h.users.turn <- struct{}{}
	for range values {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	expectAssociations(t, h)
}

func TestDatabaseConforms(t *testing.T) {
	d := func(text string) *ipsec.SecurityPolicyDatabase {
		return testkit.Parse[*ipsec.SecurityPolicyDatabase](t, text)
	}
	var h *handler
	existing.Conforms(t, func(t *testing.T, release string) scheduler.Descriptor[*ipsec.SecurityPolicyDatabase, struct{}] {
		h, _ = onVPP(t, release)
		return h.databaseDescriptor()
	}, conformance.Suite[*ipsec.SecurityPolicyDatabase, struct{}]{
		Parts: func(t *testing.T, _ scheduler.Desired[*ipsec.SecurityPolicyDatabase], _ struct{}, parts []scheduler.KeyValue) {
			for _, part := range parts {
				if err := h.bind(t.Context(), part.Key); err != nil {
					t.Fatal(err)
				}
			}
		},
		Values: []scheduler.Desired[*ipsec.SecurityPolicyDatabase]{
			{Value: d(`index: 0`)},
			{Value: d(`index: 4294967295 interfaces: { name: "if1" }`)},
			{Value: d(`index: 3 interfaces: { name: "if2" }`)},
		},
		Changes: []conformance.Change[*ipsec.SecurityPolicyDatabase]{
			{Name: "interfaces", From: d(`index: 1`), To: d(`index: 1 interfaces: { name: "if1" }`), How: conformance.Unchanged},
		},
		Invalid: []conformance.Invalid[*ipsec.SecurityPolicyDatabase]{
			{Name: "interfaces", Value: d(`interfaces: {} interfaces: { name: "a" } interfaces: { name: "a" }`), Fields: []string{"interfaces[0].name", "interfaces[2].name"}},
			{Name: "policies", Value: d(`index: 5 policy_entries: {} policy_entries: { sa_index: 1 }`), Fields: []string{"policy_entries[0]", "policy_entries[1]"}},
		},
	})
	err := validateDatabase("", d(`index: 5 policy_entries: {}`))
	if err == nil || !strings.Contains(err.Error(), "a SecurityPolicy (vppConfig.ipsecSps) with spdIndex 5") {
		t.Errorf("the error does not tell how to declare it: %v", err)
	}
}

func TestInterfaceConforms(t *testing.T) {
	part := func(name string) scheduler.Desired[*ipsec.SecurityPolicyDatabase_Interface] {
		return scheduler.Desired[*ipsec.SecurityPolicyDatabase_Interface]{
			Key: keys.SPDMembers.Key(7, name), Value: testkit.Parse[*ipsec.SecurityPolicyDatabase_Interface](t, `name: "`+name+`"`),
		}
	}
	existing.Conforms(t, func(t *testing.T, release string) scheduler.Descriptor[*ipsec.SecurityPolicyDatabase_Interface, struct{}] {
		h, _ := onVPP(t, release)
		if _, err := h.createDatabase(t.Context(), "", &ipsec.SecurityPolicyDatabase{Index: 7}); err != nil {
			t.Fatal(err)
		}
		return h.interfaceDescriptor()
	}, conformance.Suite[*ipsec.SecurityPolicyDatabase_Interface, struct{}]{
		Values: []scheduler.Desired[*ipsec.SecurityPolicyDatabase_Interface]{part("if1"), part("if2")},
		Changes: []conformance.Change[*ipsec.SecurityPolicyDatabase_Interface]{
			{Name: "nothing", Key: part("if1").Key, From: part("if1").Value, To: part("if1").Value, How: conformance.Unchanged},
		},
	})
}

// TestBindingsOfSlots has databases whose slots in VPP's memory differ from the order of their numbers.
func TestBindingsOfSlots(t *testing.T) {
	for _, release := range simulated.Releases() {
		t.Run(release, func(t *testing.T) {
			h, _ := onVPP(t, release)
			set := func(number uint32, do func(*ipsec.SecurityPolicyDatabase) error) {
				t.Helper()
				if err := do(&ipsec.SecurityPolicyDatabase{Index: number}); err != nil {
					t.Fatal(err)
				}
			}
			create := func(v *ipsec.SecurityPolicyDatabase) error {
				_, err := h.createDatabase(t.Context(), "", v)
				return err
			}
			remove := func(v *ipsec.SecurityPolicyDatabase) error { return h.deleteDatabase(t.Context(), "", v, struct{}{}) }
			for _, number := range []uint32{9, 5, 1 << 31} {
				set(number, create)
			}
			set(5, remove)
			set(5, remove) // there is none
			set(77, create)
			for key, name := range map[string]string{keys.SPDMembers.Key(77, "if1"): "if1", keys.SPDMembers.Key(1<<31, "if2"): "if2"} {
				if err := h.bind(t.Context(), key); err != nil {
					t.Fatal(name, err)
				}
			}
			all, err := h.readDatabases(t.Context(), true)
			if err != nil {
				t.Fatal(err)
			}
			got := map[uint32]string{}
			for _, v := range all {
				for _, one := range v.GetInterfaces() {
					got[v.GetIndex()] += one.GetName()
				}
			}
			if len(all) != 3 || len(got) != 2 || got[77] != "if1" || got[1<<31] != "if2" {
				t.Errorf("databases are %v", all)
			}
		})
	}
}

// TestStaleBinding deletes an interface that has a database. The next one with its index gets
// another database.
func TestStaleBinding(t *testing.T) {
	for _, release := range simulated.Releases() {
		t.Run(release, func(t *testing.T) {
			h, vpp := onVPP(t, release)
			for _, number := range []uint32{7, 8} {
				if _, err := h.createDatabase(t.Context(), "", &ipsec.SecurityPolicyDatabase{Index: number}); err != nil {
					t.Fatal(err)
				}
			}
			if err := h.bind(t.Context(), keys.SPDMembers.Key(7, "if1")); err != nil {
				t.Fatal(err)
			}
			was, _ := h.Interfaces.Get("if1")
			c := vpp.Dial()
			vpp.Ask(c, &vppif.DeleteLoopback{SwIfIndex: was.SwIfIndex()}, &vppif.DeleteLoopbackReply{})
			if err := h.unbind(t.Context(), keys.SPDMembers.Key(7, "if1")); err != nil {
				t.Error(err)
			}
			if is := vpp.Loopback(c, "if1"); is != was.SwIfIndex() {
				t.Fatalf("the new interface has index %d, not %d", is, was.Index)
			}
			if err := h.bind(t.Context(), keys.SPDMembers.Key(8, "if1")); err != nil {
				t.Error(err)
			}
			bound, err := h.readBindings(t.Context())
			if err != nil || len(bound) != 1 || !slices.Equal(bound[8], []interface_types.InterfaceIndex{was.SwIfIndex()}) {
				t.Errorf("bound are %v, %v", bound, err)
			}
		})
	}
}

// TestBindingOfOthers has somebody give an interface a database. A declared one takes its place:
// incoming packets go through the declared one alone, also when the other is deleted.
func TestBindingOfOthers(t *testing.T) {
	for _, release := range simulated.Releases() {
		t.Run(release, func(t *testing.T) {
			h, vpp := onVPP(t, release)
			c := vpp.Dial()
			for _, number := range []uint32{8, 7} {
				if _, err := h.createDatabase(t.Context(), "", &ipsec.SecurityPolicyDatabase{Index: number}); err != nil {
					t.Fatal(err)
				}
			}
			at, _ := h.Interfaces.Get("if1")
			vpp.Ask(c, &vppipsec.IpsecInterfaceAddDelSpd{IsAdd: true, SwIfIndex: at.SwIfIndex(), SpdID: 8}, &vppipsec.IpsecInterfaceAddDelSpdReply{})
			for range 2 { // the second time, the answer to the first was lost
				if err := h.bind(t.Context(), keys.SPDMembers.Key(7, "if1")); err != nil {
					t.Fatal(err)
				}
				bound, err := h.readBindings(t.Context())
				if err != nil || len(bound) != 1 || !slices.Equal(bound[7], []interface_types.InterfaceIndex{at.SwIfIndex()}) {
					t.Errorf("bound are %v, %v", bound, err)
				}
				if n := inputsOf(vpp, c, at.InternalName); n != 1 {
					t.Errorf("incoming packets go through %d databases; expected one", n)
				}
			}
			if err := h.unbind(t.Context(), keys.SPDMembers.Key(7, "if1")); err != nil {
				t.Error(err)
			}
			if n := inputsOf(vpp, c, at.InternalName); n != 0 {
				t.Errorf("incoming packets go through %d databases; expected none", n)
			}
		})
	}
}

// inputsOf returns the number of databases that incoming packets of an interface go through.
func inputsOf(vpp *simulated.VPP, c *conn.Conn, link string) (n int) {
	vpp.Helper()
	if vpp.Sim == nil {
		return strings.Count(vpp.Command(c, "show interface features "+link), "ipsec4-input-feature")
	}
	for line := range strings.Lines(vpp.Show("show ipsec spd inputs")) {
		if words := strings.Fields(line); words[0] == link {
			n = len(words) - 1
		}
	}
	return n
}
