package kernel_test

import (
	"fmt"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/internal/testkit"
)

// forms are what ip can make on a link, in forms that netlink tells differently: the LOCAL part of an address beside the
// one of its peer, host bits, gateways of the other IP version, addresses of the link alone.
var forms = []string{
	"addr add 10.1.0.1/24 dev x", "addr add 10.1.1.1/32 dev x", "addr add 10.1.2.0/31 dev x", "addr add 10.1.0.2/24 dev x",
	"addr add 10.2.0.1 peer 10.2.0.2/32 dev x", "addr add 10.3.0.1 peer 10.3.0.2/24 dev x", "addr add 10.2.0.1 peer 10.4.0.2/32 dev x",
	"addr add 10.1.3.1/24 dev x valid_lft 1000 preferred_lft 900", "addr add 10.1.4.1/24 broadcast 10.1.4.77 scope link dev x",
	"addr add fd01::1/64 dev x nodad", "addr add fd01:1::1/128 dev x nodad", "addr add fe80::77/64 dev x nodad",
	"addr add fd02::1 peer fd02::2/128 dev x nodad", "addr add fd03::1 peer fd03::2/64 dev x nodad",
	"addr add fd04::1/64 dev x nodad valid_lft 1000 preferred_lft 0",
	"route add 10.9.0.0/16 dev x TABLE", "route add 10.9.9.9/32 dev x scope link metric 7 TABLE", "route add 10.8.0.0/16 via 10.1.0.77 dev x TABLE",
	"route add 10.7.0.0/16 via 10.77.0.1 dev x onlink TABLE", "route add 10.6.0.0/16 via inet6 fe80::2 dev x TABLE",
	"route add 10.5.0.0/16 src 10.1.0.2 mtu 1300 dev x TABLE", "route add 10.4.0.0/16 tos 4 dev x TABLE",
	"-6 route add fd09::/64 dev x TABLE", "-6 route add fd09::9/128 dev x metric 7 TABLE", "-6 route add fd08::/64 via fd01::77 dev x TABLE",
	"-6 route add fd07::/64 via fe80::2 dev x TABLE", "-6 route add fd06::/64 dev x mtu 1300 pref high TABLE",
	"neigh add fd01::9 lladdr 02:00:00:00:00:09 dev x nud permanent", "neigh add fe80::9 lladdr 02:00:00:00:00:09 dev x nud permanent protocol 151",
	"neigh add 10.1.0.9 lladdr 02:00:00:00:00:09 dev x nud permanent", "neigh add 10.1.0.8 lladdr 02:00:00:00:00:08 dev x nud permanent protocol 151",
}

// makes are links of all kinds with the name x. Some machines lack some of them.
var makes = map[string]string{
	"veth":          "link add x type veth peer y\nlink set y up",
	"dummy":         "link add x type dummy",
	"vrf":           "link add x type vrf table 10",
	"tap":           "tuntap add x mode tap",
	"veth in a VRF": "link add v type vrf table 10\nlink set v up\nlink add x type veth peer y\nlink set y up\nlink set x master v",
	"dummy in VRF":  "link add v type vrf table 10\nlink set v up\nlink add x type dummy\nlink set x master v",
}

// What events say of a thing is what dumps say of it, when it comes and when it goes, on links of all kinds.
func TestEventsSayWhatDumpsSay(t *testing.T) {
	_, err := exec.LookPath("ip")
	testkit.Need(t, "ip (iproute2)", err == nil)
	for kind, made := range makes {
		t.Run(kind, func(t *testing.T) {
			path := testkit.Netns(t, "red") + "/red"
			red := open(t, path)
			for _, conf := range []string{"all", "default"} {
				try(t, red.Sysctl("ipv6/conf/"+conf+"/accept_dad", "0"))
			}
			lo := must(red.LinkByName("lo"))(t)
			try(t, red.SetUp(lo.Index, true)) // a link that is down has no event about its alias
			for line := range strings.Lines(made) {
				if out, err := ipRed(strings.TrimSpace(line)); err != nil {
					if strings.Contains(out, "Unknown device type") || strings.Contains(out, "not supported") {
						t.Logf("this kernel has no %s", kind)
						return
					}
					t.Fatal(line, out)
				}
			}
			events := must(red.Subscribe())(t)
			defer events.Close()
			if out, err := ipRed("link set x up"); err != nil {
				t.Fatal(out)
			}
			table := map[bool]string{true: "table 10", false: "table main"}[strings.Contains(kind, "VRF")]
			for _, form := range forms {
				form = strings.Replace(form, "TABLE", table, 1)
				if kind == "vrf" && (strings.Contains(form, "via ") || strings.Contains(form, " src ")) {
					continue // its addresses are in another table than its routes
				}
				if out, err := ipRed(form); err != nil {
					t.Fatalf("ip %s: %s", form, out)
				}
			}
			heard := map[string]any{}
			hear(t, events, red, heard)
			before := dumped(t, red)
			if len(before) < 20 {
				t.Errorf("only these are there: %+v", before)
			}
			for _, what := range before {
				if said := heard[identity(what)]; !reflect.DeepEqual(said, what) {
					t.Errorf("an event said\n%+v, a dump says\n%+v", said, what)
				}
			}
			for _, act := range []string{"neigh flush dev x nud permanent", "route flush dev x " + table, "-6 route flush dev x " + table + " proto boot", "addr flush dev x"} {
				_, _ = ipRed(act) // it may have nothing to do
			}
			hear(t, events, red, heard)
			left := map[string]bool{}
			for _, what := range dumped(t, red) {
				left[identity(what)] = true
			}
			for _, what := range before {
				id := identity(what)
				if said, there := heard[id]; there && !left[id] && !silent(what) {
					t.Errorf("it has gone without an event that means it: %+v; the last event was %+v", what, said)
				}
			}
		})
	}
}

// silent reports whether the kernel may remove this without an event: IPv4 routes go with the last address of a link.
func silent(what any) bool {
	r, route := what.(kernel.Route)
	return route && r.Dst.Addr().Is4()
}

func ipRed(command string) (string, error) {
	out, err := exec.Command("ip", append([]string{"-n", "red"}, strings.Fields(command)...)...).CombinedOutput()
	return string(out), err
}

// hear takes in all events until now. What has gone is not heard of any more.
func hear(t *testing.T, events kernel.Events, red kernel.Kernel, heard map[string]any) {
	t.Helper()
	const end = "an end of events"
	lo := must(red.LinkByName("lo"))(t)
	try(t, red.SetAlias(lo.Index, end))
	for ended := false; !ended; {
		batch, err := events.Next()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range batch {
			if l, link := e.What.(kernel.Link); link {
				ended = ended || l.Alias == end
				continue
			}
			if e.Gone {
				delete(heard, identity(e.What))
			} else {
				heard[identity(e.What)] = e.What
			}
		}
	}
	try(t, red.SetAlias(lo.Index, ""))
}

// identity is what events and dumps must agree on for one thing.
func identity(what any) string {
	switch what := what.(type) {
	case kernel.Addr:
		return fmt.Sprint("address ", what.Link, what.Prefix, what.Peer)
	case kernel.Route:
		return fmt.Sprint("route ", what.Place(), what.Link, what.Type, what.Gateway)
	case kernel.Neighbour:
		return fmt.Sprint("neighbour ", what.Link, what.IP)
	}
	return fmt.Sprint(what)
}

// dumped returns what stands on the link x, but not what the kernel has made by itself.
func dumped(t *testing.T, red kernel.Kernel) (all []any) {
	t.Helper()
	x := must(red.LinkByName("x"))(t).Index
	for _, a := range must(red.Addrs(x))(t) {
		all = append(all, a)
	}
	for _, r := range must(red.Routes(func(r kernel.Route) bool { return r.Link == x && r.Protocol != unix.RTPROT_KERNEL }))(t) {
		all = append(all, r)
	}
	for _, n := range must(red.Neighbours())(t) {
		if n.Link == x {
			all = append(all, n)
		}
	}
	return all
}
