package vppsim

import (
	"fmt"
	"slices"
	"strings"
)

// A plugin is one of VPP's (25.10) of which we have messages: those of a package of the bindings.
type plugin struct{ of, file, description string }

func plugins() []plugin {
	return []plugin{
		{"af_packet", "af_packet_plugin.so", "af-packet"},
		{"dhcp", "dhcp_plugin.so", "Dynamic Host Configuration Protocol (DHCP)"},
		{"gre", "gre_plugin.so", "Generic Routing Encapsulation (GRE) plugin"},
		{"gtpu", "gtpu_plugin.so", "GPRS Tunnelling Protocol, User Data (GTPv1-U)"},
		{"l3xc", "l3xc_plugin.so", "L3 Cross-Connect (L3XC)"},
		{"memif", "memif_plugin.so", "Packet Memory Interface (memif) -- Experimental"},
		{"rdma", "rdma_plugin.so", "RDMA IBverbs Device Driver"},
		{"vmxnet3", "vmxnet3_plugin.so", "VMWare Vmxnet3 Device Driver"},
		{"vrrp", "vrrp_plugin.so", "VRRP v3 (RFC 5798)"},
		{"vxlan", "vxlan_plugin.so", "VxLan Tunnels"},
		{"vxlan_gpe", "vxlan-gpe_plugin.so", "VxLan GPE Tunnels"},
		{"wireguard", "wireguard_plugin.so", "Wireguard Protocol"},
	}
}

// showPlugins is the page of the real VPP (src/vlib/unix/plugin.c, vlib_plugins_show_cmd_fn).
func (w *world) showPlugins() string {
	var b strings.Builder
	fmt.Fprintf(&b, " Plugin path is: %s, plugins shown in load order\n\n", "none, as it is simulated")
	fmt.Fprintf(&b, "     %-41s%-33s%s\n", "Plugin", "Version", "Description")
	n := 0
	for _, p := range plugins() {
		if !slices.Contains(w.sim.o.Without, p.of) {
			n++
			fmt.Fprintf(&b, "%3d. %-40s %-32s %s\n", n, p.file, w.version(), p.description)
		}
	}
	return b.String()
}
