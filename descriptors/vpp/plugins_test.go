package vpp_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/scheduler"
)

// fewPlugins are those of a VPP that lists its plugins and disables the rest.
func fewPlugins() []string { return []string{"memif_plugin.so", "acl_plugin.so", "ping_plugin.so"} }

// TestFewPlugins has a VPP with few plugins. Everything that they and VPP's core have works as with all plugins; the
// rest is UNIMPLEMENTED and names its plugin, or waits for such a value. A restart of the agent changes nothing.
func TestFewPlugins(t *testing.T) {
	full := simulated.Start(t, simulated.Newest())
	vpp := simulated.StartOnly(t, simulated.Newest(), fewPlugins()...)
	vpp.Watch()
	all, notes := everything(t), quiet()
	with, a := startAgentKnowing(t, full.Socket, quiet()), startAgentKnowing(t, vpp.Socket, notes)
	for _, one := range []*agent{with, a} {
		awaitReady(t, one)
		_, _ = one.declare(true, all...) // the states tell how it ended
		one.awaitSettled()
	}
	needs := map[string]string{}
	for _, st := range with.sched.Statuses("") {
		has, known := a.sched.Status(st.Key)
		switch {
		case st.State != scheduler.Configured || !known && st.Base != "": // without its base, a part is not there
		case !known:
			t.Errorf("%s is not known", st.Key)
		case has.State == scheduler.Configured:
		case has.State == scheduler.Pending && len(has.Waits) > 0:
		case has.State == scheduler.Unimplemented && st.Base == "":
			_, file, _ := strings.Cut(fmt.Sprint(has.Err), "has not loaded ")
			needs[st.Key], _, _ = strings.Cut(file, ",")
		default:
			t.Errorf("%s is %s with all plugins, and %s without: %v", st.Key, st.State, has.State, has.Err)
		}
	}
	delete(needs, "config/vpp/v2/interfaces/tap1") // VPP has TAPs in its core before 26.02
	want := map[string]string{
		"config/vpp/abfs/v2/abf/1":                    "abf_plugin.so",
		"config/vpp/dns/v1/dnscache":                  "dns_plugin.so",
		"config/vpp/ipfix/v2/flowprobe-params":        "flowprobe_plugin.so",
		"config/vpp/nat/v2/nat44-global":              "nat_plugin.so",
		"config/vpp/srv6/v2/localsid/fd01::3":         "srv6ad_plugin.so",
		"config/vpp/stn/v2/rule/lan1/ip/10.1.0.1":     "stn_plugin.so",
		"config/vpp/v2/dhcp-proxy/IPv4/rx-vrf/5":      "dhcp_plugin.so",
		"config/vpp/v2/interfaces/wg1":                "wireguard_plugin.so",
		"config/vpp/v2/l3xconnect/lan1/protocol/IPV4": "l3xc_plugin.so",
		"config/vpp/v2/vrrp/lan1/vrid/7":              "vrrp_plugin.so",
	}
	if !maps.Equal(needs, want) {
		t.Errorf("these need plugins: %v; expected %v", needs, want)
	}

	a.stop()
	vpp.Counts()
	again := startAgentKnowing(t, vpp.Socket, notes)
	awaitReady(t, again)
	if record, _ := again.declare(true, all...); len(record.RefreshErrors) > 0 {
		t.Errorf("not read back: %v", record.RefreshErrors)
	}
	expectNoWrites(t, vpp.Counts())
}

// TestPluginIsGone has a VPP that ends and starts again without most of its plugins, and then with all of them. What the
// agent knows of the run before counts no more: each kind is read back, and what this VPP can have is there.
func TestPluginIsGone(t *testing.T) {
	vpp := simulated.Start(t, simulated.Newest())
	a := startAgentKnowing(t, vpp.Socket, quiet())
	awaitReady(t, a)
	_, _ = a.declare(true, everything(t)...) // a real VPP may lack something
	a.awaitSettled()
	before := a.stateOfAll()
	for _, restart := range []func() error{func() error { return vpp.RestartOnly(fewPlugins()...) }, vpp.RestartAll} {
		was := a.readBack()
		if err := restart(); err != nil {
			t.Fatal(err)
		}
		until(t, func() bool { return a.readBack() > was && len(a.sched.Unknown()) == 0 }, func() string {
			return fmt.Sprintf("it is not read back: %v", slices.Sorted(maps.Keys(a.sched.Unknown())))
		})
		a.awaitSettled()
		if record, _ := a.sched.Commit(t.Context(), scheduler.Txn{Refresh: true}); len(record.RefreshErrors) > 0 || len(done(record)) > 0 {
			t.Errorf("a resync does %s, and could not read %v", done(record), record.RefreshErrors)
		}
		for key, state := range a.stateOfAll() {
			if state != before[key] && state != scheduler.Unimplemented && state != scheduler.Pending {
				t.Errorf("%s is %s; expected %s", key, state, before[key])
			}
		}
	}
	if after := a.stateOfAll(); !maps.Equal(after, before) {
		t.Errorf("with all plugins again, the states are\n%v; expected\n%v", after, before)
	}
}

// readBack returns how often VPP was read back since it was connected.
func (a *agent) readBack() (times int) {
	for _, record := range a.sched.History() {
		if strings.Contains(record.Description, "ready") {
			times++
		}
	}
	return times
}

// stateOfAll returns the states of all values that are declared, and of what is made of them.
func (a *agent) stateOfAll() map[string]scheduler.State {
	out := map[string]scheduler.State{}
	for _, st := range a.sched.Statuses("") {
		if st.Desired != nil {
			out[st.Key] = st.State
		}
	}
	return out
}

// awaitSettled waits until every value is applied, waits for another one, or cannot be applied.
func (a *agent) awaitSettled() {
	a.Helper()
	until(a.T, func() bool {
		return !slices.ContainsFunc(a.sched.Statuses(""), func(st *scheduler.Status) bool {
			return st.State == scheduler.Retrying || st.State == scheduler.Missing || st.State == scheduler.Discovered
		})
	}, func() string { return "some value is still retried" })
}

// A bond with LACP needs a plugin that brings no message of its own.
func TestLACPNeedsItsPlugin(t *testing.T) {
	for _, release := range simulated.Releases() {
		t.Run(release, func(t *testing.T) {
			vpp := simulated.StartOnly(t, release, fewPlugins()...)
			a := startAgent(t, vpp.Socket)
			awaitReady(t, a)
			const key, value = "config/vpp/v2/interfaces/bond1", `{"name": "bond1", "type": "BOND_INTERFACE", "enabled": true, "bond": {"id": 1, "mode": "LACP"}}`
			_, err := a.declare(false, key, value)
			if st, _ := a.sched.Status(key); st.State != scheduler.Unimplemented || !errors.Is(err, scheduler.ErrUnimplemented) {
				t.Errorf("it is %s: %v; expected %s", st.State, st.Err, scheduler.Unimplemented)
			}
			const want = "VPP has not loaded lacp_plugin.so, which a bond of mode LACP needs"
			if st, _ := a.sched.Status(key); fmt.Sprint(st.Err) != want {
				t.Errorf("%v; expected %s", st.Err, want)
			}
		})
	}
}
