package models

import (
	"github.com/keyplane/keyplane/proto/ligato/vpp/abf"
	"github.com/keyplane/keyplane/proto/ligato/vpp/acl"
	"github.com/keyplane/keyplane/proto/ligato/vpp/dns"
	"github.com/keyplane/keyplane/proto/ligato/vpp/ipfix"
	"github.com/keyplane/keyplane/proto/ligato/vpp/ipsec"
	"github.com/keyplane/keyplane/proto/ligato/vpp/nat"
	"github.com/keyplane/keyplane/proto/ligato/vpp/punt"
	"github.com/keyplane/keyplane/proto/ligato/vpp/srv6"
	"github.com/keyplane/keyplane/proto/ligato/vpp/stn"
	"github.com/keyplane/keyplane/proto/ligato/vpp/wireguard"
)

// vppServiceModels returns the models of packet processing in VPP other than
// switching and routing.
func vppServiceModels() []*Model {
	return []*Model{
		keyed("vpp.acls", "v2", "acl", `{{.Name}}`, "acls", (*acl.ACL).GetName),
		keyed("vpp.abfs", "v2", "abf", `{{.Index}}`, "abfs",
			func(v *abf.ABF) string { return number(v.GetIndex()) }),

		keyed("vpp.nat", "v2", "dnat44", `{{.Label}}`, "dnat44s", (*nat.DNat44).GetLabel),
		keyed("vpp.nat", "v2", "nat44-interface", `{{.Name}}`, "nat44Interfaces", (*nat.Nat44Interface).GetName),
		keyed("vpp.nat", "v2", "nat44-pool",
			`{{if .Name}}{{.Name}}{{else}}vrf/{{.VrfId}}/address/{{.FirstIp}}`+
				`{{if and .LastIp (ne .FirstIp .LastIp)}}-{{.LastIp}}{{end}}{{end}}`,
			"nat44Pools", natPoolName),
		keyed("vpp.nat", "v2", "nat44-vrf", `vrfid/{{.SrcVrfId}}`, "Nat44VrfTable_list nat44VrfTables",
			func(v *nat.Nat44VrfTable) string { return "vrfid/" + number(v.GetSrcVrfId()) }),
		keyed("vpp.nat", "v2", "nat44-vrf-route", `vrfid/{{.SrcVrfId}}/destvrfid/{{.DestVrfId}}`, "Nat44VrfRoute_list nat44VrfRoutes",
			func(v *nat.Nat44VrfRoute) string {
				return "vrfid/" + number(v.GetSrcVrfId()) + "/destvrfid/" + number(v.GetDestVrfId())
			}),
		singleton[*nat.Nat44Global]("vpp.nat", "v2", "nat44-global", "nat44Global"),

		keyed("vpp.ipsec", "v2", "spd", `{{.Index}}`, "ipsecSpds",
			func(v *ipsec.SecurityPolicyDatabase) string { return number(v.GetIndex()) }),
		keyed("vpp.ipsec", "v2", "sa", `{{.Index}}`, "ipsecSas",
			func(v *ipsec.SecurityAssociation) string { return number(v.GetIndex()) }),
		keyed("vpp.ipsec", "v2", "sp",
			`spd/{{.SpdIndex}}/sa/{{.SaIndex}}/{{if .IsOutbound}}outbound/{{else}}inbound/{{end}}`+
				`local-addresses/{{.LocalAddrStart}}-{{.LocalAddrStop}}/remote-addresses/{{.RemoteAddrStart}}-{{.RemoteAddrStop}}`,
			"ipsecSps", ipsecPolicyName),
		keyed("vpp.ipsec", "v2", "tun-protect", `{{.Interface}}{{if .NextHopAddr}}/nh/{{.NextHopAddr}}{{end}}`,
			"ipsecTunnelProtections", tunnelProtectionName),

		keyed("vpp", "v2", "ipredirect", `l3/{{.L3Protocol}}/tx/{{.TxInterface}}`, "puntIpredirects",
			func(v *punt.IPRedirect) string {
				return "l3/" + v.GetL3Protocol().String() + "/tx/" + v.GetTxInterface()
			}),
		keyed("vpp", "v2", "tohost", `l3/{{.L3Protocol}}/l4/{{.L4Protocol}}/port/{{.Port}}`, "puntTohosts",
			func(v *punt.ToHost) string {
				return "l3/" + v.GetL3Protocol().String() + "/l4/" + v.GetL4Protocol().String() + "/port/" + number(v.GetPort())
			}),
		keyed("vpp", "v2", "exception", `reason/{{.Reason}}`, "puntExceptions",
			func(v *punt.Exception) string { return "reason/" + v.GetReason() }),

		keyed("vpp.srv6", "v2", "localsid", `{{.Sid}}`, "srv6Localsids", (*srv6.LocalSID).GetSid),
		keyed("vpp.srv6", "v2", "policy", `{{.Bsid}}`, "srv6Policies", (*srv6.Policy).GetBsid),
		keyed("vpp.srv6", "v2", "steering", `{{.Name}}`, "srv6Steerings", (*srv6.Steering).GetName),
		singleton[*srv6.SRv6Global]("vpp.srv6", "v2", "srv6-global", "srv6Global"),

		keyed("vpp.ipfix", "v2", "flowprobe-feature", `{{.Interface}}`, "ipfixFlowprobes", (*ipfix.FlowProbeFeature).GetInterface),
		singleton[*ipfix.FlowProbeParams]("vpp.ipfix", "v2", "flowprobe-params", "ipfixFlowprobeParams"),
		singleton[*ipfix.IPFIX]("vpp.ipfix", "v2", "ipfix", "ipfixGlobal"),

		keyed("vpp.stn", "v2", "rule", `{{.Interface}}/ip/{{.IpAddress}}`, "Rule_list",
			func(v *stn.Rule) string { return v.GetInterface() + "/ip/" + v.GetIpAddress() }),
		keyed("vpp.wg", "v1", "peer", `{{.WgIfName}}/endpoint/{{.Endpoint}}/{{.Port}}`, "Peer_list wgPeers",
			func(v *wireguard.Peer) string {
				return v.GetWgIfName() + "/endpoint/" + v.GetEndpoint() + "/" + number(v.GetPort())
			}),
		singleton[*dns.DNSCache]("vpp.dns", "v1", "dnscache", "DNSCache dnsCache"),
	}
}

// natPoolName builds the name of an address pool. Pools of old configurations have
// no name field.
func natPoolName(v *nat.Nat44AddressPool) string {
	if v.GetName() != "" {
		return v.GetName()
	}
	name := "vrf/" + number(v.GetVrfId()) + "/address/" + v.GetFirstIp()
	if last := v.GetLastIp(); last != "" && last != v.GetFirstIp() {
		name += "-" + last
	}
	return name
}

// ipsecPolicyName builds the name of a security policy.
func ipsecPolicyName(v *ipsec.SecurityPolicy) string {
	direction := "inbound"
	if v.GetIsOutbound() {
		direction = "outbound"
	}
	return "spd/" + number(v.GetSpdIndex()) + "/sa/" + number(v.GetSaIndex()) + "/" + direction +
		"/local-addresses/" + v.GetLocalAddrStart() + "-" + v.GetLocalAddrStop() +
		"/remote-addresses/" + v.GetRemoteAddrStart() + "-" + v.GetRemoteAddrStop()
}

// tunnelProtectionName builds the name of a tunnel protection; the next hop is
// optional.
func tunnelProtectionName(v *ipsec.TunnelProtection) string {
	if v.GetNextHopAddr() == "" {
		return v.GetInterface()
	}
	return v.GetInterface() + "/nh/" + v.GetNextHopAddr()
}
