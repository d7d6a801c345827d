package packaging

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/internal/testkit"
)

// exposure is the most that `systemd-analyze security` may say of the unit, in tenths of its scale from 0 to 10.
const exposure = "25"

// The unit gives the agent no more than it needs, by the measure of systemd.
func TestExposure(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	testkit.Need(t, "systemd-analyze", err == nil)
	out, err := exec.Command(analyze, "security", "--offline=true", "--no-pager", "--threshold="+exposure, "keyplane.service").CombinedOutput()
	if !strings.Contains(string(out), "Overall exposure level") {
		t.Fatalf("%v\n%s", err, out)
	}
	if err != nil {
		t.Errorf("%v: the exposure exceeds %s tenths:\n%s", err, exposure, out)
	}
}
