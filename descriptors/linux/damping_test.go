package linux_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/keyplane/keyplane/descriptors/linux"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/models"
	vpp "github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// A fight is what another program does again and again. In the texts $N is the number of the fight, and $NS the option of
// ip for its namespace, which is empty for the agent's own one, $T the table of its connected routes, and $R that of the
// declared ones.
type fight struct {
	name     string
	kind     string // of the link
	values   []string
	act      string
	stands   string // this command succeeds when the agent has undone it
	flapping string // the key of the value that waits then
	vrf      bool   // the link is in a VRF
	number   int    // see declare
}

// insists is the number of times within a period after which docs/ownership.md promises that the agent waits.
const (
	insists = 5
	period  = time.Minute
)

// The values of a link of each kind. All of them are on the link x$N, of the interface if$N.
var linkOf = map[string][]string{
	"DUMMY":      {`config/linux/interfaces/v2/interface/if$N {"name":"if$N","type":"DUMMY","host_if_name":"x$N","enabled":true,"mtu":1400,"phys_address":"02:fe:00:00:00:01",$IN$ADDRS}`},
	"VRF_DEVICE": {`config/linux/interfaces/v2/interface/if$N {"name":"if$N","type":"VRF_DEVICE","host_if_name":"x$N","enabled":true,"mtu":1400,"vrf_dev":{"routing_table":1$N},$IN$ADDRS}`},
	"VETH": {
		`config/linux/interfaces/v2/interface/if$N {"name":"if$N","type":"VETH","host_if_name":"x$N","enabled":true,"mtu":1400,"phys_address":"02:fe:00:00:00:01","veth":{"peer_if_name":"peer$N"},$IN$ADDRS}`,
		`config/linux/interfaces/v2/interface/peer$N {"name":"peer$N","type":"VETH","host_if_name":"y$N","enabled":true,"veth":{"peer_if_name":"if$N"},$IN"mtu":1500}`,
	},
	"TAP_TO_VPP": {
		`config/vpp/v2/interfaces/vpp$N {"name":"vpp$N","type":"TAP","tap":{"version":2}}`,
		`config/linux/interfaces/v2/interface/if$N {"name":"if$N","type":"TAP_TO_VPP","host_if_name":"x$N","enabled":true,"mtu":1400,"phys_address":"02:fe:00:00:00:01","tap":{"vpp_tap_if_name":"vpp$N"},$IN$ADDRS}`,
	},
	"LOOPBACK": {`config/linux/interfaces/v2/interface/if$N {"name":"if$N","type":"LOOPBACK","enabled":true,"mtu":1400,$IN$ADDRS}`},
	"EXISTING": {`config/linux/interfaces/v2/interface/if$N {"name":"if$N","type":"EXISTING","host_if_name":"x$N","enabled":true,$ADDRS}`},
}

const addresses = `"ip_addresses":["10.$N.0.1/24","fd00:$N::1/64"]`

// onLink are the values that all links can have on them.
var onLink = []string{
	`config/linux/l3/v2/route/10.1$N.0.0/16/if$N {"outgoing_interface":"if$N","dst_network":"10.1$N.0.0/16","gw_addr":"10.$N.0.2"}`,
	`config/linux/l3/v2/route/fd00:$N:9::/64/if$N {"outgoing_interface":"if$N","dst_network":"fd00:$N:9::/64","gw_addr":"fd00:$N::2"}`,
	`config/linux/l3/v2/arp/if$N/10.$N.0.9 {"interface":"if$N","ip_address":"10.$N.0.9","hw_address":"02:fe:00:00:00:09"}`,
	`config/linux/l3/v2/arp/if$N/fd00:$N::9 {"interface":"if$N","ip_address":"fd00:$N::9","hw_address":"02:fe:00:00:00:09"}`,
}

// fights returns what others can do to the links of all kinds, and to the values on them.
func fights() (all []fight) {
	add := func(kind, name, act, stands, flapping string) {
		values := append(slices.Clone(linkOf[kind]), onLink...)
		switch kind {
		case "LOOPBACK": // no gateway can be there, and no neighbour of IPv4
			values = slices.DeleteFunc(values, func(v string) bool { return strings.HasPrefix(v, "config/linux/l3/v2/arp/if$N/10.") })
			fallthrough
		case "VRF_DEVICE": // its routes are in the main table, and its addresses are not
			for i := range values {
				values[i] = strings.NewReplacer(`,"gw_addr":"10.$N.0.2"`, "", `,"gw_addr":"fd00:$N::2"`, "").Replace(values[i])
			}
		}
		all = append(all, fight{kind + ": " + name, kind, values, act, stands, flapping, false, 0})
	}
	// A kernel before 6.2 renames no link that is up, and the agent sets it up again at once.
	const rename = "until ip $NS link set x$N name z$N 2>/dev/null; do ip $NS link set x$N down; done"
	const link = "config/linux/interfaces/v2/interface/if$N"
	for _, kind := range []string{"VETH", "DUMMY", "VRF_DEVICE", "TAP_TO_VPP"} {
		add(kind, "deleted", "ip $NS link del x$N", "ip $NS neigh show dev x$N nud permanent | grep -q 10.$N.0.9", link)
		add(kind, "down", "ip $NS link set x$N down", "ip $NS -o link show x$N | grep -q ',UP'", link)
		add(kind, "renamed", rename, "ip $NS -o link show x$N | grep -q ',UP'", link)
		add(kind, "MTU", "ip $NS link set x$N mtu 1300", "ip $NS -o link show x$N | grep -q 'mtu 1400'", link)
		if kind != "VRF_DEVICE" {
			add(kind, "MAC address", "ip $NS link set x$N address 02:00:00:00:00:77", "ip $NS -o link show x$N | grep -q 02:fe:00:00:00:01", link)
		}
	}
	add("LOOPBACK", "down", "ip $NS link set lo down", "ip $NS -o link show lo | grep -q ',UP'", link)
	add("LOOPBACK", "MTU", "ip $NS link set lo mtu 1300", "ip $NS -o link show lo | grep -q 'mtu 1400'", link)
	const address, route, neighbour = "linux/interface/if$N/address/static/", "config/linux/l3/v2/route/", "config/linux/l3/v2/arp/if$N/"
	for _, kind := range []string{"VETH", "DUMMY", "VRF_DEVICE", "TAP_TO_VPP", "LOOPBACK", "EXISTING"} {
		has := func(what, text string) string { return "ip $NS " + what + " | grep -q '" + text + "'" }
		v4, v6 := has("-4 addr show x$N", "inet 10.$N.0.1/24"), has("-6 addr show x$N", "inet6 fd00:$N::1/64")
		to4, to6 := has("route show table $R", "^10.1$N.0.0/16.* proto 151"), has("-6 route show table $R", "^fd00:$N:9::/64.* proto 151")
		add(kind, "IPv4 address", "ip $NS addr del 10.$N.0.1/24 dev x$N", v4+" && "+to4, address+"10.$N.0.1/24")
		add(kind, "IPv6 address", "ip $NS addr del fd00:$N::1/64 dev x$N", v6+" && "+to6, address+"fd00:$N::1/64")
		if kind != "LOOPBACK" {
			add(kind, "connected route", "ip $NS route del 10.$N.0.0/24 dev x$N table $T", has("route show table $T", "^10.$N.0.0/24")+" && "+to4, address+"10.$N.0.1/24")
		}
		add(kind, "IPv4 route", "ip $NS route del 10.1$N.0.0/16 table $R", to4, route+"10.1$N.0.0/16/if$N")
		add(kind, "IPv6 route", "ip $NS -6 route del fd00:$N:9::/64 table $R", to6, route+"fd00:$N:9::/64/if$N")
		add(kind, "IPv4 route replaced", "ip $NS route replace blackhole 10.1$N.0.0/16 table $R", to4, route+"10.1$N.0.0/16/if$N")
		add(kind, "IPv6 neighbour", "ip $NS neigh del fd00:$N::9 dev x$N", has("neigh show dev x$N nud permanent", "^fd00:$N::9"), neighbour+"fd00:$N::9")
		if kind == "LOOPBACK" { // the kernel has none of IPv4 there
			continue
		}
		add(kind, "IPv4 neighbour", "ip $NS neigh del 10.$N.0.9 dev x$N", has("neigh show dev x$N nud permanent", "^10.$N.0.9"), neighbour+"10.$N.0.9")
		add(kind, "IPv4 neighbour replaced", "ip $NS neigh replace 10.$N.0.9 lladdr 02:00:00:00:00:77 dev x$N nud permanent", has("neigh show dev x$N nud permanent", "^10.$N.0.9.* 02:fe:00:00:00:09 "), neighbour+"10.$N.0.9")
	}
	for _, kind := range []string{"VETH", "DUMMY", "TAP_TO_VPP"} {
		add(kind, "port", "ip $NS link set x$N nomaster", "ip $NS -o link show x$N | grep -q ' master vrf$N ' && ip $NS route show table 1$N | grep -q ^10.1$N.0.0/16", "linux/interface/if$N/vrf/vrf$N")
		port := &all[len(all)-1]
		port.vrf = true
		port.values = append(port.values, `config/linux/interfaces/v2/interface/vrf$N {"name":"vrf$N","type":"VRF_DEVICE","enabled":true,$IN"vrf_dev":{"routing_table":1$N}}`)
		for i := range port.values {
			port.values[i] = strings.Replace(port.values[i], "$ADDRS", `"vrf_master_interface":"vrf$N",$ADDRS`, 1)
		}
	}
	add("VRF_DEVICE", "rule", "ip $NS rule del pref 1000", "ip $NS rule | grep -q ^1000:", "linux/vrf-rules/if$N")
	add("VRF_DEVICE", "IPv6 rule", "ip $NS -6 rule del pref 1000", "ip $NS -6 rule | grep -q ^1000:", "linux/vrf-rules/if$N")
	chain := []string{`config/linux/iptables/v2/rulechain/c$N {"name":"c$N",$IN"chainName":"c$N","rules":["-s 10.0.0.0/8 -j ACCEPT"]}`}
	for name, act := range map[string]string{"flushed": "-F c$N", "removed": "-X c$N", "other rule": "-I c$N 1 -j DROP"} {
		listed := "ip netns exec n$N iptables "
		act = strings.Replace(act, "-X", "-F c$N; "+listed+"-X", 1)
		all = append(all, fight{"chain: " + name, "chain", chain, listed + act, listed + "-S c$N | sed -n 3p | grep -q 10.0.0.0/8", "config/linux/iptables/v2/rulechain/c$N", false, 0})
	}
	return all
}

// Another program that insists is not fought as fast as the machine can, whatever it does to links of all kinds and to
// the values on them: after five times the agent waits. When the other program ends, all is put back.
func TestFights(t *testing.T) {
	testkit.Netns(t)
	_, err := exec.LookPath("ip")
	testkit.Need(t, "ip (iproute2)", err == nil)
	a := newAgent()
	a.with = withTAPs()
	a.log = slog.New(&a.insisted)
	if err := a.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.end)
	number := 10 // has two digits
	byKind := map[string][]fight{}
	for _, f := range fights() {
		byKind[f.kind] = append(byKind[f.kind], f)
	}
	for _, kind := range slices.Sorted(maps.Keys(byKind)) {
		t.Run(kind, func(t *testing.T) {
			if what := lacks(t, fight{kind: kind}); what != "" {
				t.Skip("SKIPPED: this test needs " + what)
			}
			if kind == "chain" {
				needIPTables(t)
			}
			// A few at a time: all of them together would take the time of a slow machine from each other.
			for some := range slices.Chunk(byKind[kind], 8) {
				some = slices.DeleteFunc(some, func(f fight) bool { return !canHave(t, f) })
				for i, f := range some {
					some[i] = a.declare(t, f, number)
					number++
				}
				a.fightAll(t, some)
			}
		})
	}
}

// fightAll has several fights at once. Afterwards nothing of them is declared any more.
func (a *agent) fightAll(t *testing.T, some []fight) {
	t.Helper()
	if err := a.commit(nil); err != nil {
		t.Fatal(err)
	}
	var g sync.WaitGroup
	for _, f := range some {
		g.Go(func() {
			judged, err := a.fight(f)
			if err != nil {
				t.Errorf("%s: %v", f.name, err)
			}
			if !judged {
				t.Logf("not judged: %s: this machine is so slow that %d times take more than %v", f.name, insists, period/2)
			}
		})
	}
	g.Wait()
	for _, f := range some {
		for _, v := range f.values {
			key, _, _ := strings.Cut(v, " ")
			_ = a.del([]string{key})
		}
	}
	if err := a.commit(nil); err != nil {
		t.Fatal(err)
	}
}

// fill replaces the variables in a text by what they are in fight number i.
func (f fight) fill(i int, text string) string {
	in, ns := fmt.Sprintf(`"namespace":{"type":"NSID","reference":"n%d"},`, i), fmt.Sprintf("-n n%d", i)
	link, table, routes := fmt.Sprint("x", i), "main", "main"
	switch f.kind {
	case "EXISTING":
		in, ns = "", ""
	case "LOOPBACK":
		link = "lo"
	case "VRF_DEVICE":
		table = fmt.Sprint("1", i)
	}
	if f.vrf {
		table, routes = fmt.Sprint("1", i), fmt.Sprint("1", i)
	}
	text = strings.ReplaceAll(text, "$ADDRS", addresses)
	return strings.NewReplacer("$NS", ns, "$IN", in, "x$N", link, "$T", table, "$R", routes, "$N", fmt.Sprint(i)).Replace(text)
}

// canHave reports whether this machine has what a fight needs. If not, a subtest is skipped that says so: the machine of
// .ci/kernel must have all, and a skip fails there.
func canHave(t *testing.T, f fight) bool {
	t.Helper()
	what := lacks(t, f)
	if what != "" {
		t.Run(f.name, func(t *testing.T) { t.Skip("SKIPPED: this test needs " + what) })
	}
	return what == ""
}

// lacks returns what this machine does not have of what a fight needs; "" if it has all.
func lacks(t *testing.T, f fight) string {
	t.Helper()
	can := func(kind string) bool {
		can, err := canMake(kind)
		if err != nil {
			t.Fatal(err)
		}
		return can
	}
	switch {
	case f.kind == "DUMMY" && !can("dummy"):
		return "a kernel with dummies (CONFIG_DUMMY)"
	case (f.kind == "VRF_DEVICE" || f.vrf) && !can("vrf"):
		return "a kernel with VRFs (CONFIG_NET_VRF)"
	}
	return ""
}

// declare puts the values of a fight, which it returns with its number in all texts.
func (a *agent) declare(t *testing.T, f fight, number int) fight {
	t.Helper()
	f.number = number
	f.act, f.stands, f.flapping, f.values = f.fill(number, f.act), f.fill(number, f.stands), f.fill(number, f.flapping), slices.Clone(f.values)
	err := a.netns([]string{fmt.Sprint("n", number)})
	if f.kind == "EXISTING" {
		err = exec.Command("sh", "-c", f.fill(number, "ip link add x$N type veth peer y$N && ip link set y$N up && ip link set x$N up")).Run()
		t.Cleanup(func() {
			if out, err := exec.Command("ip", "link", "del", fmt.Sprint("x", number)).CombinedOutput(); err != nil { // other tests have the number, too
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	for j, v := range f.values {
		f.values[j] = f.fill(number, v)
		key, json, _ := strings.Cut(f.values[j], " ")
		err = errors.Join(err, a.put([]string{key, json}))
	}
	if err != nil {
		t.Fatal(f.name, err)
	}
	return f
}

// fight lets the other program insist until the agent waits, and expects that all is put back afterwards. It is judged whether the
// agent waits unless the other program could not insist so often in the period in which that counts.
func (a *agent) fight(f fight) (judged bool, err error) {
	sh := func(text string) error {
		if out, err := exec.Command("sh", "-c", text).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", text, err, out)
		}
		return nil
	}
	stands := func() error { return sh(f.stands) }
	if err := eventually(stands); err != nil {
		return true, fmt.Errorf("at first: %w", err)
	}
	waits := func() bool { return a.insisted.has(f.flapping) }
	var acts []time.Time
	for !waits() && len(acts) < 2*insists {
		acts = append(acts, time.Now())
		if err := sh(f.act); err != nil {
			return true, err
		}
		err := eventually(func() error {
			if waits() {
				return nil
			}
			return stands()
		})
		if err != nil {
			return true, fmt.Errorf("after %d times: %w", len(acts), err)
		}
	}
	var wrong error
	for i := insists; i < len(acts); i++ {
		if took := acts[i].Sub(acts[i-insists]); took < period/2 { // a slow machine notices them later, and further apart
			wrong = fmt.Errorf("%s did not wait after %d times in %v", f.flapping, insists, took)
		}
	}
	if err := eventually(stands); err != nil {
		return true, fmt.Errorf("in the end: %w", err)
	}
	if err := a.state([]string{f.flapping, "CONFIGURED"}); err != nil {
		return true, err
	}
	return wrong != nil || len(acts) <= insists, wrong
}

// warnings are the keys that the log says somebody insists on. It is a slog.Handler. The state of a value says it only
// during the pause: the first one is shorter than two looks at it on a slow machine.
type warnings struct {
	mu   sync.Mutex // guards keys
	keys map[string]bool
}

func (w *warnings) Enabled(_ context.Context, l slog.Level) bool { return l == slog.LevelWarn }
func (w *warnings) WithAttrs([]slog.Attr) slog.Handler           { return w }
func (w *warnings) WithGroup(string) slog.Handler                { return w }

func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	if !strings.HasPrefix(r.Message, "somebody else ") {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "key" {
			w.keys[a.Value.String()] = true
		}
		return true
	})
	return nil
}

// has reports whether somebody insists on a value, or on its peer: the two ends of a VETH count as one.
func (w *warnings) has(key string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.keys[key] || w.keys[strings.Replace(key, "/interface/if", "/interface/peer", 1)]
}

// withTAPs returns a function that adds interfaces of VPP which are TAPs without a VPP. They stay when the agent starts
// again.
func withTAPs() func(*scheduler.Scheduler, *linux.Options) error {
	type none = struct{}
	type found = scheduler.Found[*vpp.Interface, none]
	host := func(name string) string { return "tap-" + name }
	var mu sync.Mutex // guards made
	made := map[string]*vpp.Interface{}
	return func(s *scheduler.Scheduler, o *linux.Options) error {
		o.TAPHost = host
		_, err := scheduler.Register(s, scheduler.Descriptor[*vpp.Interface, none]{
			Name: "vpp-interface", Model: models.For[*vpp.Interface](),
			Create: func(_ context.Context, _ string, v *vpp.Interface) (none, error) {
				mu.Lock()
				defer mu.Unlock()
				made[v.GetName()] = v
				return none{}, addTAP(host(v.GetName()))
			},
			Delete: func(_ context.Context, _ string, v *vpp.Interface, _ none) error {
				mu.Lock()
				defer mu.Unlock()
				delete(made, v.GetName())
				_ = exec.Command("ip", "link", "del", host(v.GetName())).Run() // somebody may have deleted it
				return nil
			},
			Retrieve: func(context.Context, []scheduler.Desired[*vpp.Interface]) iter.Seq2[found, error] {
				return func(yield func(found, error) bool) {
					mu.Lock()
					defer mu.Unlock()
					for _, v := range made {
						if !yield(found{Value: v}, nil) {
							return
						}
					}
				}
			},
		})
		return err
	}
}

// addTAP makes a TAP that stays when nobody has it open, as VPP would.
func addTAP(name string) error {
	return netlink.LinkAdd(&netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: name}, Mode: netlink.TUNTAP_MODE_TAP, Flags: netlink.TUNTAP_NO_PI})
}
