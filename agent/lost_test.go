package agent

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/keyplane/keyplane/internal/scratch"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/vppsim"
	"github.com/keyplane/keyplane/statestore"
)

const portKey = "config/linux/interfaces/v2/interface/port"

// standing returns a rig in which everything is applied, and the next messages to VPP are counted.
func standing(t *testing.T) *restartRig {
	t.Helper()
	r := newRestartRig(t)
	r.start(nil)
	r.declare("testdata/restarts.yaml")
	r.settled()
	r.sim.Counts()
	return r
}

// put declares a value in the store.
func (r *restartRig) put(key, value string) {
	r.t.Helper()
	if out, err := r.ctl("kvdb", "--store", "etcd", "put", key, value); err != nil {
		r.t.Fatalf("%v\n%s", err, out)
	}
}

// del deletes a value from the store.
func (r *restartRig) del(keys ...string) {
	r.t.Helper()
	for _, key := range keys {
		if out, err := r.ctl("kvdb", "--store", "etcd", "del", key); err != nil {
			r.t.Fatalf("%v\n%s", err, out)
		}
	}
}

// interfaces returns the tags of the interfaces of VPP. One that exists twice is there twice.
func (r *restartRig) interfaces() []string {
	var tags []string
	for line := range strings.Lines(r.sim.Show("show interface")) {
		if fields := strings.Fields(line); len(fields) > 2 {
			tags = append(tags, fields[2])
		}
	}
	slices.Sort(tags)
	return tags
}

// standsAgain waits until the system is as declared, and checks that VPP has the same interfaces as before.
func (r *restartRig) standsAgain(before []string) {
	r.t.Helper()
	r.agrees()
	if after := r.interfaces(); !slices.Equal(after, before) {
		r.t.Errorf("VPP has %q, and had %q", after, before)
	}
}

// silent checks that nothing has been changed since the last call.
func (r *restartRig) silent(events func() []string) {
	r.t.Helper()
	for _, e := range events() {
		r.t.Error(e)
	}
	if changes := changesIn(r.sim.Counts()); len(changes) > 0 {
		r.t.Errorf("VPP got %v", changes)
	}
}

// portIn returns the Linux side of the TAP in a namespace, or an error.
func portIn(namespace string) (link netlink.Link, err error) {
	err = inNetns(namespace, func() error {
		var err error
		link, err = netlink.LinkByName("eth0")
		return err
	})
	return link, err
}

// A VPP that has restarted while the agent was down has nothing of what the agent remembers. Everything is made
// again, and once.
func TestVPPRestartsWhileTheAgentIsDown(t *testing.T) {
	r := standing(t)
	before := r.interfaces()
	r.stop(syscall.SIGKILL)
	r.check(r.sim.Restart())
	r.start([]string{"chains", "etcd", "vpp"})
	r.standsAgain(before)
}

// The state of a version that did not remember the run of VPP is enough: what VPP reports is as before, and what it does
// not report is set again.
func TestStateOfAnOlderVersion(t *testing.T) {
	for _, how := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(how.String(), func(t *testing.T) {
			r := standing(t)
			r.stop(how)
			settings, err := statestore.Open(filepath.Join(r.dir, "state", "vpp1", "settings"), statestore.Options{})
			r.check(err)
			if saved := maps.Collect(settings.Load()); len(saved["vpp/run"]) == 0 {
				t.Fatalf("the agent has not saved the run of VPP, but %q", saved)
			}
			older := map[string][]byte{"vpp/run": nil, "vpp/flow-hash/false/5": []byte("set"), "vpp/autoconf/auto": nil, "vpp/neighbour-ages": nil}
			r.check(settings.Save(maps.All(older)))
			r.check(settings.Close())
			events := listen(t, "", "red", "blue")
			r.sim.Counts()
			r.start([]string{"chains", "etcd", "vpp"})
			r.agrees()
			counts := r.sim.Counts()
			for _, unreported := range []string{"set_ip_flow_hash_v2", "ip6_nd_address_autoconfig"} {
				if counts[unreported] != 1 {
					t.Errorf("%s was asked for %d times; want once", unreported, counts[unreported])
				}
				delete(counts, unreported)
			}
			if changes := changesIn(counts); len(changes) > 0 {
				t.Errorf("VPP got %v", changes)
			}
			r.silent(events)
		})
	}
}

// A VPP that dies while it is read back at the start of the agent is read back again.
func TestVPPRestartsDuringTheStart(t *testing.T) {
	r := standing(t)
	before := r.interfaces()
	r.stop(syscall.SIGTERM)
	r.sim.DieAt(40, false)
	r.launch()
	r.await("VPP has died", func() bool { return r.sim.Deaths() > 0 })
	r.check(r.sim.Restart())
	r.standsAgain(before)
}

// One kind that cannot be read keeps its values from being changed, and no other one.
func TestUnreadableKind(t *testing.T) {
	r := standing(t)
	before := r.interfaces()
	r.stop(syscall.SIGKILL)
	r.sim.Fail("nat44_show_running_config", vppsim.Fault{Retval: -1})
	events := listen(t, "", "red", "blue")
	r.launch()
	// All who tell of values say that it is unknown, why, and since when.
	const since = `20\d\d-\d\d-\d\dT[0-9:]+Z`
	r.shows("nat44-global is PENDING(.|\n)*cannot be read(.|\n)*since "+since, "explain", "config/vpp/nat/v2/nat44-global")
	const nobody = `nobody knows which values exist of vpp-nat44-global(.|\n)*it cannot be read back(.|\n)*since ` + since
	r.shows(nobody, "plan", "testdata/restarts.yaml")
	r.shows(nobody, "drift")
	r.shows(nobody, "connections")
	r.shows("nat44-global is PENDING(.|\n)*unknown since "+since, "status") // it asks for the readiness
	code, metrics := r.get("/metrics")
	for _, want := range []string{`keyplane_connection_unknown_kinds\{connection="vpp"\} [1-9]`, `keyplane_connection_unknown_since_timestamp_seconds\{connection="vpp"\} [1-9]`} {
		if !regexp.MustCompile(want).MatchString(metrics) {
			t.Errorf("the metrics, with status %d, lack %s", code, want)
		}
	}
	r.silent(events)
	r.put("config/vpp/v2/interfaces/late", `{"name":"late","type":"SOFTWARE_LOOPBACK"}`)
	r.shows("late is CONFIGURED", "explain", "config/vpp/v2/interfaces/late")
	r.sim.Counts()
	r.sim.Fail("nat44_show_running_config", vppsim.Fault{})
	r.agrees()
	r.silent(events)
	if after := r.interfaces(); !slices.Equal(after, slices.Sorted(slices.Values(append(before, "late")))) {
		t.Errorf("VPP has %q, and had %q before late was declared", after, before)
	}
}

// A VPP that does not answer for a while loses nothing, and no container loses its link.
func TestSilentVPP(t *testing.T) {
	r := standing(t)
	events := listen(t, "", "red", "blue")
	resume := r.sim.Hang()
	r.said("connection lost; its values wait")
	r.shows("port is CONFIGURED", "explain", portKey)
	resume()
	r.said("connection lost; its values wait.*Description: vpp: ready.*? took ")
	r.agrees()
	r.silent(events)
}

// Edits during a long absence of VPP take effect when it answers again, those of Linux at once.
func TestEditsWhileVPPIsAway(t *testing.T) {
	r := standing(t)
	resume := r.sim.Hang()
	r.said("connection lost; its values wait")
	r.del("config/vpp/v2/interfaces/in-blue", "config/vpp/v2/route/if/in-blue/vrf/5/dst/10.4.0.0/16/gw/10.3.0.2")
	r.put("config/vpp/v2/interfaces/late", `{"name":"late","type":"SOFTWARE_LOOPBACK"}`)
	r.del("config/linux/interfaces/v2/interface/a", "config/linux/interfaces/v2/interface/b")
	r.await("the VETH is deleted", func() bool {
		_, err := netlink.LinkByName("veth-a")
		return err != nil
	})
	r.shows("in-blue is PENDING", "explain", "config/vpp/v2/interfaces/in-blue")
	resume()
	r.await("VPP is as declared", func() bool {
		got := r.interfaces()
		return slices.Contains(got, "late") && !slices.Contains(got, "in-blue") && !slices.Contains(got, "uplink")
	})
	if _, err := portIn("red"); err != nil {
		t.Errorf("the link of the container: %v", err)
	}
	counts := r.sim.Counts()
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if strings.HasPrefix(name, "tap_") && !questions.MatchString(name) {
			t.Errorf("VPP got %s", name)
		}
	}
}

// The Linux side of a TAP that somebody deletes comes back with the TAP. If it is deleted again and again, the
// agent waits.
func TestLinuxSideDeleted(t *testing.T) {
	r := standing(t)
	before := r.interfaces()
	remove := func() {
		link, err := portIn("red")
		if err == nil {
			err = scratch.InNetns("red", func() error { return netlink.LinkDel(link) })
		}
		r.check(err)
		r.await("the link of the container is made again", func() bool {
			again, err := portIn("red")
			return err == nil && again.Attrs().Index != link.Attrs().Index || r.waitsFor(portKey)
		})
	}
	remove()
	r.standsAgain(before)
	deletions := 1
	for ; !r.waitsFor(portKey); deletions++ {
		if deletions == 20 {
			t.Fatal("the agent makes the link again at once, however often somebody deletes it")
		}
		r.shows("is CONFIGURED", "explain", portKey)
		remove()
	}
	t.Logf("%d deletions", deletions)
	r.said("somebody else removes a value repeatedly")
	r.agrees() // the pause ends
}

// waitsFor reports that the agent waits before it makes a value again that somebody else has removed.
func (r *restartRig) waitsFor(key string) bool {
	out, _ := r.ctl("explain", key)
	return strings.Contains(out, "somebody else removes it repeatedly")
}

// A container that gets a new namespace gets the link of its TAP again.
func TestNamespaceMadeAgain(t *testing.T) {
	r := standing(t)
	before := r.interfaces()
	r.check(scratch.DelNetns("red"))
	r.shows("port is PENDING", "explain", portKey)
	r.check(scratch.AddNetns("red"))
	r.await("the link is in the new namespace", func() bool {
		_, err := portIn("red")
		return err == nil
	})
	r.standsAgain(before)
}

// openNetns makes a namespace for the time of the test, and opens it.
func openNetns(t *testing.T, name string) *os.File {
	t.Helper()
	namespace, err := os.Open(testkit.Netns(t, name) + "/" + name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { namespace.Close() })
	return namespace
}

// moveTo has another program move the Linux side of the TAP to another namespace.
func (r *restartRig) moveTo(namespace *os.File) {
	r.t.Helper()
	r.check(scratch.InNetns("red", func() error {
		link, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		return netlink.LinkSetNsFd(link, int(namespace.Fd()))
	}))
}

// A link that another program has moved is not lost: the agent moves it back from a namespace that has a name.
func TestLinuxSideMoved(t *testing.T) {
	r := standing(t)
	r.moveTo(openNetns(t, "green"))
	r.await("the link is back", func() bool {
		_, err := portIn("red")
		return err == nil
	})
	r.agrees()
	if n := r.sim.Counts()["tap_create_v3"]; n > 0 {
		t.Errorf("the agent has made %d TAPs", n)
	}
}

// The agent makes no second TAP either where it does not see the namespace to which the link was moved.
func TestLinuxSideHidden(t *testing.T) {
	r := standing(t)
	hidden := openNetns(t, "hidden")
	r.check(scratch.DelNetns("hidden")) // it lives on while the test has it open
	r.moveTo(hidden)
	r.shows("port is RETRYING(.|\n)*another program has moved it to a namespace that the agent does not see", "explain", portKey)
	if n := r.sim.Counts()["tap_create_v3"]; n > 0 {
		t.Errorf("the agent has made %d TAPs", n)
	}
}
