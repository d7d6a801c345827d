package vpp_test

import (
	"strings"
	"testing"

	vppif "go.fd.io/govpp/binapi/interface"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/drift"
)

// TestMTUChangedByHand follows the rule of docs/configure.md: an MTU that a value declares is
// repaired. One that nobody declares belongs to VPP, whose default nobody else knows. The drift
// names only the field that will be repaired.
func TestMTUChangedByHand(t *testing.T) { onEachVPP(t, mtuChangedByHand) }

func mtuChangedByHand(t *testing.T, vpp *simulated.VPP) {
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	a.want(true,
		interfacesPrefix+"loose", `{"name":"loose","type":"SOFTWARE_LOOPBACK","enabled":true}`,
		interfacesPrefix+"tight", `{"name":"tight","type":"SOFTWARE_LOOPBACK","enabled":true,"mtu":1400}`)
	a.awaitApplied()
	hand := vpp.Dial()
	mtus := func() map[string]uint32 {
		out := map[string]uint32{}
		for _, d := range listed[vppif.SwInterfaceDetails](t, hand, &vppif.SwInterfaceDump{SwIfIndex: ^vppif.SwInterfaceDump{}.SwIfIndex}) {
			if name := strings.TrimRight(d.Tag, "\x00"); name != "" {
				out[name] = d.Mtu[0]
			}
		}
		return out
	}
	for _, d := range listed[vppif.SwInterfaceDetails](t, hand, &vppif.SwInterfaceDump{SwIfIndex: ^vppif.SwInterfaceDump{}.SwIfIndex}) {
		if strings.TrimRight(d.Tag, "\x00") != "" {
			vpp.Ask(hand, &vppif.SwInterfaceSetMtu{SwIfIndex: d.SwIfIndex, Mtu: []uint32{1300, 0, 0, 0}}, &vppif.SwInterfaceSetMtuReply{})
		}
	}
	report, err := drift.Check(t.Context(), a.sched)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Values) != 1 || report.Values[0].Key != interfacesPrefix+"tight" {
		t.Fatalf("drift found %+v, want only the declared MTU", report.Values)
	}
	want := testkit.Parse[*interfaces.Interface](t, `name: "tight" type: SOFTWARE_LOOPBACK enabled: true mtu: 1300`)
	if got := report.Values[0].Actual; !proto.Equal(got, want) {
		t.Errorf("drift shows %v, want %v", got, want)
	}
	if _, err := a.sched.Commit(t.Context(), scheduler.Txn{Refresh: true}); err != nil {
		t.Fatal(err)
	}
	a.awaitApplied()
	if now := mtus(); now["tight"] != 1400 || now["loose"] != 1300 {
		t.Errorf("MTUs after the resync: %v, want the declared 1400, and the 1300 set by hand", now)
	}
}

// TestMTUNoLongerDeclared takes the field mtu out of values. VPP's own MTU returns, also after a
// resync, and if the agent was restarted while the field was declared.
func TestMTUNoLongerDeclared(t *testing.T) { onEachVPP(t, mtuNoLongerDeclared) }

func mtuNoLongerDeclared(t *testing.T, vpp *simulated.VPP) {
	const key = interfacesPrefix + "loop"
	declared := `{"name":"loop","type":"SOFTWARE_LOOPBACK","enabled":true,"mtu":1400}`
	free := `{"name":"loop","type":"SOFTWARE_LOOPBACK","enabled":true}`
	hand := vpp.Dial()
	expect := func(what string, want uint32) {
		t.Helper()
		for _, d := range listed[vppif.SwInterfaceDetails](t, hand, &vppif.SwInterfaceDump{SwIfIndex: ^vppif.SwInterfaceDump{}.SwIfIndex}) {
			if strings.HasPrefix(d.Tag, "loop") && d.Mtu[0] != want {
				t.Errorf("%s: the MTU is %d, want %d", what, d.Mtu[0], want)
			}
		}
	}
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	a.want(true, key, declared)
	a.awaitApplied()
	expect("declared", 1400)
	a.want(false, key, free)
	a.awaitApplied()
	expect("no longer declared", 9000)
	a.want(false, key, declared)
	a.awaitApplied()
	if _, err := a.sched.Commit(t.Context(), scheduler.Txn{Refresh: true}); err != nil {
		t.Fatal(err)
	}
	a.want(false, key, free)
	a.awaitApplied()
	expect("no longer declared after a resync", 9000)
	a.want(false, key, declared)
	a.awaitApplied()
	a.stop()
	a = startAgent(t, vpp.Socket)
	awaitReady(t, a)
	a.want(true, key, declared)
	a.awaitApplied()
	a.want(false, key, free)
	a.awaitApplied()
	expect("no longer declared after a restart", 9000)
	report, err := drift.Check(t.Context(), a.sched)
	if err != nil || len(report.Values) > 0 {
		t.Errorf("drift found %+v, %v", report.Values, err)
	}
}
