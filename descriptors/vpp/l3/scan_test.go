package l3

import (
	"slices"
	"testing"

	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l3"
)

// TestLifeOfIPScan has each version follow the one before, and the last one go. Each verb
// is called twice, as after an answer that was lost.
func TestLifeOfIPScan(t *testing.T) {
	const fresh = "ip4 limit 50000 age 0 recycle false\nip6 limit 50000 age 0 recycle false\n"
	for _, release := range []string{"23.06", "25.10"} {
		t.Run(release, func(t *testing.T) {
			h, vpp := onVPP(t, release)
			d := h.scanDescriptor()
			var old *l3.IPScanNeighbor
			for _, step := range []struct{ value, shows string }{
				{`mode: IPV4`, "ip4 limit 50000 age 240 recycle false\nip6 limit 50000 age 0 recycle false\n"},
				{`mode: BOTH stale_threshold: 2`, "ip4 limit 50000 age 120 recycle false\nip6 limit 50000 age 120 recycle false\n"},
				{`mode: IPV6 scan_interval: 9`, "ip4 limit 50000 age 0 recycle false\nip6 limit 50000 age 240 recycle false\n"},
				{`mode: DISABLED`, fresh},
				{`mode: BOTH`, "ip4 limit 50000 age 240 recycle false\nip6 limit 50000 age 240 recycle false\n"},
			} {
				v := testkit.Parse[*l3.IPScanNeighbor](t, step.value)
				for range 2 {
					if _, err := d.Update(t.Context(), "", old, v, struct{}{}); err != nil {
						t.Fatal(err)
					}
				}
				if got := vpp.Sim.Show("show ip neighbor-config"); got != step.shows {
					t.Errorf("%s: VPP has\n%s", step.value, got)
				}
				if found := standing(t, d, v); found == nil || !d.Equivalent("", found, v) {
					t.Errorf("%v stands, want %v", found, v)
				}
				old = v
			}
			if found := standing(t, d); found == nil || !d.Equivalent("", found, old) {
				t.Errorf("nobody declares it, and %v stands, want %v", found, old)
			}
			for range 2 {
				if err := d.Delete(t.Context(), "", old, struct{}{}); err != nil {
					t.Fatal(err)
				}
			}
			if got := vpp.Sim.Show("show ip neighbor-config"); got != fresh {
				t.Errorf("left behind:\n%s", got)
			}
			if found := standing(t, d); found != nil {
				t.Errorf("%v stands, want nothing", found)
			}
		})
	}
}

func TestMeaningOfIPScan(t *testing.T) {
	got := models.Fields(validateScan("", &l3.IPScanNeighbor{Mode: 9, StaleThreshold: 1}))
	slices.Sort(got)
	if want := []string{"mode"}; !slices.Equal(got, want) {
		t.Errorf("refused: %q, want %q", got, want)
	}
}
