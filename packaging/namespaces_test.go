package packaging

import (
	"os"
	"strings"
	"testing"
)

// The drop-in takes back each setting of the unit that gives the service a mount namespace of its own
// (systemd.exec(5)).
func TestDropInForNamespaces(t *testing.T) {
	unit, err := os.ReadFile("keyplane.service")
	if err != nil {
		t.Fatal(err)
	}
	dropIn, err := os.ReadFile("keyplane-namespaces.conf")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(unit)) {
		name, _, is := strings.Cut(strings.TrimSpace(line), "=")
		if is && (strings.HasPrefix(name, "Protect") || strings.HasPrefix(name, "Private") || strings.HasSuffix(name, "Paths")) && !strings.Contains(string(dropIn), "\n"+name+"=") {
			t.Errorf("the unit has %s, and the drop-in does not take it back", name)
		}
	}
}
