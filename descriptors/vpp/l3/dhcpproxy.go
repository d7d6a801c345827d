package l3

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"

	"go.fd.io/govpp/binapi/dhcp"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/readback"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l3"
	"github.com/keyplane/keyplane/scheduler"
)

// dhcpProxyDescriptor implements DHCP proxies: VPP forwards the DHCP messages of a VRF to
// servers. VPP would create missing tables without a name, so the tables are dependencies.
// It has no Update: the message adds and deletes single servers, and the source address is
// part of each. A change deletes and creates the proxy.
func (h handler) dhcpProxyDescriptor() scheduler.Descriptor[*l3.DHCPProxy, struct{}] {
	return scheduler.Descriptor[*l3.DHCPProxy, struct{}]{
		Name:  DHCPProxyName,
		Model: models.For[*l3.DHCPProxy](),

		Validate: validateDHCPProxy,
		Equivalent: func(_ string, old, new *l3.DHCPProxy) bool {
			return old.GetRxVrfId() == new.GetRxVrfId() && sameAddress(old.GetSourceIpAddress(), new.GetSourceIpAddress()) &&
				slices.Equal(serversOf(old), serversOf(new))
		},
		Dependencies: dhcpProxyDependencies,

		Create: func(ctx context.Context, _ string, v *l3.DHCPProxy) (struct{}, error) {
			return struct{}{}, h.changeDHCPProxy(ctx, v, true)
		},
		Delete: func(ctx context.Context, _ string, v *l3.DHCPProxy, _ struct{}) error {
			return h.changeDHCPProxy(ctx, v, false)
		},
		Retrieve: h.dhcpProxies().Retrieve,
	}
}

// validateDHCPProxy checks a DHCP proxy. The servers must be of the version of the source
// address, which is that of the proxy.
func validateDHCPProxy(_ string, v *l3.DHCPProxy) error {
	var f faults
	source, err := netip.ParseAddr(v.GetSourceIpAddress())
	known := err == nil
	f.host("source_ip_address", v.GetSourceIpAddress())
	f.table("rx_vrf_id", v.GetRxVrfId())
	if len(v.GetServers()) == 0 {
		f.Add("servers", "", "at least one server")
	}
	for i, s := range v.GetServers() {
		field := fmt.Sprintf("servers[%d].ip_address", i)
		f.host(field, s.GetIpAddress())
		f.table(fmt.Sprintf("servers[%d].vrf_id", i), s.GetVrfId())
		if a, err := netip.ParseAddr(s.GetIpAddress()); err == nil && known && a.Is6() != source.Is6() {
			f.Add(field, s.GetIpAddress(), "an address of the same IP version as source_ip_address")
		}
	}
	return f.Err()
}

// host checks the address of one host.
func (f *faults) host(field, text string) {
	if a, err := netip.ParseAddr(text); err == nil && a.IsUnspecified() {
		f.Add(field, text, "the address of one host")
		return
	}
	f.address(field, text)
}

// A dhcpServer is a server in comparable form.
type dhcpServer struct {
	vrf     uint32
	address string
}

// serversOf returns the servers, sorted and without duplicates.
func serversOf(v *l3.DHCPProxy) []dhcpServer {
	var out []dhcpServer
	for _, s := range v.GetServers() {
		out = append(out, dhcpServer{s.GetVrfId(), canonical(s.GetIpAddress())})
	}
	slices.SortFunc(out, func(a, b dhcpServer) int {
		return cmp.Or(cmp.Compare(a.vrf, b.vrf), cmp.Compare(a.address, b.address))
	})
	return slices.Compact(out)
}

// dhcpProxyDependencies requires the tables of the clients and of the servers. Table 0
// always exists.
func dhcpProxyDependencies(_ string, v *l3.DHCPProxy) (deps []scheduler.Dependency) {
	source, _ := netip.ParseAddr(v.GetSourceIpAddress())
	if v.GetRxVrfId() != 0 {
		deps = append(deps, scheduler.Dependency{Label: "vrf-table-exists", Key: keys.VRFTable(v.GetRxVrfId(), source.Is6())})
	}
	last := uint32(0)
	for _, s := range serversOf(v) {
		// Two dependencies with one label would be one to people who read a status.
		if s.vrf != last { // they are sorted
			last = s.vrf
			label := fmt.Sprintf("vrf-table-%d-used-by-dhcp-server-exists", s.vrf)
			deps = append(deps, scheduler.Dependency{Label: label, Key: keys.VRFTable(s.vrf, source.Is6())})
		}
	}
	return deps
}

// changeDHCPProxy adds or deletes the servers. VPP accepts a server that it has already,
// and the deletion of one that it does not have. So a call that failed in the middle can
// be repeated.
func (h handler) changeDHCPProxy(ctx context.Context, v *l3.DHCPProxy, add bool) error {
	source, err := netip.ParseAddr(v.GetSourceIpAddress())
	if err != nil {
		return err
	}
	for _, s := range serversOf(v) {
		server, err := netip.ParseAddr(s.address)
		if err != nil {
			return err
		}
		err = h.API.Call(ctx, &dhcp.DHCPProxyConfig{
			IsAdd: add, RxVrfID: v.GetRxVrfId(), ServerVrfID: s.vrf,
			DHCPServer: vppwire.Address(server), DHCPSrcAddress: vppwire.Address(source),
		}, &dhcp.DHCPProxyConfigReply{})
		if err != nil {
			return err
		}
	}
	return nil
}

// dhcpProxies reads DHCP proxies back. VPP has one per VRF and IP version.
func (h handler) dhcpProxies() readback.Retriever[*l3.DHCPProxy] {
	return readback.Retriever[*l3.DHCPProxy]{
		Read: func(ctx context.Context, _ bool) ([]*l3.DHCPProxy, error) {
			var out []*l3.DHCPProxy
			for _, ipv6 := range []bool{false, true} {
				all, err := conn.Dump[dhcp.DHCPProxyDetails](ctx, h.API, &dhcp.DHCPProxyDump{IsIP6: ipv6})
				if err != nil {
					return nil, err
				}
				for _, d := range all {
					out = append(out, dhcpProxyOf(d))
				}
			}
			return out, nil
		},
		ID: func(v *l3.DHCPProxy) string {
			source, _ := netip.ParseAddr(v.GetSourceIpAddress())
			return fmt.Sprint(source.Is6(), v.GetRxVrfId())
		},
	}
}

// dhcpProxyOf converts VPP's answer to a value. The IP version is in a field of its own: the
// address types are not set.
func dhcpProxyOf(d dhcp.DHCPProxyDetails) *l3.DHCPProxy {
	v := &l3.DHCPProxy{RxVrfId: d.RxVrfID, SourceIpAddress: vppwire.AddrIn(d.DHCPSrcAddress.Un, d.IsIPv6).String()}
	for _, s := range d.Servers {
		v.Servers = append(v.Servers, &l3.DHCPProxy_DHCPServer{VrfId: s.ServerVrfID, IpAddress: vppwire.AddrIn(s.DHCPServer.Un, d.IsIPv6).String()})
	}
	return v
}
