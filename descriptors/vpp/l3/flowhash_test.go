package l3

import (
	"strings"
	"testing"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/vppsim"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l3"
	"github.com/keyplane/keyplane/scheduler"
)

// TestFlowHashThatWasRefused has VPP refuse the flow hash of a table: the table counts as different
// until the hash is set. The same holds in a new run of VPP.
func TestFlowHashThatWasRefused(t *testing.T) {
	h, vpp := onVPP(t, simulated.Newest())
	testkit.Need(t, "a simulated VPP, which can be told to refuse", vpp.Sim != nil)
	run := "the first"
	h = newHandler(Options{API: h.API, Run: func() string { return run }})
	d, c := h.vrfDescriptor(), vpp.Dial()
	plain, hashed := &l3.VrfTable{Id: 8}, testkit.Parse[*l3.VrfTable](t, `id: 8 flow_hash_settings: { use_src_ip: true }`)
	differs := func(when string, v *l3.VrfTable, want bool) {
		t.Helper()
		for f, err := range d.Retrieve(t.Context(), []scheduler.Desired[*l3.VrfTable]{{Value: v}}) {
			if err != nil || f.Value.GetId() == v.GetId() && d.Equivalent("", f.Value, v) == want {
				t.Errorf("%s: VPP has %v, %v; expected a difference to %v: %t", when, f.Value, err, v, want)
			}
		}
	}
	refuse := func(do func() error) {
		t.Helper()
		vpp.Sim.Fail("set_ip_flow_hash_v2", vppsim.Fault{Retval: -1})
		if do() == nil {
			t.Error("it was not refused")
		}
		vpp.Sim.Fail("set_ip_flow_hash_v2", vppsim.Fault{})
	}
	update := func(from, to *l3.VrfTable) error {
		_, err := d.Update(t.Context(), "", from, to, struct{}{})
		return err
	}
	refuse(func() error { _, err := d.Create(t.Context(), "", hashed); return err })
	differs("refused at the creation", hashed, true)
	if err := update(plain, hashed); err != nil {
		t.Fatal(err)
	}
	differs("set", hashed, false)
	refuse(func() error { return update(hashed, plain) })
	differs("the reset is refused", plain, true)
	if err := update(hashed, plain); err != nil {
		t.Fatal(err)
	}
	differs("reset", plain, false)
	if text := vpp.Command(c, "show ip fib table 8 summary"); !strings.Contains(text, "[src dst sport dport proto flowlabel ]") {
		t.Errorf("VPP has\n%s", text)
	}
	if err := update(plain, hashed); err != nil {
		t.Fatal(err)
	}
	run = "the next"
	differs("in a new run of VPP", hashed, true)
}
