package l3

import (
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/descriptors/linux/iface"
	"github.com/keyplane/keyplane/descriptors/linux/internal/drift"
	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/internal/verbs"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/internal/scratch"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/linux/l3"
	"github.com/keyplane/keyplane/proto/ligato/linux/namespace"
)

func TestMain(m *testing.M) { os.Exit(scratch.Main(m.Run)) }

func try(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// links is an index of interfaces.
type links map[string]iface.Meta

func (l links) Get(name string) (iface.Meta, bool) { m, ok := l[name]; return m, ok }
func (l links) All() map[string]iface.Meta         { return l }

// inRed returns a handler, and the namespace red, which has the interfaces if1 and
// if2, up, with addresses 10.1.0.1/24, fd01::1/64 and 10.2.0.1/24, fd02::1/64.
func inRed(t testing.TB) (handler, *netns.Space, links) {
	h, red, index, _ := inNamed(t)
	return h, red, index
}

// inNamed tells the name of the namespace, too.
func inNamed(t testing.TB) (handler, *netns.Space, links, string) {
	t.Helper()
	h, names := fnv.New32a(), t.TempDir() // another one for each call
	h.Write([]byte(names))
	other := fmt.Sprint("red-", h.Sum32())
	try(t, os.Symlink(filepath.Join(testkit.Netns(t, other), other), filepath.Join(names, "red")))
	log := slog.New(slog.DiscardHandler)
	spaces := netns.New(netns.Options{Dir: names})
	ns := &namespace.NetNamespace{Type: namespace.NetNamespace_NSID, Reference: "red"}
	red, err := spaces.Open(ns)
	try(t, err)
	t.Cleanup(red.Close)
	try(t, red.AddVETH(kernel.Link{Name: "if1"}, "if2", red.Kernel))
	index := links{}
	for i, name := range []string{"if1", "if2"} {
		l, err := red.LinkByName(name)
		try(t, err, red.SetUp(l.Index, true))
		for _, p := range [][]string{{"10.1.0.1/24", "fd01::1/64"}, {"10.2.0.1/24", "fd02::1/64"}}[i] {
			try(t, red.AddAddr(kernel.Addr{Link: l.Index, Prefix: netip.MustParsePrefix(p)}))
		}
		index[name] = iface.Meta{Index: l.Index, HostName: name, Namespace: ns, NS: red.ID}
	}
	watch := drift.New(drift.Options{Spaces: spaces, Log: log})
	return handler{Options{Spaces: spaces, Watch: watch, Interfaces: index, Log: log}}, red, index, other
}

func route(t testing.TB, text string) *l3.Route { return testkit.Parse[*l3.Route](t, text) }

func TestLifeOfARoute(t *testing.T) {
	h, _, _ := inRed(t)
	b := &verbs.Bench[*l3.Route, RouteMeta]{D: h.routeDescriptor()}
	lives := [][]string{
		{
			`dst_network: "10.9.0.0/16" outgoing_interface: "if1"`,
			`dst_network: "10.9.0.0/16" outgoing_interface: "if1" gw_addr: "10.1.0.2"`,
			`dst_network: "10.9.0.0/16" outgoing_interface: "if1" gw_addr: "10.1.0.3"`,
			`dst_network: "10.9.0.0/16" outgoing_interface: "if1" gw_addr: "10.1.0.3" scope: SITE`,
			`dst_network: "10.9.0.0/16" outgoing_interface: "if1" gw_addr: "10.1.0.3" metric: 7`,
			`dst_network: "10.9.0.0/16" outgoing_interface: "if1" scope: HOST`,
		},
		{
			`dst_network: "0.0.0.0/0" outgoing_interface: "if1" gw_addr: "10.1.0.2"`,
			`dst_network: "0.0.0.0/0" outgoing_interface: "if1" gw_addr: "10.1.0.2" metric: 4294967295`,
		},
		{`dst_network: "10.9.8.7/16" outgoing_interface: "if1"`},
		{
			`dst_network: "fd09::/64" outgoing_interface: "if1"`,
			`dst_network: "fd09::/64" outgoing_interface: "if1" gw_addr: "fd01::2"`,
			`dst_network: "fd09::/64" outgoing_interface: "if1" gw_addr: "fd01::3"`,
			`dst_network: "fd09::/64" outgoing_interface: "if1" gw_addr: "fd01::3" metric: 7`,
			`dst_network: "fd09::/64" outgoing_interface: "if1" scope: LINK`,
		},
		{`dst_network: "::/0" outgoing_interface: "if1" gw_addr: "fd01:0::2"`},
	}
	for _, life := range lives {
		var others []*l3.Route
		for _, text := range life[1:] {
			others = append(others, route(t, text))
		}
		b.Lifecycle(t, route(t, life[0]), others...)
		if t.Failed() {
			t.Fatalf("in the life of %s", life[0])
		}
	}
}

// Whoever watches compares routes: the kernel has to show them as they were given.
func TestRoutesStandAsGiven(t *testing.T) {
	h, red, _ := inRed(t)
	for _, text := range []string{
		`dst_network: "10.9.8.7/16"`, `dst_network: "10.9.0.0/16" gw_addr: "10.1.0.2" metric: 7`, `dst_network: "10.7.0.1/32" scope: HOST`,
		`dst_network: "0.0.0.0/0" gw_addr: "10.1.0.2"`, `dst_network: "::/0" gw_addr: "fd01:0::2"`, `dst_network: "fd09::1/64"`,
		`dst_network: "fd08::/64" gw_addr: "fd01::2" scope: SITE metric: 7`, `dst_network: "fd07::1/128" scope: LINK`,
	} {
		meta, err := h.createRoute(t.Context(), text, route(t, text+` outgoing_interface: "if1"`))
		try(t, err)
		have, err := red.Routes(func(r kernel.Route) bool { return r == meta.Route })
		if err != nil || len(have) != 1 {
			t.Errorf("%s stands as %+v, %v, given %+v", text, have, err, meta.Route)
		}
	}
}

// On an EXISTING interface another agent may be at work, under the same protocol.
func TestAnotherAgentOnAnExistingInterface(t *testing.T) {
	h, _, index := inRed(t)
	routes := &verbs.Bench[*l3.Route, RouteMeta]{D: h.routeDescriptor()}
	arps := &verbs.Bench[*l3.ARPEntry, ARPMeta]{D: h.arpDescriptor()}
	r, theirs := route(t, `dst_network: "10.9.0.0/16" outgoing_interface: "if1"`), route(t, `dst_network: "10.8.0.0/16" outgoing_interface: "if1"`)
	n := testkit.Parse[*l3.ARPEntry](t, `interface: "if1" ip_address: "10.1.0.9" hw_address: "02:fe:00:00:00:09"`)
	their := testkit.Parse[*l3.ARPEntry](t, `interface: "if1" ip_address: "10.1.0.8" hw_address: "02:fe:00:00:00:08"`)
	routes.Create(t, r)
	routes.Create(t, theirs)
	arps.Create(t, n)
	arps.Create(t, their)
	routes.Expect(t, r, theirs)
	arps.Expect(t, n, their)
	shared := index["if1"]
	shared.Existing = true
	index["if1"] = shared
	for _, found := range []int{len(routes.Retrieve(t, r)), len(arps.Retrieve(t, n))} {
		if found != 1 {
			t.Errorf("%d found to be ours, want 1", found)
		}
	}
	routes.Expect(t, r, theirs) // both are, to whoever wants both
	arps.Expect(t, n, their)
}

// One destination by two interfaces: the metric tells the routes apart.
func TestRouteInTheWay(t *testing.T) {
	h, red, index := inRed(t)
	b := &verbs.Bench[*l3.Route, RouteMeta]{D: h.routeDescriptor()}
	first := route(t, `dst_network: "10.9.0.0/16" outgoing_interface: "if1" gw_addr: "10.1.0.2"`)
	second := route(t, `dst_network: "10.9.0.0/16" outgoing_interface: "if2" gw_addr: "10.2.0.2"`)
	b.Create(t, first)
	_, err := h.createRoute(t.Context(), "", second)
	if !errors.Is(err, ErrOwnRoute) || !strings.HasSuffix(err.Error(), "conflicts with another declared route: one via 10.1.0.2 on link if1; remove it, or set another metric") {
		t.Errorf("the same destination and metric: %v", err)
	}
	second.Metric = 1
	b.Create(t, second)
	b.Expect(t, first, second)

	theirs := kernel.Route{Link: index["if1"].Index, Dst: netip.MustParsePrefix("10.8.0.0/16"), Scope: unix.RT_SCOPE_LINK, Table: 254, Protocol: unix.RTPROT_STATIC}
	try(t, red.AddRoutes(theirs)[0])
	b.Expect(t, first, second)
	_, err = h.createRoute(t.Context(), "", route(t, `dst_network: "10.8.0.0/16" outgoing_interface: "if1"`))
	if !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "another program: one on link if1, of protocol 4;") {
		t.Errorf("a foreign route: %v", err)
	}
	have, err := red.Routes(func(r kernel.Route) bool { return r.Dst == theirs.Dst })
	if err != nil || len(have) != 1 || have[0] != theirs {
		t.Errorf("it is %+v, %v, was %+v", have, err, theirs)
	}
}

// What has gone with its interface or namespace is deleted without an error.
func TestDeleteWhatIsGone(t *testing.T) {
	h, red, index := inRed(t)
	routes := &verbs.Bench[*l3.Route, RouteMeta]{D: h.routeDescriptor()}
	arps := &verbs.Bench[*l3.ARPEntry, ARPMeta]{D: h.arpDescriptor()}
	r := route(t, `dst_network: "10.9.0.0/16" outgoing_interface: "if1" gw_addr: "10.1.0.2"`)
	n := testkit.Parse[*l3.ARPEntry](t, `interface: "if1" ip_address: "10.1.0.9" hw_address: "02:fe:00:00:00:09"`)
	routes.Create(t, r)
	arps.Create(t, n)
	try(t, red.DelLink(index["if1"].Index))
	routes.Delete(t, r)
	arps.Delete(t, n)
	if _, err := h.createRoute(t.Context(), "", r); err == nil {
		t.Error("created without the link")
	}
	delete(index, "if1")
	if _, err := h.createRoute(t.Context(), "", r); !errors.Is(err, ErrNotFound) {
		t.Errorf("creating without the interface: %v", err)
	}
	if err := h.deleteRoute(t.Context(), "", r, RouteMeta{NS: kernel.ID{Ino: 1}}); err != nil {
		t.Errorf("deleting without the namespace: %v", err)
	}
}

func TestRouteOfAVRFUsesItsTable(t *testing.T) {
	h, red, index := inRed(t)
	in := index["if1"]
	in.VRF = "blue"
	index["if1"], index["blue"] = in, iface.Meta{NS: in.NS, Table: 77}
	b := &verbs.Bench[*l3.Route, RouteMeta]{D: h.routeDescriptor()}
	r := route(t, `dst_network: "10.9.0.0/16" outgoing_interface: "if1"`)
	b.Create(t, r)
	have, err := red.Routes(func(r kernel.Route) bool { return r.Protocol == kernel.Protocol })
	if err != nil || len(have) != 1 || have[0].Table != 77 {
		t.Errorf("routes %+v, %v", have, err)
	}
	b.Expect(t, r)
	b.Delete(t, r)
}

func TestLifeOfANeighbour(t *testing.T) {
	h, _, _ := inRed(t)
	b := &verbs.Bench[*l3.ARPEntry, ARPMeta]{D: h.arpDescriptor()}
	for _, ip := range []string{"10.1.0.9", "fd01:0::9"} {
		entry := func(mac string) *l3.ARPEntry {
			return &l3.ARPEntry{Interface: "if1", IpAddress: ip, HwAddress: mac}
		}
		b.Lifecycle(t, entry("02:fe:00:00:00:09"), entry("02:FE:00:00:00:0A"))
	}
}

func TestNeighbourInTheWay(t *testing.T) {
	h, red, index := inRed(t)
	b := &verbs.Bench[*l3.ARPEntry, ARPMeta]{D: h.arpDescriptor()}
	v := testkit.Parse[*l3.ARPEntry](t, `interface: "if1" ip_address: "10.1.0.9" hw_address: "02:fe:00:00:00:09"`)
	theirs, err := kernelNeighbour(v, index["if1"].Index)
	theirs.Protocol, theirs.MAC = 0, []byte{2, 0, 0, 0, 0, 1}
	try(t, err, red.AddNeighbour(theirs, false))
	b.Expect(t)
	if _, err := h.createARP(t.Context(), "", v); !errors.Is(err, ErrConflict) {
		t.Errorf("a foreign neighbour: %v", err)
	}
	try(t, red.DelNeighbour(theirs))
	b.Create(t, v)
	b.Expect(t, v)
	b.Delete(t, v)
}

func TestValidate(t *testing.T) {
	routes := []struct{ value, invalid string }{
		{`dst_network: "10.9.0.0/16" outgoing_interface: "if1"`, ""},
		{`dst_network: "10.9.0.0/16" outgoing_interface: "if1" gw_addr: "10.1.0.2" scope: GLOBAL metric: 4294967295`, ""},
		{`dst_network: "::/0" outgoing_interface: "if1" gw_addr: "fd01::2"`, ""},
		{`dst_network: "alloc:net/x" outgoing_interface: "if1" gw_addr: "alloc:net/GW"`, ""},
		{``, "outgoing_interface dst_network"},
		{`dst_network: "10.9.0.0" outgoing_interface: "if1" gw_addr: "10.1.0.2/33"`, "dst_network gw_addr"},
		{`dst_network: "alloc:net" outgoing_interface: "if1" gw_addr: "alloc:net/x"`, "dst_network gw_addr"},
		{`dst_network: "10.9.0.0/16" outgoing_interface: "if1" gw_addr: "fd01::2"`, "gw_addr"},
		{`dst_network: "10.9.0.0/16" outgoing_interface: "if1" gw_addr: "0.0.0.0" scope: LINK`, ""},
		{`dst_network: "fd09::/16" outgoing_interface: "if1" gw_addr: "fe80::1%if1"`, "gw_addr"},
		{`dst_network: "10.9.0.0/16" outgoing_interface: "if1" gw_addr: "10.1.0.2" scope: LINK`, "scope"},
		{`dst_network: "10.9.0.0/16" outgoing_interface: "if1" scope: 9`, "scope"},
	}
	for _, tt := range routes {
		v, _ := normalizeRoute("", route(t, tt.value))
		err := validateRoute("", v)
		if got := strings.Join(models.Fields(err), " "); got != tt.invalid {
			t.Errorf("%s\ninvalid are %q, want %q: %v", tt.value, got, tt.invalid, err)
		}
	}
	arps := []struct{ value, invalid string }{
		{`interface: "if1" ip_address: "10.1.0.9" hw_address: "02:fe:00:00:00:09"`, ""},
		{`interface: "if1" ip_address: "alloc:net/x" hw_address: "02-FE-00-00-00-09"`, ""},
		{``, "interface ip_address hw_address"},
		{`interface: "if1" ip_address: "10.1.0.9/24" hw_address: "02:fe"`, "ip_address hw_address"},
		{`interface: "if1" ip_address: "alloc:net" hw_address: "02:fe:00:00:00:09"`, "ip_address"},
	}
	for _, tt := range arps {
		err := validateARP("", testkit.Parse[*l3.ARPEntry](t, tt.value))
		if got := strings.Join(models.Fields(err), " "); got != tt.invalid {
			t.Errorf("%s\ninvalid are %q, want %q: %v", tt.value, got, tt.invalid, err)
		}
	}
}

func TestGatewayReachable(t *testing.T) {
	tests := []struct {
		route, key string
		want       bool
	}{
		{`gw_addr: "10.1.0.2"`, "linux/interface/if1/address/static/10.1.0.1/24", true},
		{`gw_addr: "10.1.0.2"`, "linux/interface/if1/address/existing/10.1.0.1/24", true},
		{`gw_addr: "10.1.0.2"`, "linux/interface/if1/address/static/10.2.0.1/24", false},
		{`gw_addr: "10.1.0.2"`, "linux/interface/if1/address/alloc_ref/alloc:net", false},
		{`gw_addr: "10.1.0.2"`, "linux/link-local-route/if1/dest-address/10.1.0.2/32", true},
		{`gw_addr: "10.1.0.2"`, "linux/link-local-route/if1/dest-address/10.1.0.3/32", false},
		{`gw_addr: "10.1.0.2"`, "linux/link-local-route/if1/dest-address/alloc:net/if1", false},
		{`gw_addr: "alloc:net/GW"`, "netalloc/neigh-gw/network/net/interface/if1", true},
		{`gw_addr: "alloc:net/if2/GW"`, "netalloc/neigh-gw/network/net/interface/if2", true},
		{`gw_addr: "alloc:net/GW"`, "netalloc/neigh-gw/network/other/interface/if1", false},
		{`gw_addr: "alloc:net/GW"`, "linux/link-local-route/if1/dest-address/alloc:net/GW", true},
	}
	for _, tt := range tests {
		v := route(t, `dst_network: "10.9.0.0/16" outgoing_interface: "if1" `+tt.route)
		deps := handler{}.routeDependencies("", v)
		last := deps[len(deps)-1]
		in := false
		for _, p := range last.Prefixes {
			in = in || strings.HasPrefix(tt.key, p)
		}
		if got := last.Label == "gw-reachable" && in && last.Match(tt.key); got != tt.want {
			t.Errorf("%s by %s: %v", tt.route, tt.key, got)
		}
	}
}

func TestDependencies(t *testing.T) {
	labels := func(v *l3.Route) (out []string) {
		for _, d := range (handler{}).routeDependencies("", v) {
			out = append(out, d.Label)
		}
		return out
	}
	v := route(t, `dst_network: "alloc:net/x" outgoing_interface: "if1" gw_addr: "alloc:net/GW"`)
	want := "outgoing-interface-is-up outgoing-interface-has-ip-address dst_network-alloc:net/x gw_addr-alloc:net/GW gw-reachable"
	if got := strings.Join(labels(v), " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	deps := arpDependencies("", &l3.ARPEntry{Interface: "if1", IpAddress: "alloc:net/x"})
	if len(deps) != 3 || deps[0].Key != "linux/interface/state/if1/UP" || deps[2].Key != "config/netalloc/v1/ip/network/net/interface/x" {
		t.Errorf("%+v", deps)
	}
	// A link-local address is on every link that is up.
	v = route(t, `dst_network: "::/0" outgoing_interface: "if1" gw_addr: "fe80::1"`)
	deps = arpDependencies("", &l3.ARPEntry{Interface: "if1", IpAddress: "fe80::2"})
	if got := strings.Join(labels(v), " "); got != "outgoing-interface-is-up" || len(deps) != 1 {
		t.Errorf("link-local: %s; %+v", got, deps)
	}
	for text, want := range map[string]int{`scope: LINK`: 1, ``: 1, `gw_addr: "10.0.0.1"`: 0, `scope: HOST`: 0} {
		v := route(t, `dst_network: "10.9.0.0/16" outgoing_interface: "if1" `+text)
		if got := derivedOfRoute("", v); len(got) != want {
			t.Errorf("%s derives %v", text, got)
		}
	}
}
