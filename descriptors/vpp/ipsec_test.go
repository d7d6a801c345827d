package vpp_test

import (
	"fmt"
	"slices"
	"testing"

	"go.fd.io/govpp/api"
	vppipsec "go.fd.io/govpp/binapi/ipsec"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/drift"
)

// TestPolicyWithoutAddresses has an agent end, and the next one find that a policy is not declared any
// more. VPP shows the addresses that the policy leaves out, so its key there is another one.
func TestPolicyWithoutAddresses(t *testing.T) { onEachVPP(t, policyWithoutAddresses) }

func policyWithoutAddresses(t *testing.T, vpp *simulated.VPP) {
	const database, value = "config/vpp/ipsec/v2/spd/7", `{"index":7}`
	memory := notebook{}
	a := startAgentWith(t, vpp.Socket, nil, memory)
	awaitReady(t, a)
	a.want(true, database, value,
		"config/vpp/ipsec/v2/sp/spd/7/sa/0/inbound/local-addresses/-/remote-addresses/-", `{"spd_index":7,"priority":5,"action":"BYPASS","protocol":50}`)
	a.awaitApplied()
	a.stop()

	again := startAgentWith(t, vpp.Socket, nil, memory)
	awaitReady(t, again)
	again.want(true, database, value)
	if left := listed[vppipsec.IpsecSpdDetails](t, vpp.Dial(), &vppipsec.IpsecSpdDump{SpdID: 7, SaID: ^uint32(0)}); len(left) > 0 {
		t.Errorf("a policy that is not declared any more stands: %+v", left)
	}
	for _, st := range again.sched.Statuses("config/vpp/ipsec/v2/sp/") {
		t.Errorf("%s is %s, and nobody declares it", st.Key, st.State)
	}
}

// TestIPsecDeletedByHand has another client of VPP delete values of IPsec: a check of drift names
// each of them, and a resync makes it again.
func TestIPsecDeletedByHand(t *testing.T) { onEachVPP(t, ipsecDeletedByHand) }

func ipsecDeletedByHand(t *testing.T, vpp *simulated.VPP) {
	const of = "config/vpp/ipsec/v2/"
	const database, association3, protection = of + "spd/7", of + "sa/3", of + "tun-protect/ipip1"
	const policy = of + "sp/spd/7/sa/1/outbound/local-addresses/10.1.0.0-10.1.0.255/remote-addresses/10.3.0.0-10.3.0.255"
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	a.want(true,
		interfacesPrefix+"loop1", `{"name":"loop1","type":"SOFTWARE_LOOPBACK","enabled":true}`,
		interfacesPrefix+"ipip1", `{"name":"ipip1","type":"IPIP_TUNNEL","enabled":true,"ipip":{"src_addr":"10.9.0.1","dst_addr":"10.9.0.2"}}`,
		of+"sa/1", association(1), of+"sa/2", association(2), association3, association(3),
		database, `{"index":7,"interfaces":[{"name":"loop1"}]}`,
		policy, `{"spd_index":7,"sa_index":1,"is_outbound":true,"local_addr_start":"10.1.0.0","local_addr_stop":"10.1.0.255","remote_addr_start":"10.3.0.0","remote_addr_stop":"10.3.0.255","action":"PROTECT"}`,
		protection, `{"interface":"ipip1","sa_out":[1],"sa_in":[2]}`)
	a.awaitApplied()
	hand := vpp.Dial()
	before := ipsecIn(t, hand)
	for _, one := range []struct {
		name   string
		delete func(t *testing.T, hand *conn.Conn)
		gone   []string // keys, of which drift names each
	}{
		// Policies and protections hold the other associations: VPP would take their hold.
		{"an association", func(t *testing.T, hand *conn.Conn) {
			t.Helper()
			vpp.Ask(hand, &vppipsec.IpsecSadEntryDel{ID: 3}, &vppipsec.IpsecSadEntryDelReply{})
		}, []string{association3}},
		{"a policy", func(t *testing.T, hand *conn.Conn) { t.Helper(); deletePolicies(t, vpp, hand) }, []string{policy}},
		{"a database with its policies", func(t *testing.T, hand *conn.Conn) {
			t.Helper()
			deletePolicies(t, vpp, hand)
			vpp.Ask(hand, &vppipsec.IpsecSpdAddDel{SpdID: 7}, &vppipsec.IpsecSpdAddDelReply{})
		}, []string{database, policy}},
		{"a protection", func(t *testing.T, hand *conn.Conn) {
			t.Helper()
			for _, d := range listed[vppipsec.IpsecTunnelProtectDetails](t, hand, &vppipsec.IpsecTunnelProtectDump{SwIfIndex: ^vppipsec.IpsecTunnelProtectDump{}.SwIfIndex}) {
				vpp.Ask(hand, &vppipsec.IpsecTunnelProtectDel{SwIfIndex: d.Tun.SwIfIndex, Nh: d.Tun.Nh}, &vppipsec.IpsecTunnelProtectDelReply{})
			}
		}, []string{protection}},
	} {
		t.Run(one.name, func(t *testing.T) {
			one.delete(t, hand)
			report, err := drift.Check(t.Context(), a.sched)
			if err != nil {
				t.Fatal(err)
			}
			var missing []string
			for _, v := range report.Values {
				if v.Kind == drift.Missing {
					missing = append(missing, v.Key)
				}
			}
			for _, key := range one.gone {
				if !slices.Contains(missing, key) {
					t.Errorf("drift names %q as missing, and not %s", missing, key)
				}
			}
			if _, err := a.sched.Commit(t.Context(), scheduler.Txn{Refresh: true}); err != nil {
				t.Fatal(err)
			}
			a.awaitApplied()
			if now := ipsecIn(t, hand); !slices.Equal(now, before) {
				t.Errorf("VPP has %q, want %q", now, before)
			}
			a.resyncsInSync(vpp)
		})
	}
}

// deletePolicies deletes all policies of database 7.
func deletePolicies(t *testing.T, vpp *simulated.VPP, hand *conn.Conn) {
	t.Helper()
	for _, d := range listed[vppipsec.IpsecSpdDetails](t, hand, &vppipsec.IpsecSpdDump{SpdID: 7, SaID: ^uint32(0)}) {
		vpp.Ask(hand, &vppipsec.IpsecSpdEntryAddDel{Entry: d.Entry}, &vppipsec.IpsecSpdEntryAddDelReply{})
	}
}

// ipsecIn lists the associations, policies and protections in VPP, without what differs from
// reading to reading.
func ipsecIn(t *testing.T, hand *conn.Conn) (out []string) {
	t.Helper()
	for _, d := range listed[vppipsec.IpsecSaV3Details](t, hand, &vppipsec.IpsecSaV3Dump{SaID: ^uint32(0)}) {
		out = append(out, fmt.Sprint("association ", d.Entry.SadID, " ", d.Entry.Spi))
	}
	for _, d := range listed[vppipsec.IpsecSpdDetails](t, hand, &vppipsec.IpsecSpdDump{SpdID: 7, SaID: ^uint32(0)}) {
		out = append(out, fmt.Sprint("policy ", d.Entry.SaID, " ", d.Entry.LocalAddressStart, " ", d.Entry.RemoteAddressStop))
	}
	for _, d := range listed[vppipsec.IpsecTunnelProtectDetails](t, hand, &vppipsec.IpsecTunnelProtectDump{SwIfIndex: ^vppipsec.IpsecTunnelProtectDump{}.SwIfIndex}) {
		out = append(out, fmt.Sprint("protection ", d.Tun.SwIfIndex, " ", d.Tun.SaOut, " ", d.Tun.SaIn))
	}
	slices.Sort(out)
	return out
}

// listed returns all answers to a dump request.
func listed[D any, P interface {
	*D
	api.Message
}](t *testing.T, c *conn.Conn, request api.Message) []D {
	t.Helper()
	all, err := conn.Dump[D, P](t.Context(), c, request)
	if err != nil {
		t.Fatal(err)
	}
	return all
}
