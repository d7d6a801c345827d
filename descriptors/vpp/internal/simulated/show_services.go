package simulated

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go.fd.io/govpp/binapi/dhcp"
	"go.fd.io/govpp/binapi/ip_neighbor"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/span"
	"go.fd.io/govpp/binapi/vrrp"

	"github.com/keyplane/keyplane/internal/vppwire"
)

// named returns the name of an interface, or its index if it was deleted.
func named(names map[uint32]string, index uint32) string {
	if name := names[index]; name != "" {
		return name
	}
	return fmt.Sprintf("DELETED (%d)", index)
}

// neighbours lists the neighbours of both IP versions, sorted.
func (r *reader) neighbours() (lines []string) {
	names := r.names()
	for _, af := range []ip_types.AddressFamily{ip_types.ADDRESS_IP4, ip_types.ADDRESS_IP6} {
		for _, d := range all[ip_neighbor.IPNeighborDetails](r, &ip_neighbor.IPNeighborDump{SwIfIndex: none, Af: af}) {
			static := d.Neighbor.Flags&ip_neighbor.IP_API_NEIGHBOR_FLAG_STATIC != 0
			lines = append(lines, fmt.Sprintf("%s %s %s static %t",
				named(names, uint32(d.Neighbor.SwIfIndex)), vppwire.Addr(d.Neighbor.IPAddress), d.Neighbor.MacAddress, static))
		}
	}
	slices.Sort(lines)
	return lines
}

// dhcpProxies lists the DHCP proxies with their servers.
func (r *reader) dhcpProxies() (lines []string) {
	// 4+2*i is the IP version: 4, then 6.
	for i, ipv6 := range []bool{false, true} {
		for _, d := range all[dhcp.DHCPProxyDetails](r, &dhcp.DHCPProxyDump{IsIP6: ipv6}) {
			var line strings.Builder
			fmt.Fprintf(&line, "ipv%d-VRF:%d src %s", 4+2*i, d.RxVrfID, vppwire.AddrIn(d.DHCPSrcAddress.Un, ipv6))
			for _, s := range d.Servers {
				fmt.Fprintf(&line, " %d/%s", s.ServerVrfID, vppwire.AddrIn(s.DHCPServer.Un, ipv6))
			}
			lines = append(lines, line.String())
		}
	}
	return lines
}

// routers lists the VRRP routers.
func (r *reader) routers() (lines []string) {
	names := r.names()
	for _, d := range all[vrrp.VrrpVrDetails](r, &vrrp.VrrpVrDump{SwIfIndex: none}) {
		// A router that was started is in another state than INIT, whether it is the
		// master or not.
		started := d.Runtime.State != vrrp.VRRP_API_VR_STATE_INIT
		var line strings.Builder
		fmt.Fprintf(&line, "%s vr %d priority %d started %t", named(names, uint32(d.Config.SwIfIndex)), d.Config.VrID, d.Config.Priority, started)
		for _, a := range d.Addrs {
			line.WriteString(" " + vppwire.Addr(a).String())
		}
		// A started one without an address on its interface does not run.
		if d.Runtime.State == vrrp.VRRP_API_VR_STATE_BACKUP || d.Runtime.State == vrrp.VRRP_API_VR_STATE_MASTER {
			line.WriteString(" runs")
		}
		lines = append(lines, line.String())
	}
	return lines
}

// spans lists the mirrors of device level, then those of layer 2.
func (r *reader) spans() (lines []string) {
	names := r.names()
	for _, l2 := range []bool{false, true} {
		for _, d := range all[span.SwInterfaceSpanDetails](r, &span.SwInterfaceSpanDump{IsL2: l2}) {
			lines = append(lines, fmt.Sprintf("%s to %s %s l2 %t", named(names, uint32(d.SwIfIndexFrom)), named(names, uint32(d.SwIfIndexTo)), d.State, d.IsL2))
		}
	}
	return lines
}

// agings lists the ageing of neighbours for each IP version.
func (r *reader) agings() (lines []string) {
	for i, af := range []ip_types.AddressFamily{ip_types.ADDRESS_IP4, ip_types.ADDRESS_IP6} {
		var now ip_neighbor.IPNeighborConfigGetReply
		if r.err == nil {
			r.err = r.Call(context.Background(), &ip_neighbor.IPNeighborConfigGet{Af: af}, &now)
		}
		lines = append(lines, fmt.Sprintf("ip%d limit %d age %d recycle %t", 4+2*i, now.MaxNumber, now.MaxAge, now.Recycle))
	}
	return lines
}
