package punt

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"go.fd.io/govpp/api"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/existing"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/leftovers"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/vppsim"
	"github.com/keyplane/keyplane/proto/ligato/vpp/punt"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/conformance"
)

// onVPP returns a handler for a VPP with the loopbacks if1, if2 and if3.
func onVPP(t testing.TB, release string) (*handler, *simulated.VPP) {
	t.Helper()
	vpp := simulated.Start(t, release)
	c := vpp.Dial()
	return &handler{Options: Options{API: c, Interfaces: existing.Loopbacks(vpp, c, "if1", "if2", "if3"), Run: func() string { return "1" }}}, vpp
}

// socketReleases are the releases with the messages for sockets.
func socketReleases() []string {
	return slices.DeleteFunc(simulated.Releases(), func(release string) bool { return release == "22.02" })
}

// conforms runs a suite on these releases.
func conforms[V proto.Message](t *testing.T, releases []string, of func(h *handler) scheduler.Descriptor[V, struct{}], s conformance.Suite[V, struct{}]) {
	for _, release := range releases {
		t.Run(release, func(t *testing.T) {
			s := s
			s.New = func(t *testing.T) scheduler.Descriptor[V, struct{}] {
				h, _ := onVPP(t, release)
				return of(h)
			}
			conformance.Run(t, s)
		})
	}
}

func host(t *testing.T, text string) *punt.ToHost {
	return testkit.Parse[*punt.ToHost](t, `l4_protocol: UDP `+text)
}

func TestHostConforms(t *testing.T) {
	const a, b = ` socket_path: "/tmp/a"`, ` socket_path: "/tmp/b"`
	conforms(t, socketReleases(), (*handler).hostDescriptor, conformance.Suite[*punt.ToHost, struct{}]{
		Values: []scheduler.Desired[*punt.ToHost]{
			{Value: host(t, `l3_protocol: IPV4 port: 9000`+a)}, {Value: host(t, `l3_protocol: IPV6 port: 9001`+a)},
			{Value: host(t, `l3_protocol: ALL port: 9002`+b)}, {Value: host(t, `l3_protocol: ALL port: 65534`+b)},
			{Value: host(t, `l3_protocol: IPV4 port: 1`+a)}, {Value: host(t, `l3_protocol: IPV6 port: 1`+b)},
		},
		Changes: []conformance.Change[*punt.ToHost]{
			{Name: "socket", From: host(t, `l3_protocol: IPV4 port: 9000`+a), To: host(t, `l3_protocol: IPV4 port: 9000`+b), How: conformance.Updated},
			{Name: "socket of both", From: host(t, `l3_protocol: ALL port: 9000`+a), To: host(t, `l3_protocol: ALL port: 9000`+b), How: conformance.Updated},
		},
		Invalid: []conformance.Invalid[*punt.ToHost]{
			{Name: "nothing", Value: &punt.ToHost{}, Fields: []string{"l3_protocol", "l4_protocol", "port", "socket_path"}},
			{Name: "other protocols", Value: &punt.ToHost{L3Protocol: 5, L4Protocol: punt.L4Protocol_TCP, Port: 65535, SocketPath: strings.Repeat("x", 108)}, Fields: []string{"l3_protocol", "l4_protocol", "port", "socket_path"}},
			{Name: "NUL", Value: host(t, `l3_protocol: ALL port: 1 socket_path: "/tmp/\000"`), Fields: []string{"socket_path"}},
		},
	})
}

func TestExceptionConforms(t *testing.T) {
	e := func(reason, path string) *punt.Exception {
		return &punt.Exception{Reason: reason, SocketPath: path}
	}
	conforms(t, socketReleases(), (*handler).exceptionDescriptor, conformance.Suite[*punt.Exception, struct{}]{
		Values:  []scheduler.Desired[*punt.Exception]{{Value: e("ipsec4-no-such-tunnel", "/tmp/a")}, {Value: e("ipsec6-no-such-tunnel", "/tmp/a")}},
		Changes: []conformance.Change[*punt.Exception]{{Name: "socket", From: e("ipsec4-no-such-tunnel", "/tmp/a"), To: e("ipsec4-no-such-tunnel", "/tmp/b"), How: conformance.Updated}},
		Invalid: []conformance.Invalid[*punt.Exception]{{Name: "nothing", Value: &punt.Exception{}, Fields: []string{"reason", "socket_path"}}},
	})
}

func TestRedirectConforms(t *testing.T) {
	r := func(text string) *punt.IPRedirect { return testkit.Parse[*punt.IPRedirect](t, text) }
	conforms(t, simulated.Releases(), (*handler).redirectDescriptor, conformance.Suite[*punt.IPRedirect, struct{}]{
		Values: []scheduler.Desired[*punt.IPRedirect]{
			{Value: r(`l3_protocol: IPV4 tx_interface: "if1" next_hop: "10.0.0.1"`)},
			{Value: r(`l3_protocol: IPV6 tx_interface: "if1" next_hop: "fd00::1" rx_interface: "if2"`)},
			{Value: r(`l3_protocol: ALL tx_interface: "if2" rx_interface: "if3"`)},
			{Value: r(`l3_protocol: IPV4 tx_interface: "if3" rx_interface: "if1"`)},
		},
		Changes: []conformance.Change[*punt.IPRedirect]{
			{Name: "next hop", From: r(`l3_protocol: IPV4 tx_interface: "if1" next_hop: "10.0.0.1"`), To: r(`l3_protocol: IPV4 tx_interface: "if1"`), How: conformance.Recreated},
			{Name: "incoming interface", From: r(`l3_protocol: IPV4 tx_interface: "if1"`), To: r(`l3_protocol: IPV4 tx_interface: "if1" rx_interface: "if2"`), How: conformance.Recreated},
			{Name: "spelling", From: r(`l3_protocol: IPV6 tx_interface: "if1" next_hop: "FD00:0::1"`), To: r(`l3_protocol: IPV6 tx_interface: "if1" next_hop: "fd00::1/64"`), How: conformance.Unchanged},
			{Name: "no next hop", From: r(`l3_protocol: IPV4 tx_interface: "if1" next_hop: "0.0.0.0"`), To: r(`l3_protocol: IPV4 tx_interface: "if1"`), How: conformance.Unchanged},
		},
		Invalid: []conformance.Invalid[*punt.IPRedirect]{
			{Name: "nothing", Value: &punt.IPRedirect{}, Fields: []string{"l3_protocol", "tx_interface"}},
			{Name: "no address", Value: r(`tx_interface: "if1" next_hop: "x"`), Fields: []string{"l3_protocol", "next_hop"}},
			{Name: "another version", Value: r(`l3_protocol: IPV4 tx_interface: "if1" next_hop: "fd00::1"`), Fields: []string{"next_hop"}},
			{Name: "the other version", Value: r(`l3_protocol: IPV6 tx_interface: "if1" next_hop: "10.0.0.1"`), Fields: []string{"next_hop"}},
			{Name: "both versions", Value: r(`l3_protocol: ALL tx_interface: "if1" next_hop: "10.0.0.1"`), Fields: []string{"next_hop"}},
		},
	})
}

// foundKeys returns the keys of the values that Retrieve yields, without declared ones.
func foundKeys[V proto.Message](t *testing.T, d scheduler.Descriptor[V, struct{}], wanted ...scheduler.Desired[V]) (out []string) {
	t.Helper()
	for f, err := range conformance.Taken(d.Retrieve(t.Context(), wanted)) {
		if err != nil {
			t.Fatal(err)
		}
		key := f.Key
		if key == "" {
			var err error
			if key, err = d.Model.Key(f.Value); err != nil {
				t.Fatal(err)
			}
		}
		out = append(out, key)
	}
	slices.Sort(out)
	return out
}

// TestVersionsOfHost declares one of two registrations, and both versions of which somebody has
// removed one.
func TestVersionsOfHost(t *testing.T) {
	const all, four, six = "config/vpp/v2/tohost/l3/ALL/l4/UDP/port/9", "config/vpp/v2/tohost/l3/IPV4/l4/UDP/port/9", "config/vpp/v2/tohost/l3/IPV6/l4/UDP/port/9"
	for _, release := range socketReleases() {
		t.Run(release, func(t *testing.T) {
			h, _ := onVPP(t, release)
			d := h.hostDescriptor()
			v := host(t, `l3_protocol: ALL port: 9 socket_path: "/tmp/a"`)
			if err := h.toHost(t.Context(), v); err != nil {
				t.Fatal(err)
			}
			if got := foundKeys(t, d); !slices.Equal(got, []string{all}) {
				t.Errorf("undeclared: %q", got)
			}
			only := host(t, `l3_protocol: IPV4 port: 9 socket_path: "/tmp/a"`)
			if got := foundKeys(t, d, scheduler.Desired[*punt.ToHost]{Key: four, Value: only}); !slices.Equal(got, []string{four, six}) {
				t.Errorf("with IPv4 declared: %q", got)
			}
			if resolved := d.Resolve(four, only); !proto.Equal(resolved, v) {
				t.Errorf("resolved is %v", resolved)
			}
			if parts := d.Parts(all, v); len(parts) != 2 || !proto.Equal(parts[ipv4], only) || parts[ipv6].GetL3Protocol() != punt.L3Protocol_IPV6 || d.Parts(four, only) != nil {
				t.Errorf("the parts are %v", parts)
			}
			if err := h.deregister(t.Context(), portOf(v, ipv6)); err != nil {
				t.Fatal(err)
			}
			if got := foundKeys(t, d, scheduler.Desired[*punt.ToHost]{Key: all, Value: v}); len(got) > 0 {
				t.Errorf("with both declared, and one registered: %q", got)
			}
			if got := foundKeys(t, d); !slices.Equal(got, []string{four}) {
				t.Errorf("one version is found as %q", got)
			}
		})
	}
}

// TestCountsOfRedirections makes, replaces and ends redirections, each twice. VPP counts its
// requests, so the agent must not send one too many.
func TestCountsOfRedirections(t *testing.T) {
	for _, release := range simulated.Releases() {
		t.Run(release, func(t *testing.T) {
			h, vpp := onVPP(t, release)
			a := &punt.IPRedirect{L3Protocol: punt.L3Protocol_ALL, TxInterface: "if1", RxInterface: "if2"}
			b := &punt.IPRedirect{L3Protocol: punt.L3Protocol_IPV4, TxInterface: "if3", RxInterface: "if2", NextHop: "10.0.0.1"}
			shows := func(want string) {
				t.Helper()
				if got := vpp.Show("show ip punt redirect"); vpp.Sim != nil && got != want {
					t.Errorf("VPP has\n%s; expected\n%s", got, want)
				}
			}
			for _, v := range []*punt.IPRedirect{a, a, b, b} {
				if _, err := h.redirect(t.Context(), "", v); err != nil {
					t.Fatal(err)
				}
			}
			shows("ip4 1 times\nip6 1 times\nip4 from loop1 via 10.0.0.1 loop2\nip6 from loop1 via :: loop0\n")
			for range 2 {
				if err := h.endRedirect(t.Context(), "", a, struct{}{}); err != nil {
					t.Fatal(err)
				}
				shows("ip4 1 times\nip4 from loop1 via 10.0.0.1 loop2\n")
			}
			for range 2 {
				if err := h.endRedirect(t.Context(), "", b, struct{}{}); err != nil {
					t.Fatal(err)
				}
				shows("")
			}
		})
	}
}

// keeping are interfaces with one registry of leftovers.
type keeping struct {
	existing.Interfaces
	registry leftovers.Registry
}

func (k *keeping) Leftovers() *leftovers.Registry { return &k.registry }

// TestRedirectionOfDeletedInterface has somebody delete an interface that packets come from, or
// leave by. The redirection is noted, and ended when another interface has the index.
func TestRedirectionOfDeletedInterface(t *testing.T) {
	for _, release := range simulated.Releases() {
		for _, gone := range []string{"if1", "if2"} {
			t.Run(release+"/"+gone, func(t *testing.T) {
				h, vpp := onVPP(t, release)
				keep := keeping{Interfaces: h.Interfaces.(existing.Interfaces)}
				h.Interfaces = &keep
				v := &punt.IPRedirect{L3Protocol: punt.L3Protocol_IPV4, TxInterface: "if1", RxInterface: "if2", NextHop: "10.0.0.1"}
				if _, err := h.redirect(t.Context(), "", v); err != nil {
					t.Fatal(err)
				}
				at := interface_types.InterfaceIndex(keep.Interfaces[gone].Index)
				vpp.Ask(vpp.Dial(), &vppif.DeleteLoopback{SwIfIndex: at}, &vppif.DeleteLoopbackReply{})
				delete(keep.Interfaces, gone)
				if got := foundKeys(t, h.redirectDescriptor()); len(got) > 0 {
					t.Errorf("found are %q", got)
				}
				if err := keep.registry.Reclaim(t.Context(), h.API); err != nil {
					t.Error(err)
				}
				for version := range 2 {
					rx := at
					if meta, ok := keep.Get("if2"); ok {
						rx = meta.SwIfIndex()
					}
					if one, has, err := h.redirection(t.Context(), version, rx); has || err != nil {
						t.Errorf("left behind: %+v, %v", one, err)
					}
				}
			})
		}
	}
}

// TestReasons asks for a reason that VPP does not have, which must not be sent.
func TestReasons(t *testing.T) {
	for _, release := range socketReleases() {
		h, _ := onVPP(t, release)
		err := h.catch(t.Context(), &punt.Exception{Reason: "none", SocketPath: "/tmp/a"})
		if !errors.Is(err, iface.ErrNotFound) || !strings.Contains(err.Error(), "ipsec4-no-such-tunnel") {
			t.Errorf("the error is %v", err)
		}
	}
}

// TestOwnPath asks for the path of VPP's socket before and after a registration.
func TestOwnPath(t *testing.T) {
	for _, release := range socketReleases() {
		t.Run(release, func(t *testing.T) {
			h, vpp := onVPP(t, release)
			path, err := h.ownPath(t.Context())
			if err != nil || path == "" || vpp.Sim != nil && path != "/run/vpp/punt.sock" {
				t.Errorf("the path is %q, %v", path, err)
			}
			if all, err := h.readHost(t.Context()); err != nil || len(all) > 0 {
				t.Errorf("asking has registered %v, %v", all, err)
			}
			if err := h.register(t.Context(), portOf(&punt.ToHost{Port: 9}, ipv4), path); err == nil || !strings.Contains(err.Error(), "VPP's own socket") {
				t.Errorf("registering VPP's own socket: %v", err)
			}
		})
	}
}

// TestNotConfigured has a VPP without a socket: the error says what it needs.
func TestNotConfigured(t *testing.T) {
	vpp := simulated.StartWith(t, vppsim.Options{})
	vpp.Sim.Fail("punt_socket_register", vppsim.Fault{Retval: int32(api.UNSPECIFIED)})
	h := &handler{Options: Options{API: vpp.Dial(), Run: func() string { return "1" }}}
	if err := h.toHost(t.Context(), host(t, `l3_protocol: ALL port: 9 socket_path: "/tmp/a"`)); !errors.Is(err, ErrNotConfigured) {
		t.Errorf("the error is %v", err)
	}
}
