package models

import (
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l2"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l3"
)

// vppModels returns interfaces, bridging and routing in VPP.
func vppModels() []*Model {
	return []*Model{
		keyed("vpp", "v2", "interfaces", `{{.Name}}`, "interfaces", (*interfaces.Interface).GetName),
		keyed("vpp", "v2", "span", `{{.InterfaceFrom}}/to/{{.InterfaceTo}}`, "spans",
			func(v *interfaces.Span) string { return v.GetInterfaceFrom() + "/to/" + v.GetInterfaceTo() }),

		keyed("vpp.l2", "v2", "bridge-domain", `{{.Name}}`, "bridgeDomains", (*l2.BridgeDomain).GetName),
		keyed("vpp.l2", "v2", "fib", `{{.BridgeDomain}}/mac/{{.PhysAddress}}`, "fibs",
			func(v *l2.FIBEntry) string { return v.GetBridgeDomain() + "/mac/" + v.GetPhysAddress() }),
		keyed("vpp.l2", "v2", "xconnect", `{{.ReceiveInterface}}`, "xconnectPairs", (*l2.XConnectPair).GetReceiveInterface),

		keyed("vpp", "v2", "arp", `{{.Interface}}/{{.IpAddress}}`, "arps",
			func(v *l3.ARPEntry) string { return v.GetInterface() + "/" + v.GetIpAddress() }),
		keyed("vpp", "v2", "route",
			`{{if .OutgoingInterface}}{{printf "if/%s/" .OutgoingInterface}}{{end}}vrf/{{.VrfId}}/`+
				`{{with ipnet .DstNetwork}}{{printf "dst/%s/%d/" .IP .MaskSize}}{{else}}{{printf "dst/%s/" .DstNetwork}}{{end}}`+
				`{{if .NextHopAddr}}gw/{{.NextHopAddr}}{{end}}`,
			"routes", vppRouteName),
		keyed("vpp", "v2", "vrf-table", `id/{{.Id}}/protocol/{{.Protocol}}`, "vrfs",
			func(v *l3.VrfTable) string {
				return "id/" + number(v.GetId()) + "/protocol/" + v.GetProtocol().String()
			}),
		keyed("vpp", "v2", "l3xconnect", `{{.Interface}}/protocol/{{.Protocol}}`, "l3xconnects",
			func(v *l3.L3XConnect) string { return v.GetInterface() + "/protocol/" + v.GetProtocol().String() }),
		keyed("vpp", "v2", "dhcp-proxy", `{{ protoip .SourceIpAddress}}/rx-vrf/{{.RxVrfId}}`, "dhcpProxies",
			func(v *l3.DHCPProxy) string {
				return family(v.GetSourceIpAddress()) + "/rx-vrf/" + number(v.GetRxVrfId())
			}),
		keyed("vpp", "v2", "teib", `{{.Interface}}/peer/{{.PeerAddr}}`, "teibEntries",
			func(v *l3.TeibEntry) string { return v.GetInterface() + "/peer/" + v.GetPeerAddr() }),
		keyed("vpp", "v2", "vrrp", `{{.Interface}}/vrid/{{.VrId}}`, "VRRPEntry_list",
			func(v *l3.VRRPEntry) string { return v.GetInterface() + "/vrid/" + number(v.GetVrId()) }),
		singleton[*l3.ProxyARP]("vpp", "v2", "proxyarp-global", "proxyArp"),
		singleton[*l3.IPScanNeighbor]("vpp", "v2", "ipscanneigh-global", "ipscanNeighbor"),
	}
}

// vppRouteName builds the name of a route. Optional parts are omitted.
func vppRouteName(v *l3.Route) string {
	var name string
	if v.GetOutgoingInterface() != "" {
		name = "if/" + v.GetOutgoingInterface() + "/"
	}
	name += "vrf/" + number(v.GetVrfId()) + "/dst/" + network(v.GetDstNetwork()) + "/"
	if v.GetNextHopAddr() != "" {
		name += "gw/" + v.GetNextHopAddr()
	}
	return name
}
