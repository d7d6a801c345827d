package l2

import (
	"testing"

	"github.com/keyplane/keyplane/proto/ligato/vpp/l2"
)

// TestEntryLeavesBeforeItsBridgeDomain: an entry waits for its bridge domain, directly or by the
// membership of its interface. Otherwise both could be deleted at the same time.
func TestEntryLeavesBeforeItsBridgeDomain(t *testing.T) {
	const domain, member = "config/vpp/l2/v2/bridge-domain/bd1", "vpp/bd/bd1/interface/lo1"
	for name, test := range map[string]struct {
		entry *l2.FIBEntry
		want  string
	}{
		"forwards":              {&l2.FIBEntry{BridgeDomain: "bd1", OutgoingInterface: "lo1"}, member},
		"drops":                 {&l2.FIBEntry{BridgeDomain: "bd1", Action: l2.FIBEntry_DROP}, domain},
		"drops at an interface": {&l2.FIBEntry{BridgeDomain: "bd1", OutgoingInterface: "lo1", Action: l2.FIBEntry_DROP}, domain},
		"of a lost interface":   {&l2.FIBEntry{BridgeDomain: "bd1"}, domain},
	} {
		t.Run(name, func(t *testing.T) {
			deps := fibDependencies("", test.entry)
			if len(deps) != 1 || deps[0].Key != test.want {
				t.Errorf("the entry depends on %+v; expected %s", deps, test.want)
			}
		})
	}
}
