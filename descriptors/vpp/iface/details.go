package iface

import (
	"strings"

	"go.fd.io/govpp/binapi/dhcp"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/descriptors/vpp/iface/internal/kinds"
)

// details are what VPP tells of an interface besides its value, for people. The names in JSON are
// those of vpp-agent 3.5.
type details struct {
	SubSwIfIndex uint32   `json:"sub_sw_if_index"`
	L2Address    []byte   `json:"l2_address"`
	AdminUp      bool     `json:"is_admin_state_up"`
	LinkUp       bool     `json:"is_link_state_up"`
	LinkDuplex   uint32   `json:"link_duplex"`
	LinkMTU      uint16   `json:"link_mtu"`
	MTU          []uint32 `json:"mtu"`
	LinkSpeed    uint32   `json:"link_speed"`
	SubID        uint32   `json:"sub_id"`
	Tag          string   `json:"tag"`
	DHCP         *client  `json:"dhcp"`
	VRFIPv4      uint32   `json:"vrf_ipv4"`
	VRFIPv6      uint32   `json:"vrf_ipv6"`
	PCI          uint32   `json:"pci"`
}

// A client is a DHCP client of VPP and its lease. The fields are those of VPP's message.
type client struct {
	Client struct {
		SwIfIndex                       uint32
		Hostname, ID                    string
		WantDhcpEvent, SetBroadcastFlag bool
		PID                             uint32
	}
	Lease struct {
		SwIfIndex, State           uint32
		Hostname                   string
		IsIPv6                     bool
		MaskWidth                  uint32
		HostAddress, RouterAddress string
		HostMac                    string
	}
}

// detailsOf returns the details of an interface.
func detailsOf(f *kinds.Found) *details {
	d := f.Details
	return &details{
		SubSwIfIndex: d.SupSwIfIndex, L2Address: d.L2Address[:],
		AdminUp: d.Flags&kinds.AdminUp != 0, LinkUp: d.Flags&interface_types.IF_STATUS_API_FLAG_LINK_UP != 0,
		LinkDuplex: uint32(d.LinkDuplex), LinkMTU: d.LinkMtu, MTU: d.Mtu, LinkSpeed: d.LinkSpeed,
		SubID: d.SubID, Tag: d.Tag, DHCP: clientIn(f.Client), VRFIPv4: f.Tables[0], VRFIPv6: f.Tables[1], PCI: f.PCI,
	}
}

// clientIn converts the DHCP client of an interface; nil: it has none.
func clientIn(d *dhcp.DHCPClientDetails) *client {
	if d == nil {
		return nil
	}
	out := &client{}
	c, l := &out.Client, &out.Lease
	c.SwIfIndex, c.Hostname, c.PID = uint32(d.Client.SwIfIndex), d.Client.Hostname, d.Client.PID
	c.ID = strings.TrimRight(string(d.Client.ID), "\x00")
	c.WantDhcpEvent, c.SetBroadcastFlag = d.Client.WantDHCPEvent, d.Client.SetBroadcastFlag
	l.SwIfIndex, l.State, l.Hostname, l.IsIPv6 = uint32(d.Lease.SwIfIndex), uint32(d.Lease.State), d.Lease.Hostname, d.Lease.IsIPv6
	l.MaskWidth, l.HostAddress, l.RouterAddress = uint32(d.Lease.MaskWidth), d.Lease.HostAddress.String(), d.Lease.RouterAddress.String()
	l.HostMac = d.Lease.HostMac.String()
	return out
}
