package conn

import (
	"path"
	"reflect"
	"slices"
	"sync"

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

// brought has the messages of each package of bindings, and the package of each message. It is for reading only.
var brought = sync.OnceValues(func() (messages map[string][]string, bindings map[string]string) {
	messages, bindings = map[string][]string{}, map[string]string{}
	for _, all := range api.GetRegisteredMessages() {
		for _, m := range all {
			name, by := m.GetMessageName(), path.Base(reflect.TypeOf(m).Elem().PkgPath())
			messages[by], bindings[name] = append(messages[by], name), by
		}
	}
	return messages, bindings
})

// notLoaded returns the file of the plugin that brings a message, if VPP has no message of it: then it
// is not loaded. A plugin that is there and lacks the message is of another release.
func (c *Conn) notLoaded(message string) string {
	messages, bindings := brought()
	by := bindings[message]
	if slices.ContainsFunc(messages[by], func(name string) bool { return c.names[name] }) {
		return ""
	}
	return pluginFile(by)
}
