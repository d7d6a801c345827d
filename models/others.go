package models

import (
	"github.com/keyplane/keyplane/proto/ligato/govppmux"
	"github.com/keyplane/keyplane/proto/ligato/netalloc"
)

// otherModels returns allocated addresses, which values of Linux and VPP refer to, and the
// statistics of the connection to VPP.
func otherModels() []*Model {
	stats := singleton[*govppmux.Metrics]("govppmux", "v0", "stats", "")
	stats.Class = "metrics"
	stats.prefix = prefixOf(stats.Class, stats.Module, stats.Version, stats.Type)
	return []*Model{
		keyed("netalloc", "v1", "ip", `network/{{.NetworkName}}/interface/{{.InterfaceName}}`, "ipAddresses",
			func(v *netalloc.IPAllocation) string {
				return "network/" + v.GetNetworkName() + "/interface/" + v.GetInterfaceName()
			}),
		stats,
	}
}
