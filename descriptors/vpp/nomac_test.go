package vpp_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/scheduler"
)

// TestInterfacesWithoutMAC declares tunnels for IP packets where VPP needs a MAC address: as a
// member of a bond, as the BVI of a bridge domain, and with a DHCP client. VPP would die of each.
func TestInterfacesWithoutMAC(t *testing.T) { onEachVPP(t, interfacesWithoutMAC) }

func interfacesWithoutMAC(t *testing.T, vpp *simulated.VPP) {
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	member, bvi, client := keys.BondMember("bond1", "ipip1"), keys.BridgeMembers.Key("bd1", "ipip2"), interfacesPrefix+"ipip3"
	tunnel := func(name, dst, more string) []string {
		return []string{interfacesPrefix + name, `{"name":"` + name + `","type":"IPIP_TUNNEL","enabled":true,"ipip":{"src_addr":"10.0.0.1","dst_addr":"` + dst + `"}` + more + `}`}
	}
	all := append(tunnel("ipip1", "10.0.0.2", ""), tunnel("ipip2", "10.0.0.3", "")...)
	_, err := a.declare(true, append(all,
		interfacesPrefix+"bond1", `{"name":"bond1","type":"BOND_INTERFACE","bond":{"id":5,"mode":"XOR","bonded_interfaces":[{"name":"ipip1"},{"name":"loop1"}]}}`,
		bridgeKey, `{"name":"bd1","forward":true,"interfaces":[{"name":"ipip2","bridged_virtual_interface":true}]}`,
		loopKey, loop)...)
	for key, name := range map[string]string{member: "ipip1", bvi: "ipip2"} {
		a.expectState(key, scheduler.Failed)
		if err == nil || !strings.Contains(err.Error(), name+": the interface has no MAC address") {
			t.Errorf("the transaction says %v; expected that %s has no MAC address", err, name)
		}
	}
	if v, err := a.sched.Decode(client, []byte(tunnel("ipip3", "10.0.0.4", `,"set_dhcp_client":true`)[1])); !slices.Equal(models.Fields(err), []string{"set_dhcp_client"}) {
		t.Errorf("a DHCP client without a MAC address: %v, %v", v, err)
	}
	a.expectState(keys.BondMember("bond1", "loop1"), scheduler.Configured)
	if vpp.Revive() {
		t.Error("VPP has died")
	}

	// Other interfaces take their places.
	a.want(false, interfacesPrefix+"bond1", `{"name":"bond1","type":"BOND_INTERFACE","bond":{"id":5,"mode":"XOR","bonded_interfaces":[{"name":"loop1"}]}}`,
		bridgeKey, `{"name":"bd1","forward":true,"interfaces":[{"name":"ipip2"},{"name":"loop2","bridged_virtual_interface":true}]}`, secondKey, loop2)
	a.expectState(bvi, scheduler.Configured)
	a.expectState(keys.BridgeMembers.Key("bd1", "loop2"), scheduler.Configured)
	a.resyncsInSync(vpp)
}

// TestIgnoredMACAndSession declares a MAC address of interfaces for IP packets, and a session of GRE
// tunnels that have none: they come up, and a resync finds them in sync.
func TestIgnoredMACAndSession(t *testing.T) { onEachVPP(t, ignoredMACAndSession) }

func ignoredMACAndSession(t *testing.T, vpp *simulated.VPP) {
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	all := []string{
		interfacesPrefix + "memif1", `{"name":"memif1","type":"MEMIF","enabled":true,"phys_address":"02:00:00:00:00:01","memif":{"id":7,"mode":"IP"}}`,
		interfacesPrefix + "gre1", `{"name":"gre1","type":"GRE_TUNNEL","enabled":true,"gre":{"tunnel_type":"L3","src_addr":"10.0.0.1","dst_addr":"10.0.0.2","session_id":5}}`,
		interfacesPrefix + "gre2", `{"name":"gre2","type":"GRE_TUNNEL","enabled":true,"gre":{"tunnel_type":"TEB","src_addr":"10.0.0.1","dst_addr":"10.0.0.2","session_id":6}}`,
		interfacesPrefix + "gre3", `{"name":"gre3","type":"GRE_TUNNEL","enabled":true,"gre":{"tunnel_type":"ERSPAN","src_addr":"10.0.0.1","dst_addr":"10.0.0.2","session_id":7}}`,
	}
	if simulated.HasTAPs() {
		all = append(all, interfacesPrefix+"tun1", `{"name":"tun1","type":"TAP","enabled":true,"phys_address":"02:00:00:00:00:02","tap":{"host_if_name":"nomac1","enable_tunnel":true}}`)
	}
	a.want(true, all...)
	for range 2 {
		for i := 0; i < len(all); i += 2 {
			a.expectState(all[i], scheduler.Configured)
			awaits(t, vpp, "show interface", strings.TrimPrefix(all[i], interfacesPrefix)+" up")
		}
		a.resyncsInSync(vpp)
	}
	for _, key := range []string{all[0], all[2], all[4]} {
		if st, _ := a.sched.Status(key); len(st.Warnings()) != 1 {
			t.Errorf("the warnings of %s are %q", key, st.Warnings())
		}
	}
	a.want(true)
	if text := vpp.Show("show interface"); strings.Contains(text, "gre") {
		t.Errorf("tunnels are left behind:\n%s", text)
	}
}
