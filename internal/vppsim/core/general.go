package core

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/binapi/vlib"
	"go.fd.io/govpp/binapi/vpe"
)

// general serves the messages about the process itself.
func general(vpp *VPP) Plugin {
	return Plugin{
		Messages: []Message{
			// The reply's client_index stays 0 in the real VPP as well.
			Call(func(_ *memclnt.ControlPing, r *memclnt.ControlPingReply) Errno {
				r.VpePID = vpp.pid
				return OK
			}),
			// VPP answers first and then closes the connection.
			Call(func(_ *memclnt.SockclntDelete, r *memclnt.SockclntDeleteReply) Errno {
				r.Response = 1
				vpp.asking.leaves()
				return OK
			}),
			Call(func(_ *vpe.ShowVersion, r *vpe.ShowVersionReply) Errno {
				r.Program, r.Version = "vpe", vpp.version()
				return OK
			}),
			Call(func(q *vlib.CliInband, r *vlib.CliInbandReply) Errno {
				text, errno := vpp.run(strings.Join(strings.Fields(q.Cmd), " "))
				r.Reply = text
				return errno
			}),
		},
		Pages: map[string]func() string{
			"show plugins": vpp.showPlugins,
			"show version": func() string { return fmt.Sprintf("vpp v%s built by nobody, as it is simulated\n", vpp.version()) },
			"show version verbose": func() string {
				return fmt.Sprintf("Version:                  v%s\nCompiled by:              nobody\nCurrent PID:              %d\n", vpp.version(), os.Getpid())
			},
			"show version cmdline": func() string { return "Command line arguments:\n  vppsim\n" },
		},
	}
}

// version returns the version of show_version. Its suffix tells readers that this VPP is
// simulated.
func (v *VPP) version() string { return v.Options.Release + "-simulated" }

// A loadable is a plugin as "show plugins" of VPP 25.10 lists it. bindings is its package
// of GoVPP's bindings. Before the release since, VPP's core has it.
type loadable struct{ bindings, file, description, since string }

// loadables lists the plugins that are files of their own. VPP's core contains the others,
// for example bridge domains and bonds, so "show plugins" does not list those.
func loadables() []loadable {
	return []loadable{
		{"abf", "abf_plugin.so", "Access Control List (ACL) Based Forwarding", ""},
		{"acl", "acl_plugin.so", "Access Control Lists (ACL)", ""},
		{"af_packet", "af_packet_plugin.so", "af-packet", ""},
		{"dhcp", "dhcp_plugin.so", "Dynamic Host Configuration Protocol (DHCP)", ""},
		{"dns", "dns_plugin.so", "Simple DNS name resolver", ""},
		{"flowprobe", "flowprobe_plugin.so", "Flow per Packet", ""},
		{"gre", "gre_plugin.so", "Generic Routing Encapsulation (GRE) plugin", ""},
		{"gtpu", "gtpu_plugin.so", "GPRS Tunnelling Protocol, User Data (GTPv1-U)", ""},
		{"l3xc", "l3xc_plugin.so", "L3 Cross-Connect (L3XC)", ""},
		{"lacp", "lacp_plugin.so", "Link Aggregation Control Protocol (LACP)", ""},
		{"memif", "memif_plugin.so", "Packet Memory Interface (memif) -- Experimental", ""},
		{"nat44_ed", "nat_plugin.so", "Network Address Translation (NAT)", ""},
		{"nat44_ei", "nat44_ei_plugin.so", "IPv4 Endpoint-Independent NAT (NAT44 EI)", ""},
		{"rdma", "rdma_plugin.so", "RDMA IBverbs Device Driver", ""},
		{"sr_ad", "srv6ad_plugin.so", "Dynamic Segment Routing for IPv6 (SRv6) Proxy", ""},
		{"stn", "stn_plugin.so", "VPP Steals the NIC (STN) for Container Integration", ""},
		{"tapv2", "tap_plugin.so", "TAP/TUN device (virtio backend)", "26.02"},
		{"vmxnet3", "vmxnet3_plugin.so", "VMWare Vmxnet3 Device Driver", ""},
		{"vrrp", "vrrp_plugin.so", "VRRP v3 (RFC 5798)", ""},
		{"vxlan", "vxlan_plugin.so", "VxLan Tunnels", ""},
		{"vxlan_gpe", "vxlan-gpe_plugin.so", "VxLan GPE Tunnels", ""},
		{"wireguard", "wireguard_plugin.so", "Wireguard Protocol", ""},
	}
}

// Without returns the plugins of a release that are files of their own, except these files.
func Without(release string, loaded ...string) (bindings []string) {
	release = cmp.Or(release, Releases()[len(Releases())-1])
	for _, p := range loadables() {
		if !slices.Contains(loaded, p.file) && (p.since == "" || !before(release, p.since)) {
			bindings = append(bindings, p.bindings)
		}
	}
	return bindings
}

// showPlugins prints the page in the real VPP's format (VPP src/vlib/unix/plugin.c,
// vlib_plugins_show_cmd_fn).
func (v *VPP) showPlugins() string {
	var b strings.Builder
	fmt.Fprintf(&b, " Plugin path is: %s, plugins shown in load order\n\n", "none, as it is simulated")
	fmt.Fprintf(&b, "     %-41s%-33s%s\n", "Plugin", "Version", "Description")
	n := 0
	for _, p := range loadables() {
		if slices.Contains(v.Options.Without, p.bindings) || p.since != "" && v.Before(p.since) {
			continue
		}
		n++
		fmt.Fprintf(&b, "%3d. %-40s %-32s %s\n", n, p.file, v.version(), p.description)
	}
	return b.String()
}
