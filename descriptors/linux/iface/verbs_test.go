package iface

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/linux/internal/drift"
	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/internal/verbs"
	"github.com/keyplane/keyplane/descriptors/linux/keys"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/internal/scratch"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/linux/namespace"
)

func TestMain(m *testing.M) { os.Exit(scratch.Main(m.Run)) }

type (
	value = interfaces.Interface
	bench = verbs.Bench[*value, Meta]
)

// clone is a copy to change.
func clone(v *value) *value { return proto.CloneOf(v) }

func red() *namespace.NetNamespace {
	return &namespace.NetNamespace{Type: namespace.NetNamespace_NSID, Reference: "red"}
}

// newHandler works on a host, or on the real one.
func newHandler(host kernel.Host) (*handler, *bench) { return handlerIn(host, "") }

// handlerIn has the named namespaces in a folder, if that is not the usual one.
func handlerIn(host kernel.Host, folder string) (*handler, *bench) {
	spaces := netns.New(netns.Options{Host: host, Wait: true, Dir: folder})
	watch := drift.New(drift.Options{Spaces: spaces, Log: slog.New(slog.DiscardHandler), Lost: func([]string) {}})
	h := &handler{Options: Options{
		Spaces: spaces, Watch: watch, Log: slog.New(slog.DiscardHandler), Label: "test", Readers: 2, TAPHost: defaultTAPHost, Flushed: func() {},
	}, marks: newMarks(nil, nil)}
	b := &bench{D: h.descriptor()}
	h.index = b
	return h, b
}

// realHandler works on the kernel, in namespaces of the test's own.
func realHandler(t *testing.T, names ...string) (*handler, *bench) {
	t.Helper()
	testkit.Netns(t, names...)
	h, b := newHandler(nil)
	t.Cleanup(func() { onlyLoopback(t, h) })
	return h, b
}

// ofKernel are links that the kernel makes in each namespace when the module of their kind is loaded, unless
// net.core.fb_tunnels_only_for_init_net is set. They cannot be removed.
var ofKernel = []string{loopback, "tunl0", "gre0", "gretap0", "erspan0", "sit0", "ip6tnl0", "ip6gre0", "ip_vti0", "ip6_vti0"}

// onlyLoopback checks that a test left nothing in the agent's own namespace.
func onlyLoopback(t *testing.T, h *handler) {
	own, err := h.Spaces.Own()
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	links, err := own.Links()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		if !slices.Contains(ofKernel, l.Name) {
			t.Errorf("left behind: %+v", l)
			_ = own.DelLink(l.Index)
		}
	}
}

func TestLifeOfALoopback(t *testing.T) {
	h, b := realHandler(t, "red")
	lo := &value{Name: "my-lo", Type: interfaces.Interface_LOOPBACK, Enabled: true, Namespace: red()}
	down := clone(lo)
	down.Enabled, down.Mtu = false, 65537
	down.HostIfName = "ignored"
	b.Lifecycle(t, lo, down, lo)

	b.Create(t, lo)
	other := clone(lo)
	other.Name = "other"
	claim := func(v *value) string { return h.descriptor().Claims("", v)[0].Resource }
	if claim(lo) != claim(other) {
		t.Errorf("two loopbacks of a namespace claim %q and %q", claim(lo), claim(other))
	}
	b.Delete(t, lo)
}

// A loopback belongs to nobody: an alias and the addresses of others stay, and nothing of the agent is left.
func TestLoopbackOfOthers(t *testing.T) {
	h, b := realHandler(t, "red")
	addresses := h.addressDescriptor()
	space, err := h.Spaces.Open(red())
	if err != nil {
		t.Fatal(err)
	}
	defer space.Close()
	const lo, theirs, both, ours = 1, "10.10.10.10/32", "10.10.10.11/32", "10.255.0.1/32"
	for _, err := range []error{
		space.SetUp(lo, true), space.SetAlias(lo, "anycast"), byOthers("red", "addr", "add", theirs, "dev", "lo"),
		byOthers("red", "addr", "add", both, "dev", "lo"), byOthers("red", "addr", "add", "fd10::10/128", "dev", "lo"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	state := func() string {
		t.Helper()
		l, err := space.LinkByIndex(lo)
		if err != nil {
			t.Fatal(err)
		}
		all, err := space.Addrs(lo)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, a := range all {
			out = append(out, a.Prefix.String())
		}
		slices.Sort(out)
		return fmt.Sprintf("%s %d %q", l.Alias, l.MTU, out)
	}
	before := state()
	v := &value{Name: "lo-own", Type: interfaces.Interface_LOOPBACK, Enabled: true, Namespace: red(), IpAddresses: []string{ours, both}}
	b.Create(t, v)
	for _, kv := range derived("", v) {
		if _, ok := keys.ParseAddress(kv.Key); ok {
			if _, err := addresses.Create(t.Context(), kv.Key, kv.Value.(*value)); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.Expect(t, v)
	low := clone(v)
	low.Mtu = 1200
	if _, err := h.update(t.Context(), b.Key(t, v), v, low, b.All()["lo-own"]); err == nil || !strings.Contains(err.Error(), "::1/128, fd10::10/128") && !strings.Contains(err.Error(), "fd10::10/128, ::1/128") {
		t.Errorf("an MTU below that of IPv6: %v", err)
	}
	for _, kv := range derived("", v) {
		if _, ok := keys.ParseAddress(kv.Key); ok {
			if err := addresses.Delete(t.Context(), kv.Key, kv.Value.(*value), struct{}{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.Delete(t, v)
	if after := state(); after != before {
		t.Errorf("the loopback is %s, was %s", after, before)
	}
}

// byOthers runs ip in a namespace, as another program does.
func byOthers(netns string, args ...string) error {
	out, err := exec.Command("ip", append([]string{"-n", netns}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %q: %w: %s", args, err, out)
	}
	return nil
}

// Programs talk over the loopback: it is left up, however its value changes.
func TestLoopbackIsNeverSetDown(t *testing.T) {
	h, b := realHandler(t, "red")
	space, err := h.Spaces.Open(red())
	if err != nil {
		t.Fatal(err)
	}
	defer space.Close()
	look := func() kernel.Link {
		t.Helper()
		l, err := space.LinkByName(loopback)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	if err := space.SetUp(look().Index, true); err != nil {
		t.Fatal(err)
	}
	before := look()
	lo := &value{Name: "lo0", Type: interfaces.Interface_LOOPBACK, Namespace: red()}
	up := clone(lo)
	up.Enabled, up.Mtu = true, 9000
	b.Create(t, lo)
	b.Expect(t, lo)
	for _, next := range []*value{up, lo, up} {
		b.Change(t, map[bool]*value{true: lo, false: up}[next == up], next)
		b.Expect(t, next)
		if !look().Up {
			t.Fatalf("set down by %v", next)
		}
	}
	b.Delete(t, up)
	if after := look(); !after.Up || after.MTU != before.MTU {
		t.Errorf("left behind %+v, found %+v", after, before)
	}
}

func TestLifeOfATAP(t *testing.T) {
	h, b := realHandler(t, "red")
	own, err := h.Spaces.Own()
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	addTAP(t, defaultTAPHost("vpp-tap"))
	tap := &value{
		Name: "tap1", Type: interfaces.Interface_TAP_TO_VPP, HostIfName: "tap-in-red", Enabled: true, Namespace: red(),
		Link: &interfaces.Interface_Tap{Tap: &interfaces.TapLink{VppTapIfName: "vpp-tap"}},
	}
	renamed := clone(tap)
	renamed.HostIfName, renamed.PhysAddress, renamed.Mtu = "tap-now", "02:fe:00:00:00:02", 1400
	own1 := clone(renamed)
	own1.Namespace = nil
	unmoved := clone(own1)
	unmoved.HostIfName = defaultTAPHost("vpp-tap")
	b.Lifecycle(t, unmoved, tap, renamed, own1, unmoved, tap, renamed)
	l, err := own.LinkByName(defaultTAPHost("vpp-tap"))
	if err != nil || l.Alias != unconfigured || l.MTU != defaultMTU {
		t.Fatalf("a TAP given back is %+v, %v", l, err)
	}
	if err := own.DelLink(l.Index); err != nil {
		t.Fatal(err)
	}
	if _, err := h.create(t.Context(), keyOf("tap1"), tap); !errors.Is(err, unix.ENODEV) {
		t.Errorf("without its VPP side: %v", err)
	}
}

// What was known about a TAP in the agent's namespace does not count after it has been elsewhere, though it has its index again.
func TestTAPThatComesBack(t *testing.T) {
	h, b := realHandler(t, "red")
	own, err := h.Spaces.Own()
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	addTAP(t, defaultTAPHost("vpp-tap"))
	away := &value{
		Name: "tap1", Type: interfaces.Interface_TAP_TO_VPP, HostIfName: "tap-in-red", Namespace: red(),
		Link: &interfaces.Interface_Tap{Tap: &interfaces.TapLink{VppTapIfName: "vpp-tap"}},
	}
	back := clone(away)
	back.HostIfName, back.Namespace = "tap-back", nil
	b.Create(t, away)
	meta, _ := b.Get("tap1")
	if _, known := h.marks.of(linkID{own.ID, meta.Index}, ""); known {
		t.Errorf("a link that was moved is still known where it was")
	}
	b.Change(t, away, back)
	l, err := own.LinkByName("tap-back")
	if want := h.aliasOf(back, defaultTAPHost("vpp-tap")); err != nil || l.Alias != want || l.Owner != h.Installation {
		t.Errorf("its alias is %q of %q, %v; expected %q", l.Alias, l.Owner, err, want)
	}
	// Another program may overwrite the alias of one that is not renamed yet.
	if err := errors.Join(own.SetName(l.Index, defaultTAPHost("vpp-tap")), own.SetAlias(l.Index, "uplink")); err != nil {
		t.Fatal(err)
	}
	b.Create(t, back)
	b.Expect(t, back)
	b.Delete(t, back)
	if l, err = own.LinkByName(defaultTAPHost("vpp-tap")); err != nil {
		t.Fatal(err)
	}
	h.remark(own.ID, l.Index) // as an event does that comes late
	if l, err = own.LinkByIndex(l.Index); err != nil || l.Alias != unconfigured {
		t.Errorf("given back is %+v, %v", l, err)
	}
	if err := own.DelLink(l.Index); err != nil {
		t.Error(err)
	}
}

func TestLifeOfAnExisting(t *testing.T) {
	h, b := realHandler(t)
	own, err := h.Spaces.Own()
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	if err := own.AddVETH(kernel.Link{Name: "theirs"}, "theirs2", own.Kernel); err != nil {
		t.Fatal(err)
	}
	before, err := own.LinkByName("theirs")
	if err != nil {
		t.Fatal(err)
	}
	v := &value{Name: "ext", Type: interfaces.Interface_EXISTING, HostIfName: "theirs", Enabled: true, Mtu: 1400}
	b.Create(t, v)
	b.Expect(t, v)
	next := clone(v)
	next.HostIfName = "theirs2"
	if b.Change(t, v, next) {
		t.Error("another link was taken in place")
	}
	b.Expect(t, next)
	b.Delete(t, next)
	after, err := own.LinkByName("theirs")
	if err != nil || after.MTU != before.MTU || after.Up != before.Up || after.Alias != before.Alias {
		t.Errorf("touched: %+v, was %+v, %v", after, before, err)
	}
	if err := own.DelLink(before.Index); err != nil {
		t.Error(err)
	}
}

func TestForeignLinksAreNotTouched(t *testing.T) {
	h, b := realHandler(t, "red")
	space, err := h.Spaces.Open(red())
	if err != nil {
		t.Fatal(err)
	}
	defer space.Close()
	if err := space.AddVETH(kernel.Link{Name: "a"}, "x", space.Kernel); err != nil {
		t.Fatal(err)
	}
	theirs, _ := space.LinkByName("a")
	if err := space.SetAlias(theirs.Index, "/vnf-agent/another/a/x"); err != nil {
		t.Fatal(err)
	}
	b.Expect(t)
	v := veth("a", "z", in(red()))
	_, err = h.create(t.Context(), keyOf("a"), v)
	if !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), `host name a in namespace red`) {
		t.Errorf("a foreign link with the name: %v", err)
	}
	if _, err := space.LinkByIndex(theirs.Index); err != nil {
		t.Errorf("it was removed: %v", err)
	}
	other := clone(v)
	other.HostIfName = "free"
	b.Create(t, other)
	if _, err := h.update(t.Context(), keyOf("a"), other, v, b.All()["a"]); !errors.Is(err, ErrConflict) {
		t.Errorf("taking the name later: %v", err)
	}
	b.Expect(t, other)
	b.Delete(t, other)
}

func TestMissingNamespace(t *testing.T) {
	h, b := realHandler(t)
	v := veth("a", "z", in(red()))
	if _, err := h.create(t.Context(), keyOf("a"), v); !errors.Is(err, netns.ErrNotFound) || !strings.Contains(err.Error(), "ip netns add red") {
		t.Errorf("creating in a namespace that is not there: %v", err)
	}
	b.Expect(t)
}

func TestAddresses(t *testing.T) {
	h, b := realHandler(t, "red")
	a, z := veth("a", "z", in(red())), veth("z", "a", in(red()))
	b.Create(t, a)
	b.Create(t, z)
	addr := func(addr string) string { return keys.Address{Interface: "a", Source: keys.Static, Addr: addr}.Key() }
	for _, one := range []string{"10.0.0.1/24", "fd00::1/64", "10.9.9.9/32"} {
		for range 2 { // the second finds it there
			if _, err := h.createAddress(t.Context(), addr(one), a); err != nil {
				t.Fatal(err)
			}
		}
		a.IpAddresses = append(a.IpAddresses, one)
		b.Expect(t, a, z)
	}
	if _, err := h.createAddress(t.Context(), addr("fd00::1/48"), a); !errors.Is(err, ErrConflict) {
		t.Errorf("the same IPv6 address with another prefix length: %v", err)
	}
	for _, one := range a.IpAddresses {
		for range 2 {
			if err := h.deleteAddress(t.Context(), addr(one), a, struct{}{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	a.IpAddresses = nil
	b.Expect(t, a, z)
	b.Delete(t, a)
	if _, err := h.createAddress(t.Context(), addr("10.0.0.1/24"), a); !errors.Is(err, ErrNotFound) {
		t.Errorf("without its interface: %v", err)
	}
	if err := h.deleteAddress(t.Context(), addr("10.0.0.1/24"), a, struct{}{}); err != nil {
		t.Errorf("deleting what went with its interface: %v", err)
	}
	b.Delete(t, z)
}

// IPv6 works on links where it was switched off.
func TestAddressEnablesIPv6(t *testing.T) {
	h, b := realHandler(t, "red")
	space, err := h.Spaces.Open(red())
	if err != nil {
		t.Fatal(err)
	}
	defer space.Close()
	a, z := veth("a", "z", in(red())), veth("z", "a", in(red()))
	b.Create(t, a)
	b.Create(t, z)
	if err := space.Sysctl("ipv6/conf/all/disable_ipv6", "1"); err != nil {
		t.Fatal(err)
	}
	if _, err := h.createAddress(t.Context(), keys.Address{Interface: "a", Source: keys.Static, Addr: "fd00::1/64"}.Key(), a); err != nil {
		t.Fatal(err)
	}
	addrs, err := space.Addrs(b.All()["a"].Index)
	if err != nil || !slices.ContainsFunc(addrs, func(a kernel.Addr) bool { return a.Prefix == netip.MustParsePrefix("fd00::1/64") }) {
		t.Errorf("addresses %v, %v", addrs, err)
	}
	b.Delete(t, a)
	b.Delete(t, z)
}

// The kernel removes IPv6 from a link whose MTU is too small for it, and all IPv6 addresses with it.
func TestAddressWaitsForAnMTUOfIPv6(t *testing.T) {
	h, b := realHandler(t, "red")
	a, z := veth("a", "z", in(red())), veth("z", "a", in(red()))
	a.Mtu = 1279
	b.Create(t, a)
	b.Create(t, z)
	key := keys.Address{Interface: "a", Source: keys.Static, Addr: "fd00::1/64"}.Key()
	_, err := h.createAddress(t.Context(), key, a)
	if err == nil || !strings.Contains(err.Error(), "link a has MTU 1279; IPv6 needs at least 1280") {
		t.Errorf("with too small an MTU: %v", err)
	}
	wide := proto.CloneOf(a)
	wide.Mtu = 1280
	b.Change(t, a, wide)
	if _, err := h.createAddress(t.Context(), key, wide); err != nil {
		t.Errorf("with MTU 1280: %v", err)
	}
	b.Delete(t, wide)
	b.Delete(t, z)
}
