package vppsim

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/rd_cp"
)

// An autoconf is whether an interface takes addresses and default routes from what routers
// advertise. VPP keeps it for whatever gets the index next (VPP rd_cp.c).
type autoconf struct{ addresses, routes bool }

func autoconfMessages() []entry {
	return []entry{
		on(func(q *rd_cp.IP6NdAddressAutoconfig) interface_types.InterfaceIndex { return q.SwIfIndex },
			func(w *world, i *iface, q *rd_cp.IP6NdAddressAutoconfig, _ *rd_cp.IP6NdAddressAutoconfigReply) errno {
				if delete(w.autoconfs, i.index); q.Enable {
					w.autoconfs[i.index] = autoconf{true, q.InstallDefaultRoutes}
				}
				return ok
			}),
	}
}

func (w *world) showAutoconfs() string {
	var b strings.Builder
	for _, index := range slices.Sorted(maps.Keys(w.autoconfs)) {
		fmt.Fprintf(&b, "%s autoconfig routes %t\n", w.nameOf(index), w.autoconfs[index].routes)
	}
	return b.String()
}
