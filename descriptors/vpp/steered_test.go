package vpp_test

import (
	"slices"
	"strings"
	"testing"

	"go.fd.io/govpp/binapi/interface_types"
	vppl2 "go.fd.io/govpp/binapi/l2"
	"go.fd.io/govpp/binapi/span"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/scheduler"
)

const (
	crossKey = "config/vpp/l2/v2/xconnect/loop1"
	crossed  = `{"receive_interface":"loop1","transmit_interface":"loop2"}`
)

// framesOf returns the policy fd03::1, and the steering of the frames of an interface into it.
func framesOf(name string) []string {
	return slices.Concat(policyValue("fd03::1", `"srh_encapsulation":true`, `{"segments":["fd02::1"]}`),
		steeringValue("frames", "fd03::1", `"l2_traffic":{"interface_name":"`+name+`"}`))
}

// features returns VPP's page about what looks at the packets of loop1.
func (a *agent) features(vpp *simulated.VPP, c *conn.Conn) string {
	a.Helper()
	states, err := a.states.Read(a.Context())
	if err != nil {
		a.Fatal(err)
	}
	return vpp.Command(c, "show interface features "+states["loop1"].GetInternalName())
}

// looks checks that VPP looks at the access lists of loop1, and mirrors what it sends.
func (a *agent) looks(vpp *simulated.VPP, c *conn.Conn, when string) {
	a.Helper()
	text := a.features(vpp, c)
	for _, feature := range []string{"l2-input-feat-arc", "l2-output-feat-arc", "l2-input-acl", "span-l2-output"} {
		if !strings.Contains(text, feature) {
			a.Errorf("%s: %s is missing:\n%s", when, feature, text)
		}
	}
}

// TestModesKeepFeatures has an interface with access lists, and with a mirror of somebody else, enter and leave all that
// puts it into layer 2, by the agent and by somebody else. VPP goes on to look at the lists and to mirror.
func TestModesKeepFeatures(t *testing.T) {
	onEachVPP(t, func(t *testing.T, vpp *simulated.VPP) {
		a := startAgent(t, vpp.Socket)
		awaitReady(t, a)
		c := vpp.Dial()
		base := []string{webKey, webList, hostsKey, hosts, loopKey, loop, secondKey, loop2}
		a.want(true, base...)
		index := interface_types.InterfaceIndex(a.indexOf("loop1"))
		vpp.Ask(c, &span.SwInterfaceSpanEnableDisable{
			SwIfIndexFrom: index, SwIfIndexTo: interface_types.InterfaceIndex(a.indexOf("loop2")), State: span.SPAN_STATE_API_TX, IsL2: true,
		}, &span.SwInterfaceSpanEnableDisableReply{})
		a.looks(vpp, c, "before")
		for name, values := range map[string][]string{
			"a bridge domain": {bridgeKey, `{"name":"bd1","interfaces":[{"name":"loop1"}]}`},
			"a cross-connect": {crossKey, crossed},
			"steering":        framesOf("loop1"),
		} {
			a.want(true, append(values, base...)...)
			a.expectState(values[len(values)-2], scheduler.Configured)
			a.looks(vpp, c, "in "+name)
			a.want(true, base...)
			a.looks(vpp, c, "after "+name)
			a.want(true, append(values, base...)...)
			// Somebody sets it to layer 3.
			vpp.Ask(c, &vppl2.SwInterfaceSetL2Xconnect{RxSwIfIndex: index, TxSwIfIndex: index}, &vppl2.SwInterfaceSetL2XconnectReply{})
			a.resyncs()
			if name != "steering" || vpp.Release(c) >= "26.06" { // before 26.06, nothing puts it into layer 2 again
				a.looks(vpp, c, "again in "+name)
			}
			a.want(true, base...)
		}
	})
}

// TestSteeringIsNoCrossConnect steers the frames of an interface: the agent lists no cross-connect that nobody has made,
// and the interface can go to a bridge domain.
func TestSteeringIsNoCrossConnect(t *testing.T) {
	onEachVPP(t, func(t *testing.T, vpp *simulated.VPP) {
		a := startAgent(t, vpp.Socket)
		awaitReady(t, a)
		base := []string{loopKey, loop, secondKey, loop2}
		a.want(true, append(framesOf("loop1"), base...)...)
		a.resyncsInSync(vpp)
		for _, st := range a.sched.Statuses("config/vpp/l2/v2/xconnect/") {
			t.Errorf("there is %s: %v", st.Key, st.State)
		}
		a.want(true, append([]string{bridgeKey, `{"name":"bd1","interfaces":[{"name":"loop1"}]}`}, base...)...)
		a.allConfigured([]string{bridgeKey, ""})
		a.resyncsInSync(vpp)
	})
}

// TestBrokenSteering has somebody set an interface whose frames are steered to layer 3. From 26.06 on, VPP lists the
// steering as before, and does not steer. It is noticed and repaired.
func TestBrokenSteering(t *testing.T) {
	onEachVPP(t, func(t *testing.T, vpp *simulated.VPP) {
		a := startAgent(t, vpp.Socket)
		awaitReady(t, a)
		c := vpp.Dial()
		a.want(true, append(framesOf("loop1"), loopKey, loop)...)
		index := interface_types.InterfaceIndex(a.indexOf("loop1"))
		vpp.Ask(c, &vppl2.SwInterfaceSetL2Xconnect{RxSwIfIndex: index, TxSwIfIndex: index}, &vppl2.SwInterfaceSetL2XconnectReply{})
		a.resyncs()
		if text := a.features(vpp, c); !strings.Contains(text, "sr-pl-rewrite-encaps-l2") {
			t.Errorf("VPP does not steer:\n%s", text)
		}
		a.expectState(steeringPrefix+"frames", scheduler.Configured)
		a.resyncsInSync(vpp)
	})
}

// TestSteeringOfSubInterface steers the frames of a sub-interface, and ends that. Releases before 26.06 cannot, and say so.
func TestSteeringOfSubInterface(t *testing.T) {
	onEachVPP(t, func(t *testing.T, vpp *simulated.VPP) {
		a := startAgent(t, vpp.Socket)
		awaitReady(t, a)
		base := []string{loopKey, loop, interfacesPrefix + "sub", `{"name":"sub","type":"SUB_INTERFACE","enabled":true,"sub":{"parent_name":"loop1","sub_id":7}}`}
		a.want(true, base...)
		_, _ = a.declare(true, append(framesOf("sub"), base...)...) // refused before 26.06
		st, _ := a.sched.Status(steeringPrefix + "frames")
		switch st.State {
		case scheduler.Unimplemented:
			if vpp.Release(vpp.Dial()) < "26.06" && strings.Contains(st.Err.Error(), "26.06") {
				return
			}
			t.Errorf("it is %v: %v", st.State, st.Err)
		case scheduler.Configured:
			a.resyncsInSync(vpp)
			a.want(true, base...)
			if has := segmentsIn(t, vpp); has["steering sub"] != "" {
				t.Errorf("VPP has %v", has)
			}
		default:
			t.Errorf("it is %v: %v", st.State, st.Err)
		}
	})
}

// TestSteeringNeedsFrames steers the frames of an interface that has none: the value is INVALID, and names the field.
func TestSteeringNeedsFrames(t *testing.T) {
	onEachVPP(t, func(t *testing.T, vpp *simulated.VPP) {
		a := startAgent(t, vpp.Socket)
		awaitReady(t, a)
		tunnel := []string{interfacesPrefix + "tunnel", `{"name":"tunnel","type":"IPIP_TUNNEL","enabled":true,"ipip":{"src_addr":"10.0.0.1","dst_addr":"10.0.0.2"}}`}
		_, _ = a.declare(true, append(framesOf("tunnel"), tunnel...)...) // it fails
		st, _ := a.sched.Status(steeringPrefix + "frames")
		if st.State != scheduler.Invalid || !slices.Equal(st.Details, []string{"l2_traffic.interface_name"}) {
			t.Errorf("it is %v with %v: %v", st.State, st.Details, st.Err)
		}
	})
}

// TestFramesLeaveBesideSteering has a local SID send frames out of an interface whose own frames are steered. From 26.06 on,
// VPP would drop them after the steering has ended.
func TestFramesLeaveBesideSteering(t *testing.T) {
	onEachVPP(t, func(t *testing.T, vpp *simulated.VPP) {
		if vpp.Sim == nil {
			return // package packets sends frames
		}
		a := startAgent(t, vpp.Socket)
		awaitReady(t, a)
		base := append(sidValue("fd02::4", `"end_function_dx2":{"outgoing_interface":"loop1"}`), loopKey, loop)
		for range 2 {
			a.want(true, append(framesOf("loop1"), base...)...)
			a.want(true, base...)
			if text := vpp.Show("show l2 outputs"); vpp.Sim.Release() >= "26.06" && strings.TrimSpace(text) == "" {
				t.Error("frames are dropped")
			}
		}
	})
}
