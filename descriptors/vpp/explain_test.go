package vpp_test

import (
	"strings"
	"testing"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/explain"
)

// Each explanation of a value that waits ends at something that people can declare, or that VPP or the host has.
func TestExplanationsEndAtWhatIsDeclared(t *testing.T) {
	vpp := simulated.Start(t, simulated.Newest())
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	for key, value := range everythingBy(t) { // each of them without the others
		if _, err := a.declare(true, key, value); err != nil {
			continue // such as one that this VPP lacks
		}
		for _, st := range a.sched.Statuses("") {
			if st.State != scheduler.Pending {
				continue
			}
			for _, root := range explain.Roots(a.sched, []string{st.Key}, 9)[st.Key] {
				if strings.HasPrefix(root.Key, "vpp/") {
					t.Errorf("the explanation of %s ends at %s:\n%s", st.Key, root.Key, explain.Key(a.sched, st.Key))
				}
			}
		}
	}
}
