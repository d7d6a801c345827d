package models

import (
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/linux/iptables"
	"github.com/keyplane/keyplane/proto/ligato/linux/l3"
)

// linuxModels returns the models that are applied in the Linux kernel.
func linuxModels() []*Model {
	return []*Model{
		keyed("linux.interfaces", "v2", "interface", `{{.Name}}`, "interfaces", (*interfaces.Interface).GetName),
		keyed("linux.iptables", "v2", "rulechain", `{{.Name}}`, "RuleChain", (*iptables.RuleChain).GetName),
		keyed("linux.l3", "v2", "arp", `{{.Interface}}/{{.IpAddress}}`, "arpEntries",
			func(v *l3.ARPEntry) string { return v.GetInterface() + "/" + v.GetIpAddress() }),
		keyed("linux.l3", "v2", "route",
			`{{with ipnet .DstNetwork}}{{printf "%s/%d" .IP .MaskSize}}{{else}}{{.DstNetwork}}{{end}}/{{.OutgoingInterface}}`,
			"routes",
			func(v *l3.Route) string { return network(v.GetDstNetwork()) + "/" + v.GetOutgoingInterface() }),
	}
}
