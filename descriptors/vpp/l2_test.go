package vpp_test

import (
	"errors"
	"strings"
	"testing"

	vppl2 "go.fd.io/govpp/binapi/l2"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/descriptors/vpp/l2"
	"github.com/keyplane/keyplane/scheduler"
)

const (
	bridgeKey = "config/vpp/l2/v2/bridge-domain/bd1"
	fibKey    = "config/vpp/l2/v2/fib/bd1/mac/62:89:C6:A3:6D:5C"
	loopKey   = "config/vpp/v2/interfaces/loop1"
	memberKey = "vpp/bd/bd1/interface/loop1"
)

func (a *agent) expectState(key string, want scheduler.State) {
	a.Helper()
	if s, ok := a.sched.Status(key); !ok || s.State != want {
		a.Errorf("%s is %+v, want %s", key, s, want)
	}
}

func (a *agent) unwant(keys ...string) *scheduler.Record {
	a.Helper()
	txn := scheduler.Txn{}
	for _, key := range keys {
		txn.Changes = append(txn.Changes, scheduler.Unwant(key))
	}
	record, err := a.sched.Commit(a.Context(), txn)
	if err != nil {
		a.Fatal(err)
	}
	return record
}

func bridged() []string {
	return []string{
		fibKey, `{"bridge_domain":"bd1","phys_address":"62:89:C6:A3:6D:5C","action":"FORWARD","outgoing_interface":"loop1","static_config":true}`,
		bridgeKey, `{"name":"bd1","flood":true,"learn":true,"forward":true,"interfaces":[{"name":"loop1","split_horizon_group":3}],
			"arp_termination_table":[{"ip_address":"10.0.0.9","phys_address":"02:00:00:00:00:09"}]}`,
		loopKey, `{"name":"loop1","type":"SOFTWARE_LOOPBACK","enabled":true}`,
	}
}

// TestBridgeDomainInAnyOrder has a FIB entry, its bridge domain and the interface come one
// after the other, the bridge domain go and come back, and VPP and the agent restarted.
func TestBridgeDomainInAnyOrder(t *testing.T) { onEachVPP(t, bridgeDomainInAnyOrder) }

func bridgeDomainInAnyOrder(t *testing.T, vpp *simulated.VPP) {
	const (
		configured = scheduler.Configured
		pending    = scheduler.Pending
	)
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	all := bridged()

	a.want(false, all[:2]...)
	a.expectState(fibKey, pending)
	a.want(false, all[2:4]...)
	a.expectState(bridgeKey, configured)
	a.expectState(memberKey, pending)
	a.want(false, all[4:]...)
	a.expectState(memberKey, configured)
	a.expectState(fibKey, configured)
	stands := func() {
		t.Helper()
		awaits(t, vpp, "show bridge-domain", "bd1 flags 7 age 0 loop0 normal shg 3 arp 10.0.0.9 02:00:00:00:00:09")
		awaits(t, vpp, "show l2fib", "bd1 62:89:c6:a3:6d:5c loop0 static true bvi false")
	}
	stands()

	record := a.unwant(bridgeKey)
	var order []string
	for _, op := range record.Executed.All() {
		if !op.Noop {
			order = append(order, op.Verb.String()+" "+op.Key)
		}
	}
	if got, want := strings.Join(order, ", "), "DELETE "+fibKey+", DELETE "+memberKey+", DELETE "+bridgeKey; got != want {
		t.Errorf("removed as\n%s, want\n%s", got, want)
	}
	a.expectState(fibKey, pending)
	if left := vpp.Show("show l2fib"); left != "" {
		t.Errorf("left behind:\n%s", left)
	}
	a.want(false, all[2:4]...)
	stands()

	if err := vpp.Restart(); err != nil {
		t.Fatal(err)
	}
	stands()

	a.stop()
	vpp.Counts()
	again := startAgent(t, vpp.Socket)
	awaitReady(t, again)
	again.want(true, all...)
	stands()
	expectOnlyReads(t, vpp)
}

// TestBridgeDomainChangesInPlace changes the flags and the MAC age of a bridge domain. Its member and
// its L2 FIB entry stay.
func TestBridgeDomainChangesInPlace(t *testing.T) { onEachVPP(t, bridgeDomainChangesInPlace) }

func bridgeDomainChangesInPlace(t *testing.T, vpp *simulated.VPP) {
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	a.want(true, bridged()...)
	a.awaitApplied()
	for _, to := range []struct{ settings, shown string }{
		{`"learn":true,"forward":true,"mac_age":5`, "flags 3 age 5"},
		{`"flood":true,"unknown_unicast_flood":true,"arp_termination":true,"mac_age":5`, "flags 28 age 5"},
		{`"learn":true`, "flags 1 age 0"},
	} {
		record := a.want(false, bridgeKey, `{"name":"bd1",`+to.settings+`,"interfaces":[{"name":"loop1","split_horizon_group":3}]}`)
		if record.Executed.Len() != 1 || record.Executed.At(0).Verb != scheduler.Update {
			t.Errorf("with %s: executed %v, want one UPDATE", to.settings, record.Executed)
		}
		awaits(t, vpp, "show bridge-domain", "bd1 "+to.shown+" loop0 normal shg 3")
		awaits(t, vpp, "show l2fib", "bd1 62:89:c6:a3:6d:5c loop0 static true bvi false")
		a.resyncsInSync(vpp)
	}
}

// TestInterfaceIsSwitchedOneWay has an interface declared for a cross-connect and for two bridge
// domains: one has it, and VPP, which would move it and say nothing, is asked for no other.
func TestInterfaceIsSwitchedOneWay(t *testing.T) { onEachVPP(t, interfaceIsSwitchedOneWay) }

func interfaceIsSwitchedOneWay(t *testing.T, vpp *simulated.VPP) {
	const (
		configured = scheduler.Configured
		invalid    = scheduler.Invalid
		pending    = scheduler.Pending
		xconnect   = "config/vpp/l2/v2/xconnect/loop1"
		otherKey   = "config/vpp/l2/v2/bridge-domain/bd2"
		other      = "vpp/bd/bd2/interface/loop1"
	)
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	a.want(true, bridged()...) // so that loop1 is VPP's loop0
	_, err := a.declare(true, append(bridged(), "config/vpp/v2/interfaces/loop2", `{"name":"loop2","type":"SOFTWARE_LOOPBACK"}`,
		otherKey, `{"name":"bd2","interfaces":[{"name":"loop1","bridged_virtual_interface":true},{"name":"loop2"}]}`)...)
	const wrong = `name is "loop1"; expected an interface that is in no other bridge domain or cross-connect (see `
	if !errors.Is(err, scheduler.ErrInvalid) || !strings.Contains(err.Error(), wrong+memberKey+")") {
		t.Errorf("it says %v", err)
	}
	a.expectState(memberKey, configured)
	a.expectState(other, invalid)
	a.expectState("vpp/bd/bd2/interface/loop2", configured)
	awaits(t, vpp, "show bridge-domain", "loop0 normal shg 3")

	_, err = a.declare(false, xconnect, `{"receive_interface":"loop1","transmit_interface":"loop2"}`)
	if !errors.Is(err, scheduler.ErrInvalid) {
		t.Errorf("it says %v", err)
	}
	a.expectState(xconnect, invalid)
	a.expectState(memberKey, configured)
	a.expectState(fibKey, configured)

	a.unwant(bridgeKey, xconnect)
	a.expectState(fibKey, pending)
	a.expectState(other, configured)
	awaits(t, vpp, "show bridge-domain", "loop0 bvi shg 0")
}

// TestInterfaceStaysWhereSomebodyHasPutIt has an interface of ours that somebody else has put into
// a bridge domain of his own.
func TestInterfaceStaysWhereSomebodyHasPutIt(t *testing.T) {
	onEachVPP(t, interfaceStaysWhereSomebodyHasPutIt)
}

func interfaceStaysWhereSomebodyHasPutIt(t *testing.T, vpp *simulated.VPP) {
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	all := bridged()
	a.want(true, all[4:]...)
	hand := vpp.Dial()
	vpp.Ask(hand, &vppl2.BridgeDomainAddDel{BdID: 77, IsAdd: true}, &vppl2.BridgeDomainAddDelReply{})
	vpp.Ask(hand, &vppl2.SwInterfaceSetL2Bridge{RxSwIfIndex: 1, BdID: 77, Enable: true}, &vppl2.SwInterfaceSetL2BridgeReply{})
	if _, err := a.sched.Commit(t.Context(), scheduler.Txn{Refresh: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.declare(false, all[:4]...); !errors.Is(err, l2.ErrAttached) || !strings.Contains(err.Error(), "is in bridge domain UNTAGGED-77 already") {
		t.Errorf("it says %v", err)
	}
}
