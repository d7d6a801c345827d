package ipsec

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.fd.io/govpp/binapi/ipip"
	vppipsec "go.fd.io/govpp/binapi/ipsec"
	"go.fd.io/govpp/binapi/tunnel_types"

	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/existing"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/proto/ligato/vpp/ipsec"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/conformance"
)

// Ends of the tunnels in these tests.
const (
	ipipEnds = `tunnel_src_addr: "10.0.0.1" tunnel_dst_addr: "10.0.0.2"`
	inTunnel = 9 // the number of an association in tunnel mode
)

// withTunnels returns a handler for a VPP with the associations 1 to 6 in transport mode and inTunnel in
// tunnel mode, and with tunnels: ipip1 and ipsec1 are point-to-point, ipsec2 is not.
func withTunnels(t *testing.T, release string) (*handler, *simulated.VPP) {
	t.Helper()
	h, vpp := onVPP(t, release)
	c, all := vpp.Dial(), h.Interfaces.(existing.Interfaces)
	for name, mode := range map[string]tunnel_types.TunnelMode{"ipsec1": tunnel_types.TUNNEL_API_MODE_P2P, "ipsec2": tunnel_types.TUNNEL_API_MODE_MP} {
		var r vppipsec.IpsecItfCreateReply
		vpp.Ask(c, &vppipsec.IpsecItfCreate{Itf: vppipsec.IpsecItf{UserInstance: ^uint32(0), Mode: mode}}, &r)
		all[name] = iface.Meta{Index: uint32(r.SwIfIndex), DevType: ipsecDevice}
	}
	a := testkit.Parse[*ipsec.SecurityAssociation](t, ipipEnds)
	ends := associationOf(a)
	var r ipip.IpipAddTunnelReply
	vpp.Ask(c, &ipip.IpipAddTunnel{Tunnel: ipip.IpipTunnel{Instance: ^uint32(0), Src: vppwire.Address(ends.from), Dst: vppwire.Address(ends.to)}}, &r)
	all["ipip1"] = iface.Meta{Index: uint32(r.SwIfIndex), DevType: ipipDevice}
	for number, more := range map[int]string{1: "", 2: "", 3: "", 4: "", 5: "", 6: "", inTunnel: ipipEnds} {
		meta, err := h.createAssociation(t.Context(), "", testkit.Parse[*ipsec.SecurityAssociation](t, fmt.Sprint("index: ", number, " ", cbc(more))))
		if err != nil {
			t.Fatal(err)
		}
		h.associations.(known)[fmt.Sprint(number)] = meta
	}
	return h, vpp
}

func TestProtectionConforms(t *testing.T) {
	p := func(text string) *ipsec.TunnelProtection {
		return testkit.Parse[*ipsec.TunnelProtection](t, text)
	}
	change := func(name, from, to string, how conformance.How) conformance.Change[*ipsec.TunnelProtection] {
		return conformance.Change[*ipsec.TunnelProtection]{Name: name, From: p(`interface: "ipip1" ` + from), To: p(`interface: "ipip1" ` + to), How: how}
	}
	existing.Conforms(t, func(t *testing.T, release string) scheduler.Descriptor[*ipsec.TunnelProtection, struct{}] {
		h, _ := withTunnels(t, release)
		return h.protectionDescriptor()
	}, conformance.Suite[*ipsec.TunnelProtection, struct{}]{
		Values: []scheduler.Desired[*ipsec.TunnelProtection]{
			{Value: p(`interface: "ipip1" sa_out: 1 sa_in: 2`)},
			{Value: p(`interface: "ipsec1" sa_out: 9 sa_in: 2 sa_in: 1 sa_in: 3 sa_in: 4`)},
			{Value: p(`interface: "ipsec2" sa_out: 9 sa_in: 5 next_hop_addr: "10.0.0.9"`)},
			{Value: p(`interface: "ipsec2" sa_out: 9 sa_in: 6 next_hop_addr: "FD00::9"`)},
		},
		Changes: []conformance.Change[*ipsec.TunnelProtection]{
			change("outbound", `sa_out: 1 sa_in: 2`, `sa_out: 3 sa_in: 2`, conformance.Updated),
			change("inbound", `sa_out: 1 sa_in: 2`, `sa_out: 1 sa_in: 3 sa_in: 4`, conformance.Updated),
			change("order", `sa_out: 1 sa_in: 2 sa_in: 3`, `sa_out: 1 sa_in: 3 sa_in: 2`, conformance.Unchanged),
		},
		Invalid: []conformance.Invalid[*ipsec.TunnelProtection]{
			{Name: "nothing", Value: &ipsec.TunnelProtection{}, Fields: []string{"interface", "sa_out", "sa_in"}},
			{Name: "associations", Value: p(`interface: "a" sa_out: 1 sa_out: 2 sa_in: 1 sa_in: 2 sa_in: 3 sa_in: 4 sa_in: 2`), Fields: []string{"sa_out", "sa_in", "sa_in[4]"}},
			{Name: "next hop", Value: p(`interface: "a" sa_out: 1 sa_in: 1 next_hop_addr: "x"`), Fields: []string{"next_hop_addr"}},
			{Name: "no next hop", Value: p(`interface: "a" sa_out: 1 sa_in: 1 next_hop_addr: "::"`), Fields: []string{"next_hop_addr"}},
		},
	})
}

// TestProtectionsThatVPPMustNotSee has requests after which VPP would keep holds of associations: they
// are refused before, and all associations can be deleted.
func TestProtectionsThatVPPMustNotSee(t *testing.T) {
	for _, release := range simulated.Releases() {
		t.Run(release, func(t *testing.T) {
			h, _ := withTunnels(t, release)
			for _, tt := range []struct{ text, want string }{
				{`interface: "if1" sa_out: 1 sa_in: 2`, "interface if1 is a Loopback; expected a tunnel of type IPSEC_TUNNEL, IPIP_TUNNEL or GRE_TUNNEL"},
				{`interface: "ipip1" sa_out: 77 sa_in: 2`, "security association 77: does not exist in VPP"},
				{`interface: "ipip1" sa_out: 1 sa_in: 78`, "security association 78: does not exist in VPP"},
				{`interface: "ipip9" sa_out: 1 sa_in: 2`, "interface ipip9: does not exist in VPP"},
				{`interface: "ipsec1" sa_out: 1 sa_in: 2`, "sa_out: security association 1 has no tunnel_src_addr"},
				{`interface: "ipip1" sa_out: 1 sa_in: 2 next_hop_addr: "10.0.0.9"`, "next_hop_addr: interface ipip1 is a point-to-point tunnel"},
				{`interface: "ipsec1" sa_out: 9 sa_in: 2 next_hop_addr: "10.0.0.9"`, "next_hop_addr: interface ipsec1 is a point-to-point tunnel"},
			} {
				_, err := h.createProtection(t.Context(), "", testkit.Parse[*ipsec.TunnelProtection](t, tt.text))
				if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
					t.Errorf("%s: %v; expected %s", tt.text, err, tt.want)
				}
			}
			if all, err := h.readProtections(t.Context(), true); err != nil || len(all) > 0 {
				t.Errorf("protections are %v, %v", all, err)
			}
			// Somebody else deletes an association that the agent knows.
			h.associations.(known)["77"] = Meta{}
			_, err := h.createProtection(t.Context(), "", testkit.Parse[*ipsec.TunnelProtection](t, `interface: "ipip1" sa_out: 77 sa_in: 2`))
			if !errors.Is(err, iface.ErrNotFound) {
				t.Errorf("the error is %v", err)
			}
			for number := range h.associations.(known) {
				if err := h.deleteAssociation(t.Context(), "", testkit.Parse[*ipsec.SecurityAssociation](t, `index: `+number), Meta{}); err != nil {
					t.Error(err)
				}
			}
			expectAssociations(t, h)
		})
	}
}
