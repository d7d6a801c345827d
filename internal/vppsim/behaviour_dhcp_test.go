package vppsim_test

import (
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/dhcp"
)

func (v *vpp) dhcpClient(i index, add bool, want api.VPPApiError) {
	v.Helper()
	client := dhcp.DHCPClient{SwIfIndex: i, Hostname: "h1", WantDHCPEvent: true}
	v.call("dhcp_client_config", want, &dhcp.DHCPClientConfig{IsAdd: add, Client: client}, &dhcp.DHCPClientConfigReply{})
}

// dhcpRows are what VPP's source says (src/plugins/dhcp/client.c, dhcp_client_add_del).
func dhcpRows() []row {
	return []row{
		{"a DHCP client runs once", func(v *vpp) {
			i := v.loop()
			v.dhcpClient(i, false, api.INVALID_VALUE)
			v.dhcpClient(i, true, 0)
			v.dhcpClient(i, true, api.INVALID_VALUE)
			all := dump[dhcp.DHCPClientDetails](v, &dhcp.DHCPClientDump{})
			if len(all) != 1 || all[0].Client.SwIfIndex != i || all[0].Client.Hostname != "h1" || all[0].Lease.MaskWidth != 0 {
				v.Errorf("there are %+v", all)
			}
			v.dhcpClient(i, false, 0)
			v.dhcpClient(unknown, true, api.INVALID_SW_IF_INDEX)
		}},
		{"a DHCP client outlives its interface", func(v *vpp) {
			i := v.loop()
			v.dhcpClient(i, true, 0)
			v.is("delete", v.delete(i), 0)
			v.dhcpClient(i, false, api.INVALID_SW_IF_INDEX)
			if again := v.loop(); again == i {
				v.dhcpClient(i, true, api.INVALID_VALUE)
				v.dhcpClient(i, false, 0)
			}
		}},
	}
}
