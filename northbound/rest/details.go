package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strconv"

	"github.com/keyplane/keyplane/northbound/rest/internal/endpoint"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/proto/ligato/vpp/acl"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l2"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l3"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/inspect"
)

// An item is a value that was read back: its message, without secrets unless the client
// may see them, and the metadata of its descriptor as JSON.
type item struct {
	value any
	meta  json.RawMessage
}

// into decodes the metadata. Fields that the descriptor does not have stay zero.
func (i item) into(meta any) { _ = json.Unmarshal(i.meta, meta) }

// A detailing is one path of /dump: the model whose actual values it answers, and how.
type detailing struct {
	path, model, about string
	// For the description of the API only.
	shape any
	// answer converts the values. Their number is not bounded, so results are lazy.
	answer func(w http.ResponseWriter, items iter.Seq[item]) error
}

// detailings returns the table of /dump.
func detailings() []detailing {
	const vpp, linux = "/dump/vpp/v2/", "/dump/linux/v2/"
	out := []detailing{
		{vpp + "abf", "vpp.abfs.abf", "ACL-based forwarding policies of VPP", []wire.Details{}, listOf(plainDetails)},
		{vpp + "acl/ip", "vpp.acls.acl", "IP ACLs of VPP", []wire.Details{}, listOf(plainDetails, isIPACL)},
		{vpp + "acl/macip", "vpp.acls.acl", "MACIP ACLs of VPP", []wire.Details{}, listOf(plainDetails, isMACIPACL)},
		{vpp + "interfaces", "vpp.interfaces", "interfaces of VPP, by index", map[string]wire.InterfaceDetails{}, interfacesOf()},
	}
	for _, kind := range []struct {
		path, about string
		types       []interfaces.Interface_Type
	}{
		{"loopback", "loopbacks", []interfaces.Interface_Type{interfaces.Interface_SOFTWARE_LOOPBACK}},
		{"ethernet", "hardware interfaces", []interfaces.Interface_Type{interfaces.Interface_DPDK}},
		{"memif", "memifs", []interfaces.Interface_Type{interfaces.Interface_MEMIF}},
		{"tap", "TAPs", []interfaces.Interface_Type{interfaces.Interface_TAP}},
		{"afpacket", "AF_PACKET interfaces", []interfaces.Interface_Type{interfaces.Interface_AF_PACKET}},
		{"vxlan", "VXLAN tunnels", []interfaces.Interface_Type{interfaces.Interface_VXLAN_TUNNEL}},
	} {
		out = append(out, detailing{vpp + "interfaces/" + kind.path, "vpp.interfaces", kind.about + " of VPP, by index",
			map[string]wire.InterfaceDetails{}, interfacesOf(kind.types...)})
	}
	return append(out, []detailing{
		{vpp + "nat/global", "vpp.nat.nat44-global", "NAT44 of VPP", wire.Details{}, single(plainDetails)},
		{vpp + "nat/dnat", "vpp.nat.dnat44", "DNAT44 of VPP", []wire.Details{}, listOf(plainDetails)},
		{vpp + "nat/interfaces", "vpp.nat.nat44-interface", "NAT44 interfaces of VPP", []wire.Details{}, listOf(plainDetails)},
		{vpp + "nat/pools", "vpp.nat.nat44-pool", "NAT44 pools of VPP", []wire.Details{}, listOf(plainDetails)},
		{vpp + "bd", "vpp.l2.bridge-domain", "bridge domains of VPP", []wire.BridgeDomainDetails{}, listOf(bridgeDetails)},
		{vpp + "fib", "vpp.l2.fib", "entries of the L2 FIB of VPP, by MAC address", map[string]wire.FIBDetails{}, mapOf(fibDetails)},
		{vpp + "xc", "vpp.l2.xconnect", "cross-connects of VPP, by receiving interface", map[string]wire.XConnectDetails{}, mapOf(xconnectDetails)},
		{vpp + "routes", "vpp.route", "routes of VPP", []wire.RouteDetails{}, listOf(func(i item) any { return wire.RouteDetails{Route: i.value, Meta: i.meta} })},
		{vpp + "arps", "vpp.arp", "neighbours of VPP", []wire.ARPDetails{}, listOf(func(i item) any { return wire.ARPDetails{Arp: i.value, Meta: i.meta} })},
		{vpp + "proxyarp/interfaces", "vpp.proxyarp-global", "interfaces of VPP with proxy ARP", []wire.ProxyARPInterfaceDetails{}, proxyInterfaces},
		{vpp + "proxyarp/ranges", "vpp.proxyarp-global", "ranges of proxy ARP of VPP", []wire.ProxyARPRangeDetails{}, proxyRanges},
		{vpp + "ipscanneigh", "vpp.ipscanneigh-global", "scanning of neighbours by VPP", &l3.IPScanNeighbor{}, single(func(i item) any { return i.value })},
		{vpp + "vrrps", "vpp.vrrp", "virtual routers of VPP", []wire.VRRPDetails{}, listOf(func(i item) any { return wire.VRRPDetails{Vrrp: i.value, Meta: i.meta} })},
		{vpp + "ipsec/spds", "vpp.ipsec.spd", "IPsec policy databases of VPP", []wire.Details{}, listOf(plainDetails)},
		{vpp + "ipsec/sps", "vpp.ipsec.sp", "IPsec policies of VPP", []wire.Details{}, listOf(plainDetails)},
		{vpp + "ipsec/sas", "vpp.ipsec.sa", "IPsec security associations of VPP", []wire.Details{}, listOf(plainDetails)},
		{vpp + "punt/sockets", "vpp.tohost", "punt sockets of VPP", []wire.Details{}, listOf(plainDetails)},
		{vpp + "wireguard/peers", "vpp.wg.peer", "WireGuard peers of VPP", []wire.Details{}, listOf(plainDetails)},
		{linux + "interfaces", "linux.interfaces.interface", "interfaces of Linux", []wire.LinuxInterfaceDetails{}, listOf(linuxDetails)},
		{linux + "routes", "linux.l3.route", "routes of Linux", []wire.LinuxRouteDetails{},
			listOf(func(i item) any { return wire.LinuxRouteDetails{Route: i.value, Meta: i.meta} })},
		{linux + "arps", "linux.l3.arp", "neighbours of Linux", []wire.LinuxARPDetails{},
			listOf(func(i item) any { return wire.LinuxARPDetails{ARP: i.value, Meta: i.meta} })},
	}...)
}

// dumps returns the endpoints of /dump. A path of existing deployments is in this table
// even if no descriptor of this agent has its model.
func (h *handler) dumps() (out []endpoint.Endpoint) {
	for _, d := range detailings() {
		out = append(out, endpoint.Get(d.path, endpoint.Dump, "secrets=1", d.about+", read back now", func(w http.ResponseWriter, r *http.Request, q endpoint.Query) error {
			return h.details(w, r, q, d)
		}).Answers(d.shape).Costly())
	}
	return out
}

// details answers one path of /dump. Without a descriptor of the model, and if the
// southbound cannot be read, the answer is a text with status 500, as existing clients
// expect it.
func (h *handler) details(w http.ResponseWriter, r *http.Request, q endpoint.Query, d detailing) error {
	h, err := h.revealing(r, q)
	if err != nil {
		return err
	}
	found, err := h.actual(r.Context(), d.model)
	if err != nil {
		reply.Header(w, reply.JSONType, http.StatusInternalServerError)
		reply.Encode(w, "", fmt.Sprintf("500 Internal server error: %v", err))
		return nil
	}
	return d.answer(w, reply.Mapped(found, h.item))
}

// actual reads back the values of a model.
func (h *handler) actual(ctx context.Context, model string) ([]scheduler.Found[proto.Message, any], error) {
	m, ok := h.sched.Models().ByName(model)
	if !ok {
		return nil, fmt.Errorf("there is no model %s", model)
	}
	all := inspect.Descriptors(h.sched)
	i := slices.IndexFunc(all, func(d inspect.Descriptor) bool { return d.Modelled && d.Prefix == m.Prefix() })
	if i < 0 {
		return nil, fmt.Errorf("this agent has no descriptor for %s", model)
	}
	return inspect.Dump(ctx, h.sched, all[i].Name)
}

// item converts a value that was read back.
func (h *handler) item(f scheduler.Found[proto.Message, any]) item {
	if h.Secrets {
		return item{f.Value, metadata(f.Meta)}
	}
	return item{models.Redacted(f.Value), metadata(f.Meta)}
}

// listOf answers an array of the items that all filters accept.
func listOf(convert func(item) any, filters ...func(item) bool) func(http.ResponseWriter, iter.Seq[item]) error {
	return func(w http.ResponseWriter, items iter.Seq[item]) error {
		return reply.Array(w, func(yield func(any) bool) {
			for i := range items {
				if accepted(i, filters) && !yield(convert(i)) {
					return
				}
			}
		})
	}
}

// accepted reports whether all filters accept the item.
func accepted(i item, filters []func(item) bool) bool {
	return !slices.ContainsFunc(filters, func(f func(item) bool) bool { return !f(i) })
}

// single answers the value of a model that has only one, or null.
func single(convert func(item) any) func(http.ResponseWriter, iter.Seq[item]) error {
	return func(w http.ResponseWriter, items iter.Seq[item]) error {
		for i := range items {
			return reply.JSON(w, convert(i))
		}
		return reply.JSON(w, nil)
	}
}

// mapOf answers an object of items by the key that convert returns.
func mapOf(convert func(item) (key string, details any)) func(http.ResponseWriter, iter.Seq[item]) error {
	return func(w http.ResponseWriter, items iter.Seq[item]) error {
		out := map[string]any{}
		for i := range items {
			key, details := convert(i)
			out[key] = details
		}
		return reply.JSON(w, out)
	}
}

// interfacesOf answers the interfaces of the types, or all of them, by index.
func interfacesOf(types ...interfaces.Interface_Type) func(http.ResponseWriter, iter.Seq[item]) error {
	return func(w http.ResponseWriter, items iter.Seq[item]) error {
		out := map[uint32]wire.InterfaceDetails{}
		for i := range items {
			v, _ := i.value.(*interfaces.Interface)
			if len(types) > 0 && !slices.Contains(types, v.GetType()) {
				continue
			}
			var meta struct {
				Index, Parent                  uint32
				InternalName, DevType, TAPHost string
			}
			i.into(&meta)
			out[meta.Index] = wire.InterfaceDetails{Interface: v, Meta: wire.InterfaceMeta{
				SwIfIndex: meta.Index, SupSwIfIndex: meta.Parent, InternalName: meta.InternalName, DevType: meta.DevType, TAPHost: meta.TAPHost,
			}}
		}
		return reply.JSON(w, out)
	}
}

// plainDetails returns the value and its metadata, for models without a form of their own.
func plainDetails(i item) any { return wire.Details{Value: i.value, Meta: i.meta} }

// bridgeDetails has the number of the bridge domain under the name that clients expect.
func bridgeDetails(i item) any {
	out := wire.BridgeDomainDetails{BridgeDomain: i.value}
	i.into(&out.Meta)
	var meta struct{ ID uint32 }
	i.into(&meta)
	out.Meta.ID = meta.ID
	return out
}

// fibDetails returns an entry of the L2 FIB under its MAC address.
func fibDetails(i item) (string, any) {
	v, _ := i.value.(*l2.FIBEntry)
	out := wire.FIBDetails{FIB: i.value}
	var meta struct{ Bridge, Interface uint32 }
	i.into(&meta)
	out.Meta.Bridge, out.Meta.Interface = meta.Bridge, meta.Interface
	return v.GetPhysAddress(), out
}

// xconnectDetails returns a cross-connect under the interface that receives.
func xconnectDetails(i item) (string, any) {
	out := wire.XConnectDetails{XConnect: i.value}
	var meta struct{ Receive uint32 }
	i.into(&meta)
	out.Meta.Receive = meta.Receive
	return strconv.FormatUint(uint64(meta.Receive), 10), out
}

// linuxDetails returns a Linux interface with its metadata.
func linuxDetails(i item) any {
	var meta struct {
		Index         int
		HostName, VRF string
	}
	i.into(&meta)
	return wire.LinuxInterfaceDetails{Interface: i.value, Meta: wire.LinuxInterfaceMeta(meta)}
}

// proxyInterfaces answers the interfaces of proxy ARP, without the ranges.
func proxyInterfaces(w http.ResponseWriter, items iter.Seq[item]) error {
	out := []wire.ProxyARPInterfaceDetails{}
	for i := range items {
		v, _ := i.value.(*l3.ProxyARP)
		for _, one := range v.GetInterfaces() {
			out = append(out, wire.ProxyARPInterfaceDetails{Interface: one})
		}
	}
	return reply.JSON(w, out)
}

// proxyRanges answers the ranges of proxy ARP, without the interfaces.
func proxyRanges(w http.ResponseWriter, items iter.Seq[item]) error {
	out := []wire.ProxyARPRangeDetails{}
	for i := range items {
		v, _ := i.value.(*l3.ProxyARP)
		for _, one := range v.GetRanges() {
			out = append(out, wire.ProxyARPRangeDetails{Range: one})
		}
	}
	return reply.JSON(w, out)
}

// isIPACL reports whether the list has rules about IP.
func isIPACL(i item) bool {
	v, _ := i.value.(*acl.ACL)
	return slices.ContainsFunc(v.GetRules(), func(r *acl.ACL_Rule) bool { return r.GetIpRule() != nil })
}

// isMACIPACL reports whether the list has rules about MAC and IP.
func isMACIPACL(i item) bool {
	v, _ := i.value.(*acl.ACL)
	return slices.ContainsFunc(v.GetRules(), func(r *acl.ACL_Rule) bool { return r.GetMacipRule() != nil })
}
