package fakelinux_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/descriptors/linux/internal/fakelinux"
	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/internal/scratch"
	"github.com/keyplane/keyplane/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(scratch.Main(m.Run)) }

// The fake and the kernel answer alike, as far as the kernel has VRFs and dummies.
func TestFakeIsLikeTheKernel(t *testing.T) {
	t.Run("fake", func(t *testing.T) {
		host := fakelinux.New("/red", "/blue")
		alike(t, host, "/red", "/blue")
	})
	t.Run("kernel", func(t *testing.T) {
		dir := testkit.Netns(t, "red", "blue")
		k, _, err := kernel.This{}.Open(dir + "/red")
		if err != nil {
			t.Fatal(err)
		}
		lacks := k.AddLink(kernel.Link{Kind: "vrf", Name: "try", Table: 9})
		k.Close()
		if errors.Is(lacks, unix.EOPNOTSUPP) {
			t.Log(lacks)
			return
		}
		alike(t, kernel.This{}, dir+"/blue", dir+"/red")
	})
}

// alike expects the same of VRFs and their port from each host.
func alike(t *testing.T, host kernel.Host, here, there string) {
	t.Helper()
	k, _, err := host.Open(here)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	other, _, err := host.Open(there)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	index := map[string]int{"missing": 9999}
	addr := func(on, prefix string) kernel.Addr {
		return kernel.Addr{Link: index[on], Prefix: netip.MustParsePrefix(prefix)}
	}
	add6 := func() error { return k.AddAddr(addr("d", "fd00::1/64")) }
	steps := []struct {
		name string
		do   func() error
		want error
		then string // the links afterwards; "": as before
	}{
		{"make a VRF", func() error { return k.AddLink(kernel.Link{Kind: "vrf", Name: "v", Table: 10}) }, nil, "v vrf 65575 table 10 rules"},
		{"the same name", func() error { return k.AddLink(kernel.Link{Kind: "dummy", Name: "v"}) }, unix.EEXIST, ""},
		{"an MTU below the range", func() error { return k.SetMTU(index["v"], 1279) }, unix.EINVAL, ""},
		{"an MTU above it", func() error { return k.SetMTU(index["v"], 65576) }, unix.EINVAL, ""},
		{"an MTU", func() error { return k.SetMTU(index["v"], 1280) }, nil, "v vrf 1280 table 10 rules"},
		{"another namespace", func() error { return k.Move(index["v"], other) }, unix.EINVAL, ""},
		{"make a dummy", func() error { return k.AddLink(kernel.Link{Kind: "dummy", Name: "d"}) }, nil, "v vrf 1280 table 10, d dummy 1500 rules"},
		{"into the VRF", func() error { return k.SetMaster(index["d"], index["v"]) }, nil, "v vrf 1280 table 10, d dummy 1500 in v rules"},
		{"a VRF into a VRF", func() error { return k.SetMaster(index["v"], index["v"]) }, unix.EINVAL, ""},
		{"no master", func() error { return k.SetMaster(index["d"], 9999) }, unix.EINVAL, "v vrf 1280 table 10, d dummy 1500 rules"},
		{"into the VRF again", func() error { return k.SetMaster(index["d"], index["v"]) }, nil, "v vrf 1280 table 10, d dummy 1500 in v rules"},
		{"no such link", func() error { return k.SetMaster(9999, index["v"]) }, unix.ENODEV, ""},
		{"a name that is taken", func() error { return k.SetName(index["d"], "v") }, unix.EEXIST, ""},
		{"a MAC address of zero", func() error { return k.SetMAC(index["d"], make(net.HardwareAddr, 6)) }, unix.EADDRNOTAVAIL, ""},
		{"an address", func() error { return k.AddAddr(addr("d", "10.0.0.1/24")) }, nil, "v vrf 1280 table 10, d dummy 1500 in v 10.0.0.1/24 rules"},
		{"the address again", func() error { return k.AddAddr(addr("d", "10.0.0.1/24")) }, unix.EEXIST, ""},
		{"an address that is not there", func() error { return k.DelAddr(addr("d", "10.0.0.2/24")) }, unix.EADDRNOTAVAIL, ""},
		{"up", func() error { return k.SetUp(index["d"], true) }, nil, "v vrf 1280 table 10, d dummy 1500 up in v 10.0.0.1/24 rules"},
		{"an IPv6 address", add6, nil, "v vrf 1280 table 10, d dummy 1500 up in v 10.0.0.1/24 fd00::1/64 rules"},
		{"with another length", func() error { return k.AddAddr(addr("d", "fd00::1/80")) }, unix.EEXIST, ""},
		{"the same VRF", func() error { return k.SetMaster(index["d"], index["v"]) }, nil, ""},
		{"down", func() error { return k.SetUp(index["d"], false) }, nil, "v vrf 1280 table 10, d dummy 1500 in v 10.0.0.1/24 rules"},
		{"an IPv6 address while it is down", add6, nil, "v vrf 1280 table 10, d dummy 1500 in v 10.0.0.1/24 fd00::1/64 rules"},
		{"make another VRF", func() error { return k.AddLink(kernel.Link{Kind: "vrf", Name: "w", Table: 11}) }, nil, "v vrf 1280 table 10, w vrf 65575 table 11, d dummy 1500 in v 10.0.0.1/24 fd00::1/64 rules"},
		{"to the other VRF while it is down", func() error { return k.SetMaster(index["d"], index["w"]) }, nil, "v vrf 1280 table 10, w vrf 65575 table 11, d dummy 1500 in w 10.0.0.1/24 rules"},
		{"up again", func() error { return k.SetUp(index["d"], true) }, nil, "v vrf 1280 table 10, w vrf 65575 table 11, d dummy 1500 up in w 10.0.0.1/24 rules"},
		{"an IPv6 address again", add6, nil, "v vrf 1280 table 10, w vrf 65575 table 11, d dummy 1500 up in w 10.0.0.1/24 fd00::1/64 rules"},
		{"back while it is up", func() error { return k.SetMaster(index["d"], index["v"]) }, nil, "v vrf 1280 table 10, w vrf 65575 table 11, d dummy 1500 up in v 10.0.0.1/24 rules"},
		{"out of it", func() error { return errors.Join(add6(), k.SetMaster(index["d"], 0)) }, nil, "v vrf 1280 table 10, w vrf 65575 table 11, d dummy 1500 up 10.0.0.1/24 rules"},
		{"out of none", func() error { return errors.Join(add6(), k.SetMaster(index["d"], 0)) }, nil, "v vrf 1280 table 10, w vrf 65575 table 11, d dummy 1500 up 10.0.0.1/24 fd00::1/64 rules"},
		{"an MTU without IPv6", func() error { return k.SetMTU(index["d"], 1279) }, nil, "v vrf 1280 table 10, w vrf 65575 table 11, d dummy 1279 up 10.0.0.1/24 rules"},
		{"an MTU with it", func() error { return k.SetMTU(index["d"], 1500) }, nil, "v vrf 1280 table 10, w vrf 65575 table 11, d dummy 1500 up 10.0.0.1/24 rules"},
		{"into the VRF once more", func() error { return errors.Join(k.SetMaster(index["d"], index["v"]), add6()) }, nil, "v vrf 1280 table 10, w vrf 65575 table 11, d dummy 1500 up in v 10.0.0.1/24 fd00::1/64 rules"},
		{"the VRF is down", func() error { return errors.Join(k.SetUp(index["v"], true), k.SetUp(index["v"], false)) }, nil, ""},
		{"the VRF goes", func() error { return k.DelLink(index["v"]) }, nil, "w vrf 65575 table 11, d dummy 1500 up 10.0.0.1/24 rules"},
		{"twice", func() error { return k.DelLink(index["v"]) }, unix.ENODEV, ""},
		{"the other VRF goes", func() error { return k.DelLink(index["w"]) }, nil, "d dummy 1500 up 10.0.0.1/24 rules"},
		{"moved", func() error { return k.Move(index["d"], other) }, nil, "rules"},
	}
	before := ""
	for _, s := range steps {
		if err := s.do(); !errors.Is(err, s.want) || s.want == nil && err != nil {
			t.Errorf("%s: %v, want %v", s.name, err, s.want)
		}
		links, err := k.Links()
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range links {
			index[l.Name] = l.Index
		}
		if s.then == "" {
			s.then = before
		}
		if got := state(t, k, links); got != s.then {
			t.Errorf("%s: %s, want %s", s.name, got, s.then)
		}
		before = s.then
	}
}

// state returns the links v, w and d, and whether there are rules of VRFs.
func state(t *testing.T, k kernel.Kernel, links []kernel.Link) string {
	t.Helper()
	var out []string
	for _, name := range []string{"v", "w", "d"} {
		i := slices.IndexFunc(links, func(l kernel.Link) bool { return l.Name == name })
		if i < 0 {
			continue
		}
		l := links[i]
		text := fmt.Sprint(name, " ", l.Kind, " ", l.MTU)
		if l.Table != 0 {
			text += fmt.Sprint(" table ", l.Table)
		}
		if l.Up {
			text += " up"
		}
		for _, master := range links {
			if master.Index == l.Master {
				text += " in " + master.Name
			}
		}
		addrs, err := k.Addrs(l.Index)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range addrs {
			if !a.Prefix.Addr().IsLinkLocalUnicast() { // which the kernel adds
				text += fmt.Sprint(" ", a.Prefix)
			}
		}
		out = append(out, text)
	}
	rules, err := k.HasVRFRules()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(strings.Join(out, ", ") + map[bool]string{true: " rules"}[rules])
}
