package kinds

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.fd.io/govpp/binapi/ethernet_types"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// ErrNoMAC reports an interface without a MAC address, where VPP needs one. VPP does not check
// that: it reads the address of a DHCP client, of a new member of a bond, and of a new BVI of a
// bridge domain, and dies where there is none (25.10: dhcp/client.c send_dhcp_pkt, bonding/cli.c
// bond_add_member, l2_input.c set_int_l2_mode).
var ErrNoMAC = errors.New("the interface has no MAC address")

// NeedMAC returns an error that wraps ErrNoMAC, and names the interface, if it has no MAC address in
// VPP. purpose says what would need it. A retry cannot help, as the address comes with the creation
// of an interface.
func NeedMAC(ctx context.Context, api conn.API, name string, at interface_types.InterfaceIndex, purpose string) error {
	d, err := detailsAt(ctx, api, at)
	if err == nil && d.SupSwIfIndex != uint32(at) {
		// A sub-interface has the address of its parent. VPP does not list it.
		d, err = detailsAt(ctx, api, interface_types.InterfaceIndex(d.SupSwIfIndex))
	}
	switch {
	case errors.Is(err, ErrNotThere):
		return NotThere(name)
	case err != nil:
		return err
	case d.L2Address == ethernet_types.MacAddress{}:
		return scheduler.Terminal(fmt.Errorf("%s: %w, which %s needs", name, ErrNoMAC, purpose))
	}
	return nil
}

// detailsAt returns what VPP lists of an interface. For index 0 it lists all.
func detailsAt(ctx context.Context, api conn.API, at interface_types.InterfaceIndex) (vppif.SwInterfaceDetails, error) {
	all, err := conn.Dump[vppif.SwInterfaceDetails](ctx, api, &vppif.SwInterfaceDump{SwIfIndex: at})
	if err != nil {
		return vppif.SwInterfaceDetails{}, err
	}
	i := slices.IndexFunc(all, func(d vppif.SwInterfaceDetails) bool { return d.SwIfIndex == at })
	if i < 0 {
		return vppif.SwInterfaceDetails{}, ErrNotThere
	}
	return all[i], nil
}

// DHCPClient refuses a DHCP client on an interface that never has a MAC address, as its type shows.
// VPP would die; see ErrNoMAC. Whether a sub-interface has one depends on its parent.
func (f *Findings) DHCPClient(v *interfaces.Interface) {
	if v.GetSetDhcpClient() && lacksMAC(v) {
		f.Add("set_dhcp_client", true, "false: this interface has no MAC address, which a DHCP client needs")
	}
}

// lacksMAC tells whether VPP gives no MAC address to an interface: it is for IP packets.
func lacksMAC(v *interfaces.Interface) bool {
	switch v.GetType() {
	case interfaces.Interface_IPIP_TUNNEL, interfaces.Interface_IPSEC_TUNNEL, interfaces.Interface_WIREGUARD_TUNNEL, interfaces.Interface_GTPU_TUNNEL:
		return true
	case interfaces.Interface_VXLAN_TUNNEL:
		return FormOf(v).GPE
	case interfaces.Interface_GRE_TUNNEL:
		return v.GetGre().GetTunnelType() == interfaces.GreLink_L3
	default:
		return isIPLink(v)
	}
}
