package kernel_test

import (
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/internal/testkit"
)

// Each route that the kernel adds with an address is missed when somebody removes it, and put back as the kernel has
// made it: it goes with the address.
func TestRoutesOfAddresses(t *testing.T) {
	for _, master := range []string{"", "vrf"} {
		t.Run("in "+master, func(t *testing.T) {
			red := open(t, testkit.Netns(t, "red")+"/red")
			for _, conf := range []string{"all", "default"} { // the other tests wait for seconds
				try(t, red.Sysctl("ipv6/conf/"+conf+"/accept_dad", "0"))
			}
			try(t, red.AddVETH(kernel.Link{Name: "a"}, "b", red))
			b := must(red.LinkByName("b"))(t)
			try(t, red.SetUp(b.Index, true))
			links := []kernel.Link{must(red.LinkByName("lo"))(t), must(red.LinkByName("a"))(t)}
			if master != "" {
				if !makesVRF(t, red, "blue") {
					return
				}
				blue := must(red.LinkByName("blue"))(t)
				try(t, red.SetUp(blue.Index, true), red.SetMaster(links[1].Index, blue.Index))
				links = append(links, blue)
			}
			var addrs []kernel.Addr
			for i, l := range links {
				try(t, red.SetUp(l.Index, true))
				for _, text := range []string{"10.%d.0.1/24", "10.%d.0.2/24", "10.9.9.%d/32", "fd0%d::1/64", "fd09::%d/128"} {
					addrs = append(addrs, kernel.Addr{Link: l.Index, Prefix: netip.MustParsePrefix(fmt.Sprintf(text, i))})
				}
			}
			for _, a := range addrs {
				try(t, red.AddAddr(a))
			}
			tested(t, red)
			before := routesOf(t, red)
			for _, r := range before {
				if r.Dst == netip.MustParsePrefix("fe80::/64") || r.Dst.Addr().IsLinkLocalUnicast() || r.Dst.Addr().IsLoopback() || r.Link == 1 && r.Dst.Addr() == netip.MustParseAddr("127.255.255.255") {
					continue // the kernel has made it with an address of its own
				}
				try(t, red.DelRoute(r))
				bare := must(red.Bare())(t)
				if len(bare) == 0 {
					t.Errorf("nobody misses %+v", r)
				}
				for _, a := range bare {
					try(t, red.Connect(a))
				}
				tested(t, red)
				if bare := must(red.Bare())(t); len(bare) > 0 {
					t.Errorf("after %+v was put back, %v are without routes", r, bare)
				}
				if after := routesOf(t, red); !slices.Equal(after, before) {
					without := func(all, some []kernel.Route) []kernel.Route {
						return slices.DeleteFunc(slices.Clone(all), func(r kernel.Route) bool { return slices.Contains(some, r) })
					}
					t.Fatalf("after %+v was put back, new is\n%+v, and there is no\n%+v", r, without(after, before), without(before, after))
				}
			}
			for _, a := range slices.Backward(addrs) { // the kernel removes secondary addresses with the primary one
				try(t, red.DelAddr(a))
			}
			left := slices.DeleteFunc(routesOf(t, red), func(r kernel.Route) bool {
				return !slices.ContainsFunc(addrs, func(a kernel.Addr) bool { return a.Prefix.Contains(r.Dst.Addr()) })
			})
			if len(left) > 0 {
				t.Errorf("without addresses there are %+v", left)
			}
		})
	}
}

// makesVRF makes a VRF of table 10, if the kernel has VRFs.
func makesVRF(t *testing.T, in kernel.Kernel, name string) bool {
	t.Helper()
	err := in.AddLink(kernel.Link{Kind: "vrf", Name: name, Table: 10})
	if errors.Is(err, unix.EOPNOTSUPP) {
		t.Log(err)
		return false
	}
	try(t, err)
	return true
}

// tested waits until the kernel has tested all addresses: only then it adds their routes.
func tested(t *testing.T, in kernel.Kernel) {
	t.Helper()
	deadline := time.Now().Add(testkit.Patience)
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for ; slices.ContainsFunc(must(in.Addrs(0))(t), func(a kernel.Addr) bool { return a.Tentative }); <-again.C {
		if time.Now().After(deadline) {
			t.Fatalf("addresses are %+v", must(in.Addrs(0))(t))
		}
	}
}

// routesOf returns all routes, sorted.
func routesOf(t *testing.T, in kernel.Kernel) []kernel.Route {
	t.Helper()
	all := must(in.Routes(func(kernel.Route) bool { return true }))(t)
	slices.SortFunc(all, func(a, b kernel.Route) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return all
}

// The rules of VRFs are there or not in each family, and are added as the kernel writes them.
func TestVRFRules(t *testing.T) {
	path := testkit.Netns(t, "red") + "/red"
	red, other := open(t, path), open(t, path)
	events := must(red.Subscribe())(t)
	defer events.Close()
	if must(red.HasVRFRules())(t) {
		t.Error("a new namespace has rules of VRFs")
	}
	if !makesVRF(t, red, "blue") {
		return
	}
	if !must(red.HasVRFRules())(t) {
		t.Error("a namespace with a VRF has no rules of VRFs")
	}
	ip := func(args string) string {
		out, err := exec.Command("ip", strings.Fields("-n red "+args)...).CombinedOutput()
		if err != nil {
			t.Fatalf("ip %s: %v %s", args, err, out)
		}
		return string(out)
	}
	all := func() string { return ip("-d -4 rule") + ip("-d -6 rule") }
	before := all()
	for _, family := range []string{"-4", "-6"} {
		ip(family + " rule del pref 1000")
		for _, some := range []string{"iif lo", "from all to ::/1", "not from all fwmark 7", "pref 40000"} {
			if strings.Contains(some, ":") && family == "-4" {
				continue
			}
			ip(family + " rule add l3mdev " + some)
			if must(red.HasVRFRules())(t) {
				t.Errorf("%s: a rule for some packets suffices: %s", family, ip(family+" rule"))
			}
			ip(family + " rule del l3mdev " + some)
		}
		try(t, other.AddVRFRules(), other.AddVRFRules())
		if after := all(); after != before || !must(red.HasVRFRules())(t) {
			t.Errorf("%s: rules are\n%s, were\n%s", family, after, before)
		}
	}
	ip("rule add l3mdev pref 500") // where people want it
	ip("rule del pref 1000")
	if !must(red.HasVRFRules())(t) {
		t.Errorf("a rule of another priority does not suffice: %s", ip("rule"))
	}
	text := func(e kernel.Event) string { return fmt.Sprint(e.Gone) }
	seen := map[string]bool{}
	for !seen["true"] || !seen["false"] {
		batch, err := events.Next()
		try(t, err)
		for _, e := range batch {
			if _, rule := e.What.(kernel.VRFRule); rule {
				seen[text(e)] = true
			}
		}
	}
}
