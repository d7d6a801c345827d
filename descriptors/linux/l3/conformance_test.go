package l3

import (
	"testing"

	"github.com/keyplane/keyplane/proto/ligato/linux/l3"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/conformance"
)

func TestRouteConforms(t *testing.T) {
	r := func(more string) *l3.Route {
		return route(t, `dst_network: "10.9.0.0/16" outgoing_interface: "if1" `+more)
	}
	conformance.Run(t, conformance.Suite[*l3.Route, RouteMeta]{
		New: func(t *testing.T) scheduler.Descriptor[*l3.Route, RouteMeta] {
			h, _, _ := inRed(t)
			return h.routeDescriptor()
		},
		Values: []scheduler.Desired[*l3.Route]{
			{Value: r(`gw_addr: "10.1.0.2"`)},
			{Value: route(t, `dst_network: "10.7.0.0/16" outgoing_interface: "if1" gw_addr: "10.1.0.2/24"`)},
			{Value: route(t, `dst_network: "10.6.0.0/16" outgoing_interface: "if1" gw_addr: "0.0.0.0"`)},
			{Value: route(t, `dst_network: "fd06::/32" outgoing_interface: "if1" gw_addr: "::/0"`)},
			{Value: route(t, `dst_network: "10.8.0.0/16" outgoing_interface: "if2"`)},
			{Value: route(t, `dst_network: "::/0" outgoing_interface: "if2" gw_addr: "fd02::2"`)},
		},
		Changes: []conformance.Change[*l3.Route]{
			{Name: "gateway", From: r(`gw_addr: "10.1.0.2"`), To: r(`gw_addr: "10.1.0.3"`), How: conformance.Updated},
			{Name: "scope", From: r(``), To: r(`scope: HOST`), How: conformance.Updated},
			{Name: "metric", From: r(``), To: r(`metric: 1`), How: conformance.Recreated},
			{Name: "gateway 0.0.0.0", From: r(``), To: r(`gw_addr: "0.0.0.0" scope: LINK`), How: conformance.Unchanged},
			{Name: "gateway with length", From: r(`gw_addr: "10.1.0.2"`), To: r(`gw_addr: "10.1.0.2/24"`), How: conformance.Unchanged},
			{Name: "default scope", From: r(``), To: r(`scope: LINK`), How: conformance.Unchanged},
		},
		Invalid: []conformance.Invalid[*l3.Route]{
			{Name: "all at once", Value: &l3.Route{DstNetwork: "x", GwAddr: "y", Scope: l3.Route_LINK},
				Fields: []string{"outgoing_interface", "dst_network", "gw_addr", "scope"}},
		},
	})
}

func TestARPConforms(t *testing.T) {
	n := func(ip, mac string) *l3.ARPEntry {
		return &l3.ARPEntry{Interface: "if1", IpAddress: ip, HwAddress: mac}
	}
	const mac = "02:fe:00:00:00:09"
	conformance.Run(t, conformance.Suite[*l3.ARPEntry, ARPMeta]{
		New: func(t *testing.T) scheduler.Descriptor[*l3.ARPEntry, ARPMeta] {
			h, _, _ := inRed(t)
			return h.arpDescriptor()
		},
		Values: []scheduler.Desired[*l3.ARPEntry]{{Value: n("10.1.0.9", mac)}, {Value: n("fd01::9", mac)}, {Value: n("10.1.0.8/24", mac)}},
		Changes: []conformance.Change[*l3.ARPEntry]{
			{Name: "MAC", From: n("10.1.0.9", mac), To: n("10.1.0.9", "02:fe:00:00:00:0a"), How: conformance.Updated},
			{Name: "spelling", From: n("10.1.0.9", mac), To: n("10.1.0.9", "02-FE-00-00-00-09"), How: conformance.Unchanged},
		},
		Invalid: []conformance.Invalid[*l3.ARPEntry]{
			{Name: "all at once", Value: n("x", "y"), Fields: []string{"ip_address", "hw_address"}},
		},
	})
}
