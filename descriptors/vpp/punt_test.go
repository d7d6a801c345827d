package vpp_test

import (
	"slices"
	"testing"

	"go.fd.io/govpp/binapi/ip_types"
	vpppunt "go.fd.io/govpp/binapi/punt"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/proto/ligato/vpp/punt"
	"github.com/keyplane/keyplane/scheduler"
)

// TestSocketsOfPrograms registers the sockets that the README shows. The agent is restarted, VPP
// is restarted, and somebody else ends a registration; programs are told VPP's own socket.
func TestSocketsOfPrograms(t *testing.T) { onEachVPP(t, socketsOfPrograms) }

func socketsOfPrograms(t *testing.T, vpp *simulated.VPP) {
	const key, exception = "config/vpp/v2/tohost/l3/ALL/l4/UDP/port/9000", "config/vpp/v2/exception/reason/ipsec4-no-such-tunnel"
	all := shownAt(t, "punt/README.md", 1)
	applied := notebook{}
	a := startAgentWith(t, vpp.Socket, nil, applied)
	awaitReady(t, a)
	if told, err := a.sockets.Read(t.Context()); err != nil || len(told) > 0 {
		t.Errorf("told are %v, %v", told, err)
	}
	if !a.canHave(t, vpp, all) {
		return
	}
	told := func() {
		t.Helper()
		got, err := a.sockets.Read(t.Context())
		host, _ := got["tohost/l3/ALL/l4/UDP/port/9000"].(*punt.ToHost)
		other, _ := got["exception/reason/ipsec4-no-such-tunnel"].(*punt.Exception)
		path := host.GetSocketPath()
		if err != nil || len(got) != 2 || path == "" || path == "/run/program.sock" || other.GetSocketPath() != path || host.GetPort() != 9000 {
			t.Errorf("told are %v, %v", got, err)
		}
	}
	told()
	a.stop()
	vpp.Counts()
	a = startAgentWith(t, vpp.Socket, nil, applied)
	awaitReady(t, a)
	a.want(true, all...)
	expectOnlyReads(t, vpp)
	told()

	of := vpppunt.PuntL4{Af: ip_types.ADDRESS_IP6, Protocol: ip_types.IP_API_PROTO_UDP, Port: 9000}
	request := &vpppunt.PuntSocketDeregister{Punt: vpppunt.Punt{Type: vpppunt.PUNT_API_TYPE_L4, Punt: vpppunt.PuntUnionL4(of)}}
	vpp.Ask(vpp.Dial(), request, &vpppunt.PuntSocketDeregisterReply{})
	if r, err := a.sched.Commit(t.Context(), scheduler.Txn{Refresh: true}); err != nil || !slices.Equal(operations(r.Executed), []string{"CREATE " + key}) {
		t.Errorf("after somebody has ended it: %v, %v", r, err)
	}
	if err := vpp.Restart(); err != nil {
		t.Fatal(err)
	}
	hand := vpp.Dial()
	registered := func() int {
		var n int
		for _, of := range []vpppunt.PuntType{vpppunt.PUNT_API_TYPE_L4, vpppunt.PUNT_API_TYPE_EXCEPTION} {
			all, err := conn.Dump[vpppunt.PuntSocketDetails](t.Context(), hand, &vpppunt.PuntSocketDump{Type: of})
			if err != nil {
				t.Fatal(err)
			}
			n += len(all)
		}
		return n
	}
	until(t, func() bool { return registered() == 3 }, func() string { return "the sockets do not come back" })
	a.awaitState(key, scheduler.Configured)
	a.awaitState(exception, scheduler.Configured)
	told()

	a.stop()
	a = startAgentWith(t, vpp.Socket, nil, applied)
	awaitReady(t, a)
	a.want(true) // nobody declares them any more
	if left := registered(); left != 0 {
		t.Errorf("%d are left behind", left)
	}
}
