package agent

import (
	"slices"
	"syscall"
	"testing"

	"github.com/keyplane/keyplane/internal/testkit"
)

// An agent that is to remove its items says that it has when it has: where its connection to VPP breaks meanwhile, it goes
// on with another one, and where VPP does not answer any more, it says what is left.
func TestRemovalWhoseConnectionBreaks(t *testing.T) {
	for name, c := range map[string]struct {
		then     testkit.Mode
		timeout  string
		code     int
		said     string
		everyone bool // VPP has nothing of the agent
	}{
		"and comes back": {testkit.Pass, "5m", 0, "network removed", true},
		"and stays away": {testkit.BlackHole, "4s", 1, "items are left.*config/vpp/", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRestartRig(t)
			t.Setenv("ON_EXIT", "remove")
			t.Setenv("STOP_TIMEOUT", c.timeout)
			before := r.interfaces()
			r.start(nil)
			r.declare("testdata/restarts.yaml")
			r.settled()
			r.toVPP.Slow(100_000)
			r.sim.Counts()
			r.check(r.agent.Process.Signal(syscall.SIGTERM))
			r.await("VPP has been told to remove something", func() bool { return len(changesIn(r.sim.Counts())) > 0 })
			r.toVPP.Set(testkit.Drop)
			r.toVPP.Slow(0)
			r.toVPP.Set(c.then)
			_ = r.agent.Wait()
			code := r.agent.ProcessState.ExitCode()
			r.agent = nil
			if code != c.code {
				t.Errorf("the exit code is %d, want %d", code, c.code)
			}
			r.said(c.said)
			if left := r.interfaces(); slices.Equal(left, before) != c.everyone {
				t.Errorf("VPP has %q", left)
			}
		})
	}
}
