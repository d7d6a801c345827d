package conn

import (
	"slices"
	"strings"

	"go.fd.io/govpp/api"
)

// listings has, for each request that makes something, those that list it. VPP needs all of them; a bar stands between
// two of which it needs one. What cannot be listed is not made: after a restart, the agent would not find it, and make
// it again.
const listings = `
	abf_itf_attach_add_del              abf_itf_attach_dump
	abf_policy_add_del                  abf_policy_dump
	acl_add_replace                     acl_dump
	acl_interface_set_acl_list          acl_interface_list_dump
	add_del_ip_punt_redirect_v2         ip_punt_redirect_v2_dump
	af_packet_create_v2                 sw_interface_dump af_packet_dump
	af_packet_create_v3                 sw_interface_dump af_packet_dump
	bd_ip_mac_add_del                   bd_ip_mac_dump
	bond_add_member                     sw_member_interface_dump
	bond_create2                        sw_interface_dump sw_bond_interface_dump
	bridge_domain_add_del               bridge_domain_dump
	create_loopback                     sw_interface_dump
	create_vlan_subif                   sw_interface_dump
	dhcp_client_config                  dhcp_client_dump
	dhcp_proxy_config                   dhcp_proxy_dump
	flowprobe_interface_add_del         flowprobe_interface_dump
	gre_tunnel_add_del                  sw_interface_dump gre_tunnel_dump
	gtpu_add_del_tunnel                 sw_interface_dump gtpu_tunnel_dump
	ip_neighbor_add_del                 ip_neighbor_dump
	ip_route_add_del                    ip_route_v2_dump|ip_route_dump
	ip_table_add_del                    ip_table_dump
	ip_table_add_del_v2                 ip_table_dump
	ipip_add_tunnel                     sw_interface_dump ipip_tunnel_dump
	ipsec_interface_add_del_spd         ipsec_spd_interface_dump
	ipsec_itf_create                    sw_interface_dump ipsec_itf_dump
	ipsec_sad_entry_add                 ipsec_sa_v3_dump
	ipsec_spd_add_del                   ipsec_spds_dump
	ipsec_spd_entry_add_del             ipsec_spd_dump
	ipsec_spd_entry_add_del_v2          ipsec_spd_dump
	ipsec_tunnel_protect_update         ipsec_tunnel_protect_dump
	l2fib_add_del                       l2_fib_table_dump
	l3xc_update                         l3xc_dump
	macip_acl_add_replace               macip_acl_dump
	macip_acl_interface_add_del         macip_acl_interface_list_dump
	memif_create                        sw_interface_dump memif_dump
	memif_create_v2                     sw_interface_dump memif_dump
	memif_socket_filename_add_del       memif_socket_filename_dump
	nat44_add_del_address_range         nat44_address_dump
	nat44_add_del_identity_mapping      nat44_identity_mapping_dump
	nat44_add_del_lb_static_mapping     nat44_lb_static_mapping_dump
	nat44_add_del_static_mapping        nat44_static_mapping_dump
	nat44_add_del_static_mapping_v2     nat44_static_mapping_dump
	nat44_ed_add_del_output_interface   nat44_ed_output_interface_get
	nat44_ed_plugin_enable_disable      nat44_show_running_config
	nat44_ei_add_del_address_range      nat44_ei_address_dump
	nat44_ei_add_del_identity_mapping   nat44_ei_identity_mapping_dump
	nat44_ei_add_del_output_interface   nat44_ei_output_interface_get
	nat44_ei_add_del_static_mapping     nat44_ei_static_mapping_dump
	nat44_ei_interface_add_del_feature  nat44_ei_interface_dump
	nat44_ei_plugin_enable_disable      nat44_ei_show_running_config
	nat44_interface_add_del_feature     nat44_interface_dump
	proxy_arp_add_del                   proxy_arp_dump
	proxy_arp_intfc_enable_disable      proxy_arp_intfc_dump
	punt_socket_register                punt_socket_dump
	set_ipfix_exporter                  ipfix_exporter_dump
	rdma_create_v3                      sw_interface_dump
	rdma_create_v4                      sw_interface_dump
	sr_localsid_add_del                 sr_localsids_dump
	sr_policy_add                       sr_policies_with_sl_index_dump
	sr_steering_add_del                 sr_steering_pol_dump
	stn_add_del_rule                    stn_rules_dump
	sw_interface_add_del_address        ip_address_dump
	sw_interface_set_l2_xconnect        l2_xconnect_dump
	sw_interface_set_rx_placement       sw_interface_rx_placement_dump
	sw_interface_set_table              sw_interface_get_table
	sw_interface_set_unnumbered         ip_unnumbered_dump
	sw_interface_span_enable_disable    sw_interface_span_dump
	tap_create_v3                       sw_interface_dump sw_interface_tap_v2_dump
	teib_entry_add_del                  teib_dump
	vmxnet3_create                      sw_interface_dump sw_vmxnet3_interface_dump
	vrrp_vr_add_del                     vrrp_vr_dump
	vxlan_add_del_tunnel_v2             sw_interface_dump vxlan_tunnel_v2_dump
	vxlan_add_del_tunnel_v3             sw_interface_dump vxlan_tunnel_v2_dump
	vxlan_gpe_add_del_tunnel_v2         sw_interface_dump vxlan_gpe_tunnel_v2_dump
	wireguard_interface_create          sw_interface_dump wireguard_interface_dump
	wireguard_peer_add                  wireguard_peers_dump
`

// lists reports that a request lists something.
func (c *Conn) lists(request api.Message) bool {
	for _, all := range c.listings {
		for _, by := range all {
			if slices.Contains(strings.Split(by, "|"), request.GetMessageName()) {
				return true
			}
		}
	}
	return false
}

// parseListings returns listings, by request.
func parseListings() map[string][]string {
	out := map[string][]string{}
	for line := range strings.Lines(listings) {
		if words := strings.Fields(line); len(words) > 0 {
			out[words[0]] = words[1:]
		}
	}
	return out
}

// unlisted returns the error for a request that makes something that VPP cannot list; nil: it can, or the request makes
// nothing.
func (c *Conn) unlisted(request api.Message) error {
	for _, by := range c.listings[request.GetMessageName()] {
		either := strings.Split(by, "|")
		if !slices.ContainsFunc(either, func(name string) bool { return c.names[name] }) {
			return &Missing{Message: either[0], Release: c.release, Plugin: c.notLoaded(either[0])}
		}
	}
	return nil
}
