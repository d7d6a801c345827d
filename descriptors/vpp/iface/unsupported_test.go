package iface

import (
	"strings"
	"testing"

	vppif "go.fd.io/govpp/binapi/interface"
	vppl2 "go.fd.io/govpp/binapi/l2"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/conformance"
)

// TestWhatNoValueCanBe has somebody make and tag an interface of a sort that is none of ours:
// it is theirs, and who declares its name is told why it cannot be replaced.
func TestWhatNoValueCanBe(t *testing.T) {
	h, vpp := onVPP(t, simulated.Newest())
	c := vpp.Dial()
	var bvi vppl2.BviCreateReply
	vpp.Ask(c, &vppl2.BviCreate{UserInstance: ^uint32(0)}, &bvi)
	vpp.Ask(c, &vppif.SwInterfaceTagAddDel{IsAdd: true, SwIfIndex: bvi.SwIfIndex, Tag: "theirs"}, &vppif.SwInterfaceTagAddDelReply{})
	declared := []scheduler.Desired[*interfaces.Interface]{{Value: testkit.Parse[*interfaces.Interface](t, `name: "theirs" type: SOFTWARE_LOOPBACK`)}}
	for _, wanted := range [][]scheduler.Desired[*interfaces.Interface]{nil, declared} {
		seen := false
		for f, err := range conformance.Taken(h.retrieve(t.Context(), wanted)) {
			if err != nil {
				t.Fatal(err)
			}
			if f.Value.GetName() != "theirs" {
				continue
			}
			if seen = true; f.Foreign != (wanted == nil) {
				t.Errorf("with %v declared it is %+v", wanted, f)
			}
			if err := h.delete(t.Context(), "", f.Value, f.Meta); err == nil || !strings.Contains(err.Error(), "theirs: VPP has bvi0 there, a BVI") {
				t.Errorf("it is deleted with %v", err)
			}
		}
		if !seen {
			t.Error("it is not found")
		}
	}
}
