package iface

import (
	"errors"
	"strings"
	"testing"

	vppif "go.fd.io/govpp/binapi/interface"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface/internal/kinds"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// TestNeedsMAC has a DHCP client and a bond ask for interfaces of several types, and for their
// sub-interfaces. VPP dies if such an interface has no MAC address, so the agent does not ask it.
func TestNeedsMAC(t *testing.T) {
	const ends = `src_addr: "10.0.0.1" dst_addr: "10.0.0.2" `
	for name, of := range map[string]struct {
		value string
		has   bool
	}{
		"loopback":  {`type: SOFTWARE_LOOPBACK`, true},
		"memif":     {`type: MEMIF memif: { id: 5 }`, true},
		"GRE TEB":   {`type: GRE_TUNNEL gre: { tunnel_type: TEB ` + ends + `}`, true},
		"IP memif":  {`type: MEMIF memif: { id: 6 mode: IP }`, false},
		"GRE L3":    {`type: GRE_TUNNEL gre: { tunnel_type: L3 ` + ends + `}`, false},
		"IPIP":      {`type: IPIP_TUNNEL ipip: { ` + ends + `}`, false},
		"IPsec":     {`type: IPSEC_TUNNEL ipsec: {}`, false},
		"WireGuard": {`type: WIREGUARD_TUNNEL wireguard: { private_key: "AAECAwQFBgcICQoLDA0ODw8ODQwLCgkIBwYFBAMCAQA=" src_addr: "10.0.0.1" }`, false},
		"TUN":       {`type: TAP tap: { host_if_name: "lin1" enable_tunnel: true }`, false},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.Need(t, "/dev/vhost-net, or a simulated VPP", name != "TUN" || simulated.HasTAPs())
			for _, release := range simulated.Releases() {
				t.Run(release, func(t *testing.T) { needsMAC(t, release, of.value, of.has) })
			}
		})
	}
}

func needsMAC(t *testing.T, release, value string, has bool) {
	h, vpp := onVPP(t, release)
	for _, text := range []string{`name: "bond1" type: BOND_INTERFACE bond: { mode: XOR }`, `name: "if1" enabled: true ` + value} {
		v := testkit.Parse[*interfaces.Interface](t, text)
		meta, err := h.create(t.Context(), "", v)
		if missing, ok := errors.AsType[*conn.Missing](err); ok {
			testkit.Need(t, "a VPP with the plugin that serves "+missing.Message, false)
		}
		if err != nil {
			t.Fatal(err)
		}
		h.index.(links)[v.GetName()] = meta
	}
	var sub vppif.CreateVlanSubifReply // VPP makes one even on an interface for IP packets
	vpp.Ask(vpp.Dial(), &vppif.CreateVlanSubif{SwIfIndex: h.index.(links)["if1"].SwIfIndex(), VlanID: 7}, &sub)
	h.index.(links)["sub1"] = Meta{Index: uint32(sub.SwIfIndex)}
	check := func(what, name string, err error) {
		t.Helper()
		if errors.Is(err, scheduler.ErrUnimplemented) {
			return // VPP 22.02 has no leases
		}
		if errors.Is(err, kinds.ErrNoMAC) == has || has && err != nil || !has && !strings.Contains(err.Error(), name) {
			t.Errorf("%s %s: the error is %v, and it has a MAC address: %t", what, name, err, has)
		}
	}
	for _, name := range []string{"if1", "sub1"} {
		check("DHCP client of", name, h.setClient(t.Context(), name, true))
		if err := h.setClient(t.Context(), name, false); err != nil && !errors.Is(err, scheduler.ErrUnimplemented) {
			t.Errorf("ending the DHCP client of %s: %v", name, err)
		}
	}
	_, err := h.joinBond(t.Context(), keys.BondMember("bond1", "if1"), &interfaces.BondLink_BondedInterface{Name: "if1"})
	check("member", "if1", err)
	if vpp.Revive() {
		t.Error("VPP has died")
	}
}

// TestMACOfMissingInterface has an interface vanish before the agent reads its MAC address.
func TestMACOfMissingInterface(t *testing.T) {
	h, _ := onVPP(t, simulated.Newest())
	if err := NeedMAC(t.Context(), h.API, "if1", Meta{Index: 4711}, "this test"); !errors.Is(err, kinds.ErrNotThere) || !strings.Contains(err.Error(), "if1") {
		t.Errorf("the error is %v", err)
	}
	if err := NeedMAC(t.Context(), h.API, "local0", Meta{}, "this test"); !errors.Is(err, kinds.ErrNoMAC) {
		t.Errorf("the error of local0 is %v", err)
	}
}

// TestIgnoredFields normalizes values with fields that have no effect on their type.
func TestIgnoredFields(t *testing.T) {
	const mac, ends = `phys_address: "02:00:00:00:00:01" `, `src_addr: "10.0.0.1" dst_addr: "10.0.0.2" `
	for text, want := range map[string]string{
		`type: GRE_TUNNEL gre: { tunnel_type: L3 session_id: 5 ` + ends + `}`:     "gre.session_id",
		`type: GRE_TUNNEL gre: { tunnel_type: TEB session_id: 5 ` + ends + `}`:    "gre.session_id",
		`type: GRE_TUNNEL gre: { tunnel_type: ERSPAN session_id: 5 ` + ends + `}`: "",
		`type: TAP tap: { enable_tunnel: true } ` + mac:                           "phys_address",
		`type: TAP tap: {} ` + mac:                                                "",
		`type: MEMIF memif: { mode: IP } ` + mac:                                  "phys_address",
		`type: MEMIF memif: {} ` + mac:                                            "",
	} {
		v := testkit.Parse[*interfaces.Interface](t, `name: "if1" `+text)
		out, warnings := normalize("", v)
		field, _, _ := strings.Cut(strings.Join(warnings, "\n"), ":")
		if field != want {
			t.Errorf("%s: the warnings are %q; expected one about %q", text, warnings, want)
		}
		if has := out.GetPhysAddress() != "" || out.GetGre().GetSessionId() != 0; has != (want == "") {
			t.Errorf("%s is normalized to %v", text, out)
		}
	}
}
