package kernel_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/internal/scratch"
	"github.com/keyplane/keyplane/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(scratch.Main(m.Run)) }

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func try(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, path string) kernel.Kernel {
	t.Helper()
	k, _, err := kernel.This{}.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Close() })
	return k
}

func TestLinks(t *testing.T) {
	dir := testkit.Netns(t, "red", "blue")
	red, blue := open(t, dir+"/red"), open(t, dir+"/blue")
	try(t, red.AddVETH(kernel.Link{Name: "a"}, "b", red))
	a := must(red.LinkByName("a"))(t)
	b := must(red.LinkByName("b"))(t)
	if a.Kind != "veth" || a.Peer != b.Index || a.Up || a.MTU != 1500 {
		t.Fatalf("a new veth is %+v", a)
	}
	mac := net.HardwareAddr{2, 0, 0, 0, 0, 9}
	try(t, red.SetAlias(a.Index, "our a"), red.SetMTU(a.Index, 9000), red.SetMAC(a.Index, mac), red.SetName(a.Index, "aa"), red.SetUp(a.Index, true))
	a = must(red.LinkByIndex(a.Index))(t)
	if a.Name != "aa" || a.Alias != "our a" || a.MTU != 9000 || a.MAC.String() != mac.String() || !a.Up {
		t.Fatalf("after changes it is %+v", a)
	}
	const group = 1<<30 | 7
	try(t, red.AddVETH(kernel.Link{Name: "here", Group: group}, "there", blue))
	here, there := must(red.LinkByName("here"))(t), must(blue.LinkByName("there"))(t)
	if here.Group != group || there.Group != 0 {
		t.Errorf("the ends are in the groups %d and %d, want %d and 0", here.Group, there.Group, group)
	}
	try(t, red.SetGroup(here.Index, 0))
	if here = must(red.LinkByIndex(here.Index))(t); here.Group != 0 {
		t.Errorf("taken from its group, it is in group %d", here.Group)
	}
	try(t, blue.DelLink(there.Index))
	if _, err := red.LinkByIndex(here.Index); !errors.Is(err, unix.ENODEV) {
		t.Fatalf("the other end of a removed one: %v", err)
	}
	try(t, red.Move(b.Index, blue))
	if _, err := red.LinkByName("b"); !errors.Is(err, unix.ENODEV) {
		t.Fatalf("a moved link is still there: %v", err)
	}
	b = must(blue.LinkByName("b"))(t)
	try(t, blue.DelLink(b.Index))
	if _, err := red.LinkByIndex(a.Index); !errors.Is(err, unix.ENODEV) {
		t.Fatalf("the end of a removed veth is still there: %v", err)
	}
	if links := must(red.Links())(t); !slices.ContainsFunc(links, func(l kernel.Link) bool { return l.Name == "lo" && l.Kind == "" }) {
		t.Fatalf("no lo in %+v", links)
	}
}

func TestOffload(t *testing.T) {
	red := open(t, testkit.Netns(t, "red")+"/red")
	try(t, red.AddVETH(kernel.Link{Name: "a"}, "b", red))
	if got := must(red.Offload("a"))(t); got != (kernel.Offload{RX: true, TX: true}) {
		t.Fatalf("a new veth offloads %+v", got)
	}
	try(t, red.SetOffload("a", kernel.Offload{RX: true}))
	if got := must(red.Offload("a"))(t); got != (kernel.Offload{RX: true}) {
		t.Fatalf("after a change %+v", got)
	}
	if _, err := red.Offload("none"); !errors.Is(err, unix.ENODEV) {
		t.Fatalf("of a missing link: %v", err)
	}
}

func TestAddressesRoutesNeighbours(t *testing.T) {
	red := open(t, testkit.Netns(t, "red")+"/red")
	try(t, red.AddVETH(kernel.Link{Name: "a"}, "b", red))
	a, b := must(red.LinkByName("a"))(t), must(red.LinkByName("b"))(t)
	try(t, red.SetUp(a.Index, true), red.SetUp(b.Index, true))
	for _, p := range []string{"10.1.0.1/24", "fd00::1/64"} {
		addr := kernel.Addr{Link: a.Index, Prefix: netip.MustParsePrefix(p), Protocol: kernel.Protocol}
		addr.Tentative = addr.Prefix.Addr().Is6()
		try(t, red.AddAddr(addr))
		if err := red.AddAddr(addr); !errors.Is(err, unix.EEXIST) {
			t.Errorf("adding %s again: %v", p, err)
		}
		if !slices.Contains(must(red.Addrs(a.Index))(t), addr) || slices.Contains(must(red.Addrs(b.Index))(t), addr) {
			t.Errorf("%s is not listed where it is", p)
		}
	}
	ours := func(r kernel.Route) bool { return r.Protocol == kernel.Protocol }
	routes := []kernel.Route{
		{Dst: netip.MustParsePrefix("0.0.0.0/0"), Gateway: netip.MustParseAddr("10.1.0.2"), Table: 254},
		{Dst: netip.MustParsePrefix("10.2.0.0/16"), Gateway: netip.MustParseAddr("10.1.0.2"), Metric: 7, Table: 1000},
		{Dst: netip.MustParsePrefix("10.3.0.0/16"), Scope: unix.RT_SCOPE_LINK, Table: 254},
		{Dst: netip.MustParsePrefix("fd01::/64"), Gateway: netip.MustParseAddr("fd00::2"), Metric: 1024, Table: 254},
	}
	for i := range routes {
		routes[i].Link, routes[i].Protocol = a.Index, kernel.Protocol
		try(t, red.AddRoutes(routes[i])[0])
	}
	got := must(red.Routes(ours))(t)
	slices.SortFunc(got, func(a, b kernel.Route) int { return strings.Compare(a.Dst.String(), b.Dst.String()) })
	if !slices.Equal(got, routes) {
		t.Errorf("routes are\n%+v, want\n%+v", got, routes)
	}
	for _, r := range routes {
		try(t, red.DelRoute(r))
		if err := red.DelRoute(r); !errors.Is(err, unix.ESRCH) {
			t.Errorf("removing %v again: %v", r.Dst, err)
		}
	}
	for _, ip := range []string{"10.1.0.7", "fd00::7"} {
		n := kernel.Neighbour{Link: a.Index, IP: netip.MustParseAddr(ip), MAC: net.HardwareAddr{2, 0, 0, 0, 0, 7}, Protocol: kernel.Protocol}
		try(t, red.AddNeighbour(n, false))
		if err := red.AddNeighbour(n, false); !errors.Is(err, unix.EEXIST) {
			t.Errorf("adding %s again: %v", ip, err)
		}
		try(t, red.AddNeighbour(n, true))
		if got := must(red.Neighbours())(t); len(got) != 1 || fmt.Sprint(got[0]) != fmt.Sprint(n) {
			t.Errorf("neighbours are %+v, want %+v", got, n)
		}
		try(t, red.DelNeighbour(n))
		if err := red.DelNeighbour(n); !errors.Is(err, unix.ENOENT) {
			t.Errorf("removing %s again: %v", ip, err)
		}
	}
}

// Events tell what others do, in order, with everything that is compared.
func TestEvents(t *testing.T) {
	path := testkit.Netns(t, "red") + "/red"
	own, red := open(t, path), open(t, path)
	events := must(own.Subscribe())(t)
	defer events.Close()
	try(t, red.AddVETH(kernel.Link{Name: "a"}, "b", red))
	a := must(red.LinkByName("a"))(t)
	addr := kernel.Addr{Link: a.Index, Prefix: netip.MustParsePrefix("10.1.0.1/24"), Protocol: kernel.Protocol}
	route := kernel.Route{Link: a.Index, Dst: netip.MustParsePrefix("10.2.0.0/16"), Gateway: netip.MustParseAddr("10.1.0.2"), Metric: 3, Table: 1000, Protocol: kernel.Protocol}
	n := kernel.Neighbour{Link: a.Index, IP: netip.MustParseAddr("10.1.0.7"), MAC: net.HardwareAddr{2, 0, 0, 0, 0, 7}, Protocol: kernel.Protocol}
	try(t, red.SetAlias(a.Index, "our a"), red.SetUp(a.Index, true), red.AddAddr(addr))
	try(t, own.AddNeighbour(n, false), own.DelNeighbour(n))
	for _, k := range []kernel.Kernel{own, red} {
		try(t, k.AddRoutes(route)[0], k.DelRoute(route))
	}
	try(t, red.AddNeighbour(n, false), red.DelNeighbour(n), red.DelAddr(addr), red.DelLink(a.Index))
	end := fmt.Sprintf("gone link %d", a.Index)
	want := []string{
		fmt.Sprint("new ", addr), fmt.Sprint("new ", route), fmt.Sprint("gone ", route),
		fmt.Sprint("new ", n), fmt.Sprint("gone ", addr), end,
	}
	if got := texts(t, events, end, want); !slices.Equal(got, want) {
		t.Errorf("events are\n%q, want\n%q", got, want)
	}
	events.Close()
	if _, err := events.Next(); err == nil || errors.Is(err, kernel.ErrLost) {
		t.Errorf("after Close: %v", err)
	}
}

// texts reads events until one has the text end, and returns those that are among some texts.
func texts(t *testing.T, events kernel.Events, end string, among []string) (got []string) {
	t.Helper()
	for !slices.Contains(got, end) {
		batch, err := events.Next()
		if err != nil {
			t.Fatalf("after %q: %v", got, err)
		}
		for _, e := range batch {
			word := "new "
			if e.Gone {
				word = "gone "
			}
			text := fmt.Sprint(word, e.What)
			if l, ok := e.What.(kernel.Link); ok {
				text = fmt.Sprintf("%slink %d", word, l.Index)
			}
			if slices.Contains(among, text) {
				got = append(got, text)
			}
		}
	}
	return got
}

func TestSysctlIsOfTheNamespace(t *testing.T) {
	red := open(t, testkit.Netns(t, "red")+"/red")
	const path = "/proc/sys/net/ipv4/ip_forward"
	before := string(must(os.ReadFile(path))(t))
	try(t, red.Sysctl("ipv4/ip_forward", "1"))
	var inside []byte
	try(t, scratch.InNetns("red", func() (err error) { inside, err = os.ReadFile(path); return err }))
	if after := string(must(os.ReadFile(path))(t)); strings.TrimSpace(string(inside)) != "1" || after != before {
		t.Errorf("in the namespace %q; outside %q, was %q", inside, after, before)
	}
	if err := red.Sysctl("no/such/thing", "1"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing sysctl: %v", err)
	}
}

func TestOpenWhatIsNoNamespace(t *testing.T) {
	testkit.Netns(t)
	dir := t.TempDir()
	if _, _, err := (kernel.This{}).Open(dir + "/none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing path: %v", err)
	}
	try(t, os.WriteFile(dir+"/file", nil, 0o600))
	if _, _, err := (kernel.This{}).Open(dir + "/file"); !errors.Is(err, kernel.ErrNoNamespace) {
		t.Errorf("an ordinary file: %v", err)
	}
}

// What is unsupported here says so, and where it is supported it works.
// Whatever it is that cannot be opened any more, what was opened before is closed.
func TestOpenWithoutRoom(t *testing.T) {
	path := testkit.Netns(t, "red") + "/red"
	open(t, path) // with it, what the runtime opens once
	var was unix.Rlimit
	try(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &was))
	sockets := func() (open []string) {
		for fd := range 256 {
			if to, _ := os.Readlink(fmt.Sprint("/proc/self/fd/", fd)); strings.HasPrefix(to, "socket:") {
				open = append(open, to)
			}
		}
		return open
	}
	before, failed := sockets(), 0
	for room := range 256 {
		try(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(room), Max: was.Max}))
		k, _, err := kernel.This{}.Open(path)
		try(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &was))
		if err == nil {
			try(t, k.Close())
			break
		}
		failed++
	}
	if after := sockets(); failed < 3 || !slices.Equal(before, after) {
		t.Errorf("after %d failures open are\n%q, were\n%q", failed, after, before)
	}
}

func TestKindsThatTheKernelMayLack(t *testing.T) {
	red := open(t, testkit.Netns(t, "red")+"/red")
	for _, l := range []kernel.Link{{Kind: "dummy", Name: "d", Group: 1 << 30}, {Kind: "vrf", Name: "v", Table: 7}} {
		err := red.AddLink(l)
		if errors.Is(err, unix.EOPNOTSUPP) {
			t.Logf("%s: %v", l.Kind, err)
			continue
		}
		try(t, err)
		if got := must(red.LinkByName(l.Name))(t); got.Kind != l.Kind || got.Table != l.Table || got.Group != l.Group {
			t.Errorf("made %+v, got %+v", l, got)
		}
	}
}

// Threads are not left in other namespaces.
func TestThreadsComeHome(t *testing.T) {
	red := open(t, testkit.Netns(t, "red")+"/red")
	for range 100 {
		try(t, red.Sysctl("ipv4/ip_forward", "0"))
	}
	home := must(os.Readlink("/proc/self/ns/net"))(t)
	out := must(exec.Command("sh", "-c", fmt.Sprintf("readlink /proc/%d/task/*/ns/net", os.Getpid())).Output())(t)
	for line := range strings.Lines(string(out)) {
		if strings.TrimSpace(line) != home {
			t.Errorf("a thread is in %s, not %s", line, home)
		}
	}
}

// Changes that are made at once get each its own answer.
func TestChangesAtOnce(t *testing.T) {
	red := open(t, testkit.Netns(t, "red")+"/red")
	lo := must(red.LinkByName("lo"))(t)
	try(t, red.SetUp(lo.Index, true))
	route := func(i int) kernel.Route {
		dst := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i / 256), byte(i), 0}), 24)
		return kernel.Route{Link: lo.Index, Dst: dst, Scope: unix.RT_SCOPE_LINK, Table: 254, Protocol: kernel.Protocol}
	}
	const many = 1000
	errs := make([]error, many)
	var wg sync.WaitGroup
	for i := range many {
		wg.Go(func() {
			if i%2 == 0 {
				errs[i] = red.AddRoutes(route(i))[0]
			} else {
				errs[i] = red.DelRoute(route(i))
			}
		})
	}
	wg.Wait()
	for i, err := range errs {
		if added := i%2 == 0; added && err != nil || !added && !errors.Is(err, unix.ESRCH) {
			t.Fatalf("change %d: %v", i, err)
		}
	}
	if got := must(red.Routes(func(r kernel.Route) bool { return r.Protocol == kernel.Protocol }))(t); len(got) != many/2 {
		t.Errorf("%d routes, want %d", len(got), many/2)
	}
}

// An error has the kernel's own words.
func TestErrorsOfTheKernel(t *testing.T) {
	red := open(t, testkit.Netns(t, "red")+"/red")
	lo := must(red.LinkByName("lo"))(t)
	try(t, red.SetUp(lo.Index, true))
	err := red.AddRoutes(kernel.Route{Link: lo.Index, Dst: netip.MustParsePrefix("10.0.0.0/8"), Gateway: netip.MustParseAddr("192.0.2.1"), Table: 254})[0]
	if !errors.Is(err, unix.ENETUNREACH) || !strings.Contains(err.Error(), "gateway") {
		t.Errorf("a gateway that cannot be reached: %v", err)
	}
	if err := red.SetMTU(lo.Index, -1); err == nil || !strings.Contains(err.Error(), "link lo ") {
		t.Errorf("a link that there is: %v", err)
	}
	if err := red.SetMTU(99, 1500); err == nil || !strings.Contains(err.Error(), "link 99 ") {
		t.Errorf("a link that there is not: %v", err)
	}
}
