// Package rdcp simulates IPv6 address autoconfiguration: an interface takes addresses, and
// on request default routes, from router advertisements. There are no advertisements here,
// so only the setting exists. VPP keeps it when the interface is deleted, and the next
// interface of that index inherits it (VPP rd_cp.c). No message reads it back.
package rdcp

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/rd_cp"

	"github.com/keyplane/keyplane/internal/vppsim/core"
)

type plugin struct {
	vpp    *core.VPP
	routes map[uint32]bool // by index of an interface that takes addresses: it takes default routes too
}

// New adds the plugin.
func New(vpp *core.VPP) {
	p := &plugin{vpp, map[uint32]bool{}}
	index := func(q *rd_cp.IP6NdAddressAutoconfig) interface_types.InterfaceIndex { return q.SwIfIndex }
	vpp.Register(core.Plugin{
		Messages: []core.Message{core.On(vpp, index, p.set)},
		Pages:    map[string]func() string{"show ip6 nd": p.show},
	})
}

func (p *plugin) set(i *core.Interface, q *rd_cp.IP6NdAddressAutoconfig, _ *rd_cp.IP6NdAddressAutoconfigReply) core.Errno {
	delete(p.routes, i.Index)
	if q.Enable {
		p.routes[i.Index] = q.InstallDefaultRoutes
	}
	return core.OK
}

func (p *plugin) show() string {
	var b strings.Builder
	for _, index := range slices.Sorted(maps.Keys(p.routes)) {
		fmt.Fprintf(&b, "%s autoconfig routes %t\n", p.vpp.NameOf(index), p.routes[index])
	}
	return b.String()
}
