package vppsim_test

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"go.fd.io/govpp/api"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/vlib"
	"go.fd.io/govpp/binapi/vpe"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/internal/scratch"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/vppsim"
	"github.com/keyplane/keyplane/internal/vppwire"
)

// The rows of TestBehaviour are what a real VPP was seen to do (25.10, where nothing else
// is said). What changed with a later release asks vpp.since. They run on the simulated VPP of
// 25.10 and of 26.06, or with `make test-vpp` on a real one: on a
// new one for each row with VPP=binary, or on the one behind VPP_SOCKET, in which what a
// row makes is removed again.
type row struct {
	name string
	do   func(v *vpp)
}

// TestMain gives the rows a network of their own. The VPP behind VPP_SOCKET is reached from
// where the tests were started.
func TestMain(m *testing.M) {
	if os.Getenv("VPP_SOCKET") != "" {
		os.Exit(m.Run())
	}
	os.Exit(scratch.Main(m.Run))
}

func TestBehaviour(t *testing.T) {
	if isReal() {
		behaviour(t, "")
		return
	}
	for _, release := range []string{"25.10", "26.06"} {
		t.Run(release, func(t *testing.T) { behaviour(t, release) })
	}
}

// isReal reports whether the rows run on a real VPP.
func isReal() bool { return os.Getenv("VPP") != "" || os.Getenv("VPP_SOCKET") != "" }

// behaviour runs the rows on the simulated VPP of a release, or on the real one.
func behaviour(t *testing.T, release string) {
	for domain, rows := range map[string][]row{
		"interfaces": interfaceRows(), "addresses": addressRows(), "tables": tableRows(), "routes": routeRows(), "connection": connectionRows(),
		"switching": switchingRows(), "neighbours": neighbourRows(), "kinds": kindRows(), "DHCP": dhcpRows(), "services": serviceRows(),
		"bridges": bridgeRows(), "what stays": stayingRows(), "links": linkRows(), "tunnels": tunnelRows(), "hidden": hiddenRows(), "devices": deviceRows(),
		"access lists": accessRows(), "policies": policyRows(), "host": hostRows(), "NAT": natRows(),
		"punt":            puntRows(),
		"DNS":             dnsRows(),
		"IPsec":           ipsecRows(),
		"segment routing": segmentRows(),
		"flows":           flowRows(),
		"WireGuard":       wireguardRows(),
	} {
		t.Run(domain, func(t *testing.T) {
			for _, r := range rows {
				t.Run(r.name, func(t *testing.T) { r.do(reach(t, release)) })
			}
		})
	}
}

// A vpp is one that a row talks to.
type vpp struct {
	*testing.T
	*conn.Conn
	socket string
	fresh  bool        // nothing was ever made in it
	sim    *vppsim.Sim // nil: it is a real one

	release string // such as 26.06; a real one says it when it is asked
}

type index = interface_types.InterfaceIndex

const (
	none    = ^index(0)
	unknown = index(9999)
)

// reach connects to the real VPP, or to a simulated one of a release.
func reach(t *testing.T, release string) *vpp {
	t.Helper()
	v := &vpp{T: t, release: release, socket: os.Getenv("VPP_SOCKET"), fresh: os.Getenv("VPP_SOCKET") == ""}
	switch binary := os.Getenv("VPP"); {
	case v.socket != "":
	case binary != "":
		v.socket = testkit.StartVPPHere(t, binary).Socket
	default:
		v.socket = filepath.Join(t.TempDir(), "api.sock")
		sim, err := vppsim.New(vppsim.Options{Socket: v.socket, Release: release})
		if err == nil {
			err = sim.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(sim.Kill)
		v.sim = sim
	}
	v.Conn = dial(t, v.socket)
	return v
}

// since reports whether VPP is of a release or of a later one. What is on the way to a release,
// such as 26.10-rc0, counts as that release.
func (v *vpp) since(release string) bool {
	v.Helper()
	if v.sim == nil {
		var r vpe.ShowVersionReply
		v.call("show_version", 0, &vpe.ShowVersion{}, &r)
		v.release = r.Version[:min(len(r.Version), len("26.06"))]
	}
	return v.release >= release
}

func dial(t *testing.T, socket string) *conn.Conn {
	t.Helper()
	c, err := conn.Dial(t.Context(), socket, "test")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = c.Run(context.Background()); close(ended) }()
	t.Cleanup(func() { c.Close(errors.New("the row is over")); <-ended })
	return c
}

// is checks what became of a call. A VPP without the plugin that serves it is not told off.
func (v *vpp) is(what string, err error, want api.VPPApiError) {
	v.Helper()
	if missing := (*conn.Missing)(nil); errors.As(err, &missing) {
		testkit.Need(v, "a VPP with the plugin that serves "+missing.Message, false)
	}
	if want == 0 && err != nil || want != 0 && !errors.Is(err, want) {
		v.Errorf("%s: %v, want %d (%v)", what, err, want, want)
	}
}

func (v *vpp) call(what string, want api.VPPApiError, request, reply api.Message) {
	v.Helper()
	v.is(what, v.Call(v.Context(), request, reply), want)
}

// command runs a command of VPP's command line.
func (v *vpp) command(line string) string {
	v.Helper()
	var r vlib.CliInbandReply
	v.call(line, 0, &vlib.CliInband{Cmd: line}, &r)
	return r.Reply
}

func dump[T any, P interface {
	*T
	api.Message
}](v *vpp, request api.Message) []T {
	v.Helper()
	all, err := conn.Dump[T, P](v.Context(), v.Conn, request)
	if err != nil {
		v.Fatal(err)
	}
	return all
}

// loop makes a loopback that is up, for the time of the row.
func (v *vpp) loop() index {
	v.Helper()
	var r vppif.CreateLoopbackReply
	v.call("create_loopback", 0, &vppif.CreateLoopback{}, &r)
	v.flags(r.SwIfIndex, 1, 0)
	v.Cleanup(func() { _ = v.delete(r.SwIfIndex) }) // the row may have deleted it
	return r.SwIfIndex
}

func (v *vpp) delete(i index) error {
	return v.Call(context.WithoutCancel(v.Context()), &vppif.DeleteLoopback{SwIfIndex: i}, &vppif.DeleteLoopbackReply{})
}

func (v *vpp) flags(i index, flags interface_types.IfStatusFlags, want api.VPPApiError) {
	v.Helper()
	v.call("sw_interface_set_flags", want, &vppif.SwInterfaceSetFlags{SwIfIndex: i, Flags: flags}, &vppif.SwInterfaceSetFlagsReply{})
}

// details of an interface; nil: there is none.
func (v *vpp) details(i index) *vppif.SwInterfaceDetails {
	v.Helper()
	for _, d := range dump[vppif.SwInterfaceDetails](v, &vppif.SwInterfaceDump{SwIfIndex: none}) {
		if d.SwIfIndex == i {
			return &d
		}
	}
	return nil
}

func (v *vpp) address(i index, add bool, address string) error {
	p := vppwire.AddressWithPrefix(netip.MustParsePrefix(address))
	return v.Call(v.Context(), &vppif.SwInterfaceAddDelAddress{SwIfIndex: i, IsAdd: add, Prefix: p}, &vppif.SwInterfaceAddDelAddressReply{})
}

func (v *vpp) addresses(i index, ipv6 bool) (out []string) {
	v.Helper()
	for _, d := range dump[ip.IPAddressDetails](v, &ip.IPAddressDump{SwIfIndex: i, IsIPv6: ipv6}) {
		out = append(out, vppwire.PrefixOf(d.Prefix).String())
	}
	return out
}

// table makes a table, for the time of the row.
func (v *vpp) table(id uint32, name string) {
	v.Helper()
	t := ip.IPTable{TableID: id, Name: name}
	v.call("ip_table_add_del", 0, &ip.IPTableAddDel{IsAdd: true, Table: t}, &ip.IPTableAddDelReply{})
	v.Cleanup(func() {
		ctx := context.WithoutCancel(v.Context())
		_ = v.Call(ctx, &ip.IPTableFlush{Table: t}, &ip.IPTableFlushReply{})                 // the row may have deleted it
		_ = v.Call(ctx, &ip.IPTableAddDel{IsAdd: false, Table: t}, &ip.IPTableAddDelReply{}) // the same
	})
}

// tables are the names of the IPv4 tables, by id.
func (v *vpp) tables() map[uint32]string {
	v.Helper()
	out := map[uint32]string{}
	for _, d := range dump[ip.IPTableDetails](v, &ip.IPTableDump{}) {
		if !d.Table.IsIP6 {
			out[d.Table.TableID] = d.Table.Name
		}
	}
	return out
}
