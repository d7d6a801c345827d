package conn

import (
	"path"
	"reflect"

	"go.fd.io/govpp/api"
)

// pluginFile returns the file of the plugin that brings the messages of a package of bindings; empty:
// VPP's core does. TAPs were in the core before 26.02, and IPIP tunnels up to 26.06.
func pluginFile(bindings string) string {
	switch bindings {
	case "tapv2":
		return "tap_plugin.so"
	case "nat44_ed":
		return "nat_plugin.so"
	case "vxlan_gpe":
		return "vxlan-gpe_plugin.so"
	case "abf", "acl", "af_packet", "dhcp", "dns", "flowprobe", "gre", "gtpu", "ipip", "l3xc", "memif", "nat44_ei", "rdma", "stn", "vmxnet3", "vrrp", "vxlan", "wireguard":
		return bindings + "_plugin.so"
	}
	return ""
}

// notLoaded returns the file of the plugin that brings a message, if VPP has no message of it: then it
// is not loaded. A plugin that is there and lacks the message is of another release.
func (c *Conn) notLoaded(message string) string {
	bindingsOf, loaded := "", map[string]bool{}
	for _, all := range api.GetRegisteredMessages() {
		for _, m := range all {
			bindings := path.Base(reflect.TypeOf(m).Elem().PkgPath())
			loaded[bindings] = loaded[bindings] || c.names[m.GetMessageName()]
			if m.GetMessageName() == message {
				bindingsOf = bindings
			}
		}
	}
	if loaded[bindingsOf] {
		return ""
	}
	return pluginFile(bindingsOf)
}
