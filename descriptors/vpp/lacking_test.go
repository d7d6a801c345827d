package vpp_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/vppsim"
	"github.com/keyplane/keyplane/scheduler"
)

// TestVPPLacks takes away each plugin of VPP in turn, and each message with which the agent reads. What a dump would
// list, VPP has none of; all else is applied. Other messages tell of one item: their kind is not known without them. A
// restart of the agent changes nothing: what is made once is read back, or was not made.
func TestVPPLacks(t *testing.T) {
	full := startFull(t, vppsim.Options{})
	for _, plugin := range full.Sim.Plugins() {
		if !slices.Contains(indispensable, plugin) {
			o := vppsim.Options{Without: []string{plugin}}
			t.Run("without the plugin "+plugin, func(t *testing.T) {
				a, vpp := lacks(t, o, plugin != "ip" && plugin != "vlib")
				a.names(missingPlugin(full, vpp))
			})
		}
	}
	for _, message := range reads(full) {
		if slices.Contains(indispensable, message) {
			continue
		}
		o := vppsim.Options{Lacks: []string{message}}
		t.Run("without the message "+message, func(t *testing.T) { lacks(t, o, strings.HasSuffix(message, "_dump")) })
	}
}

// indispensable are plugins and messages without which there is no connection.
var indispensable = []string{"memclnt", "vpe", "interface", "show_version", "control_ping"}

// startFull starts a VPP to which an agent applies values of all descriptors. The agent has ended.
func startFull(t *testing.T, o vppsim.Options) *simulated.VPP {
	t.Helper()
	testkit.Need(t, "a simulated VPP, which can be told what to do", simulated.Newest() != simulated.Real)
	vpp := simulated.StartWith(t, o)
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	a.want(true, everything(t)...)
	a.stop()
	return vpp
}

// reads returns the messages that a VPP got, and that list something.
func reads(vpp *simulated.VPP) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(vpp.Counts())) {
		if onlyReads(name) && !strings.Contains(name, " ") && !strings.HasPrefix(name, "want_") {
			names = append(names, name)
		}
	}
	return names
}

// TestVPPCannotBeRead has a VPP that runs on, and an agent that starts again and cannot use one of the messages with
// which it reads. Their values are as they were, and nothing is made a second time. Then it can be used again.
func TestVPPCannotBeRead(t *testing.T) {
	full := startFull(t, vppsim.Options{})
	for _, message := range reads(full) {
		if slices.Contains(indispensable, message) {
			continue
		}
		t.Run(message, func(t *testing.T) {
			t.Parallel()
			vpp := simulated.StartWith(t, vppsim.Options{})
			notes := quiet()
			start := func() *agent {
				a := startAgentKnowing(t, vpp.Socket, notes)
				awaitReady(t, a)
				_, _ = a.declare(true, everything(t)...)
				return a
			}
			a := start()
			a.isUnimplemented()
			a.stop()
			before := pages(vpp)
			vpp.Counts()
			for _, strange := range [][]string{{message}, nil} {
				vpp.Sim.Redefine(strange...)
				a := start()
				if strange == nil {
					a.isUnimplemented()
				}
				a.stop()
				expectNoWrites(t, vpp.Counts())
				if after := pages(vpp); after != before {
					t.Errorf("a restart of the agent changed VPP from\n%s\nto\n%s", before, after)
				}
			}
		})
	}
}

// missingPlugin returns the file of the plugin that one VPP has loaded and another one not; empty: both have the same.
func missingPlugin(full, other *simulated.VPP) string {
	files := func(vpp *simulated.VPP) (out []string) {
		for word := range strings.FieldsSeq(vpp.Show("show plugins")) {
			if strings.HasSuffix(word, ".so") {
				out = append(out, word)
			}
		}
		return out
	}
	has := files(other)
	for _, file := range files(full) {
		if !slices.Contains(has, file) {
			return file
		}
	}
	return ""
}

// names checks that each value that VPP cannot have says which plugin it needs.
func (a *agent) names(file string) {
	a.Helper()
	for _, st := range a.sched.Statuses("") {
		if st.State == scheduler.Unimplemented && !strings.Contains(fmt.Sprint(st.Err), file) {
			a.Errorf("%s is %s: %v; expected the plugin %s", st.Key, st.State, st.Err, file)
		}
	}
}

// lacks applies values to a VPP, and starts the agent again, which it returns. If all is readable, every kind is known.
func lacks(t *testing.T, o vppsim.Options, readable bool) (*agent, *simulated.VPP) {
	t.Helper()
	t.Parallel()
	vpp := simulated.StartWith(t, o)
	notes := quiet()
	a := startAgentKnowing(t, vpp.Socket, notes)
	awaitReady(t, a)
	_, _ = a.declare(true, everything(t)...) // what VPP lacks fails
	a.isUnimplemented()
	a.stop()
	before := pages(vpp)
	vpp.Counts()
	again := startAgentKnowing(t, vpp.Socket, notes)
	awaitReady(t, again)
	if record, _ := again.declare(true, everything(t)...); readable && len(record.RefreshErrors) > 0 {
		t.Errorf("not read back: %v", record.RefreshErrors)
	}
	again.isUnimplemented()
	expectNoWrites(t, vpp.Counts())
	if after := pages(vpp); after != before {
		t.Errorf("a restart of the agent changed VPP from\n%s\nto\n%s", before, after)
	}
	return again, vpp
}

// isUnimplemented checks that all values are known, and that none is retried in vain.
func (a *agent) isUnimplemented() {
	a.Helper()
	for _, st := range a.sched.Statuses("") {
		switch st.State {
		case scheduler.Configured, scheduler.Obtained, scheduler.Unimplemented, scheduler.Pending:
		default:
			a.Errorf("%s is %s: %v", st.Key, st.State, st.Err)
		}
	}
}
