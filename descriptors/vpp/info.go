package vpp

import (
	"context"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/af_packet"
	"go.fd.io/govpp/binapi/bond"
	"go.fd.io/govpp/binapi/dhcp"
	"go.fd.io/govpp/binapi/gre"
	"go.fd.io/govpp/binapi/gtpu"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ipip"
	"go.fd.io/govpp/binapi/ipsec"
	"go.fd.io/govpp/binapi/l2"
	"go.fd.io/govpp/binapi/l3xc"
	"go.fd.io/govpp/binapi/memif"
	"go.fd.io/govpp/binapi/rdma"
	"go.fd.io/govpp/binapi/span"
	"go.fd.io/govpp/binapi/sr"
	"go.fd.io/govpp/binapi/tapv2"
	"go.fd.io/govpp/binapi/teib"
	"go.fd.io/govpp/binapi/vmxnet3"
	"go.fd.io/govpp/binapi/vrrp"
	"go.fd.io/govpp/binapi/vxlan"
	"go.fd.io/govpp/binapi/vxlan_gpe"
	"go.fd.io/govpp/binapi/wireguard"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/internal/vppwire"
)

// A Capability tells whether VPP has the messages of a feature.
type Capability struct {
	Feature string
	// Message is the variant in use, with its checksum. If VPP has none, it is the newest
	// variant.
	Message string
	Has     bool
}

// Info is the state of VPP.
type Info struct {
	conn.Info
	Capabilities []Capability // none while VPP is not connected; so is Loaded
	Loaded       []Loaded
	LoadedErr    error // the reason that Loaded is unknown
}

// Info returns the state of VPP. It asks VPP for the loaded plugins only.
func (p *Plugin) Info(ctx context.Context) Info {
	out := Info{Info: p.manager.Info()}
	if !out.Connected {
		return out
	}
	for _, f := range features() {
		message, err := p.manager.First(f.variants...)
		one := Capability{Feature: f.name, Has: err == nil}
		if err != nil {
			message = f.variants[0]
		}
		one.Message = vppwire.Name(message)
		out.Capabilities = append(out.Capabilities, one)
	}
	out.Loaded, out.LoadedErr = p.loaded(ctx)
	return out
}

// A feature needs one of several variants of a message, the newest first.
type feature struct {
	name     string
	variants []api.Message
}

// features lists the features that depend on a plugin, each with the messages of which one
// must be known to this VPP.
func features() []feature {
	of := func(name string, variants ...api.Message) feature { return feature{name, variants} }
	return []feature{
		of("loopback", &vppif.CreateLoopback{}),
		of("TAP", &tapv2.TapCreateV3{}),
		of("memif", &memif.MemifCreateV2{}, &memif.MemifCreate{}),
		of("AF_PACKET", &af_packet.AfPacketCreateV3{}, &af_packet.AfPacketCreateV2{}),
		of("sub-interface", &vppif.CreateVlanSubif{}),
		of("bond", &bond.BondCreate2{}),
		of("VXLAN tunnel", &vxlan.VxlanAddDelTunnelV3{}, &vxlan.VxlanAddDelTunnelV2{}),
		of("VXLAN-GPE tunnel", &vxlan_gpe.VxlanGpeAddDelTunnelV2{}),
		of("GTPU tunnel", &gtpu.GtpuAddDelTunnel{}),
		of("GRE tunnel", &gre.GreTunnelAddDel{}),
		of("IPIP tunnel", &ipip.IpipAddTunnel{}),
		of("IPsec interface", &ipsec.IpsecItfCreate{}),
		of("IPsec association", &ipsec.IpsecSadEntryAdd{}),
		of("WireGuard interface", &wireguard.WireguardInterfaceCreate{}),
		of("WireGuard peer", &wireguard.WireguardPeerAdd{}),
		of("RDMA interface", &rdma.RdmaCreateV4{}, &rdma.RdmaCreateV3{}),
		of("VMXNET3 interface", &vmxnet3.Vmxnet3Create{}),
		of("DHCP client", &dhcp.DHCPClientDetails{}),
		of("bridge domain", &l2.BridgeDomainAddDel{}),
		of("mirror", &span.SwInterfaceSpanEnableDisable{}),
		of("route", &ip.IPRouteAddDel{}),
		of("origin of routes", &ip.IPRouteV2Dump{}),
		of("L3 cross-connect", &l3xc.L3xcUpdate{}),
		of("TEIB entry", &teib.TeibEntryAddDel{}),
		of("virtual router", &vrrp.VrrpVrAddDel{}),
		of("segment routing", &sr.SrLocalsidAddDel{}),
	}
}
