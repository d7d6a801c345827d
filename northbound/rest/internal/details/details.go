// Package details answers the paths of /dump: the actual values of one model each, in the forms
// that clients of existing deployments parse. The table [Paths] has all of them, even those
// whose model no descriptor of this agent has.
//
// The metadata of a descriptor reaches this package as JSON, so it knows no descriptor and
// no descriptor knows the names that clients expect. A field that a descriptor does not
// have is zero in the answer.
package details

import (
	"encoding/json"
	"iter"
	"net/http"
	"slices"
	"strconv"

	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
	"github.com/keyplane/keyplane/northbound/rest/wire/dumps"
	"github.com/keyplane/keyplane/proto/ligato/vpp/acl"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l2"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l3"
)

// An Item is a value that was read back: its message, without secrets unless the client
// may see them, and the metadata of its descriptor as JSON.
type Item struct {
	Value any
	// nil: the descriptor has no metadata, and all fields of the answer's metadata are zero.
	Meta json.RawMessage
}

// into decodes the metadata. Fields that the descriptor does not have stay zero.
func (i Item) into(meta any) { _ = json.Unmarshal(i.Meta, meta) }

// A Path is one path of /dump: the model whose actual values it answers, and how.
type Path struct {
	Path, Model, About string
	// Shape has the type of the answer, for the description of the API.
	Shape any
	// Answer converts the values. Their number is not bounded, so results are lazy.
	Answer func(w http.ResponseWriter, items iter.Seq[Item]) error
}

// Paths returns the table of /dump.
func Paths() []Path {
	const vpp, linux = "/dump/vpp/v2/", "/dump/linux/v2/"
	out := []Path{
		{vpp + "abf", "vpp.abfs.abf", "ACL-based forwarding policies of VPP", []dumps.Details{}, listOf(plainDetails)},
		{vpp + "acl/ip", "vpp.acls.acl", "IP ACLs of VPP", []dumps.Details{}, listOf(plainDetails, isIPACL)},
		{vpp + "acl/macip", "vpp.acls.acl", "MACIP ACLs of VPP", []dumps.Details{}, listOf(plainDetails, isMACIPACL)},
		{vpp + "interfaces", "vpp.interfaces", "interfaces of VPP, by index", map[string]dumps.InterfaceDetails{}, interfacesOf()},
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
		out = append(out, Path{vpp + "interfaces/" + kind.path, "vpp.interfaces", kind.about + " of VPP, by index",
			map[string]dumps.InterfaceDetails{}, interfacesOf(kind.types...)})
	}
	return append(out, []Path{
		{vpp + "nat/global", "vpp.nat.nat44-global", "NAT44 of VPP", dumps.Details{}, single(plainDetails)},
		{vpp + "nat/dnat", "vpp.nat.dnat44", "DNAT44 of VPP", []dumps.Details{}, listOf(plainDetails)},
		{vpp + "nat/interfaces", "vpp.nat.nat44-interface", "NAT44 interfaces of VPP", []dumps.Details{}, listOf(plainDetails)},
		{vpp + "nat/pools", "vpp.nat.nat44-pool", "NAT44 pools of VPP", []dumps.Details{}, listOf(plainDetails)},
		{vpp + "bd", "vpp.l2.bridge-domain", "bridge domains of VPP", []dumps.BridgeDomainDetails{}, listOf(bridgeDetails)},
		{vpp + "fib", "vpp.l2.fib", "entries of the L2 FIB of VPP, by MAC address", map[string]dumps.FIBDetails{}, mapOf(fibDetails)},
		{vpp + "xc", "vpp.l2.xconnect", "cross-connects of VPP, by receiving interface", map[string]dumps.XConnectDetails{}, mapOf(xconnectDetails)},
		{vpp + "routes", "vpp.route", "routes of VPP", []dumps.RouteDetails{}, listOf(func(i Item) any { return dumps.RouteDetails{Route: i.Value, Meta: i.Meta} })},
		{vpp + "arps", "vpp.arp", "neighbours of VPP", []dumps.ARPDetails{}, listOf(func(i Item) any { return dumps.ARPDetails{Arp: i.Value, Meta: i.Meta} })},
		{vpp + "proxyarp/interfaces", "vpp.proxyarp-global", "interfaces of VPP with proxy ARP", []dumps.ProxyARPInterfaceDetails{}, proxyInterfaces},
		{vpp + "proxyarp/ranges", "vpp.proxyarp-global", "ranges of proxy ARP of VPP", []dumps.ProxyARPRangeDetails{}, proxyRanges},
		{vpp + "ipscanneigh", "vpp.ipscanneigh-global", "scanning of neighbours by VPP", &l3.IPScanNeighbor{}, single(func(i Item) any { return i.Value })},
		{vpp + "vrrps", "vpp.vrrp", "virtual routers of VPP", []dumps.VRRPDetails{}, listOf(func(i Item) any { return dumps.VRRPDetails{Vrrp: i.Value, Meta: i.Meta} })},
		{vpp + "ipsec/spds", "vpp.ipsec.spd", "IPsec policy databases of VPP", []dumps.Details{}, listOf(plainDetails)},
		{vpp + "ipsec/sps", "vpp.ipsec.sp", "IPsec policies of VPP", []dumps.Details{}, listOf(plainDetails)},
		{vpp + "ipsec/sas", "vpp.ipsec.sa", "IPsec security associations of VPP", []dumps.Details{}, listOf(plainDetails)},
		{vpp + "punt/sockets", "vpp.tohost", "punt sockets of VPP", []dumps.Details{}, listOf(plainDetails)},
		{vpp + "wireguard/peers", "vpp.wg.peer", "WireGuard peers of VPP", []dumps.Details{}, listOf(plainDetails)},
		{linux + "interfaces", "linux.interfaces.interface", "interfaces of Linux", []dumps.LinuxInterfaceDetails{}, listOf(linuxDetails)},
		{linux + "routes", "linux.l3.route", "routes of Linux", []dumps.LinuxRouteDetails{},
			listOf(func(i Item) any { return dumps.LinuxRouteDetails{Route: i.Value, Meta: i.Meta} })},
		{linux + "arps", "linux.l3.arp", "neighbours of Linux", []dumps.LinuxARPDetails{},
			listOf(func(i Item) any { return dumps.LinuxARPDetails{ARP: i.Value, Meta: i.Meta} })},
	}...)
}

// listOf answers an array of the items that all filters accept.
func listOf(convert func(Item) any, filters ...func(Item) bool) func(http.ResponseWriter, iter.Seq[Item]) error {
	return func(w http.ResponseWriter, items iter.Seq[Item]) error {
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
func accepted(i Item, filters []func(Item) bool) bool {
	return !slices.ContainsFunc(filters, func(f func(Item) bool) bool { return !f(i) })
}

// single answers the value of a model that has only one, or null.
func single(convert func(Item) any) func(http.ResponseWriter, iter.Seq[Item]) error {
	return func(w http.ResponseWriter, items iter.Seq[Item]) error {
		for i := range items {
			return reply.JSON(w, convert(i))
		}
		return reply.JSON(w, nil)
	}
}

// mapOf answers an object of items by the key that convert returns. Of two items with one key
// the later wins. Unlike listOf, it holds all items in memory.
func mapOf(convert func(Item) (key string, details any)) func(http.ResponseWriter, iter.Seq[Item]) error {
	return func(w http.ResponseWriter, items iter.Seq[Item]) error {
		out := map[string]any{}
		for i := range items {
			key, details := convert(i)
			out[key] = details
		}
		return reply.JSON(w, out)
	}
}

// interfacesOf answers the interfaces of the types, or all of them, by index.
func interfacesOf(types ...interfaces.Interface_Type) func(http.ResponseWriter, iter.Seq[Item]) error {
	return func(w http.ResponseWriter, items iter.Seq[Item]) error {
		out := map[uint32]dumps.InterfaceDetails{}
		for i := range items {
			v, _ := i.Value.(*interfaces.Interface)
			if len(types) > 0 && !slices.Contains(types, v.GetType()) {
				continue
			}
			var meta struct {
				SwIfIndex, Parent                    uint32
				InternalName, DevType, TAPHostIfName string
			}
			i.into(&meta)
			out[meta.SwIfIndex] = dumps.InterfaceDetails{Interface: v, Meta: dumps.InterfaceMeta{
				SwIfIndex: meta.SwIfIndex, SupSwIfIndex: meta.Parent, InternalName: meta.InternalName, DevType: meta.DevType, TAPHost: meta.TAPHostIfName,
			}}
		}
		return reply.JSON(w, out)
	}
}

// plainDetails returns the value and its metadata, for models without a form of their own.
func plainDetails(i Item) any { return dumps.Details{Value: i.Value, Meta: i.Meta} }

// bridgeDetails has the number of the bridge domain under the name that clients expect.
func bridgeDetails(i Item) any {
	out := dumps.BridgeDomainDetails{BridgeDomain: i.Value}
	i.into(&out.Meta)
	var meta struct{ ID uint32 }
	i.into(&meta)
	out.Meta.ID = meta.ID
	return out
}

// fibDetails returns an entry of the L2 FIB under its MAC address.
func fibDetails(i Item) (string, any) {
	v, _ := i.Value.(*l2.FIBEntry)
	out := dumps.FIBDetails{FIB: i.Value}
	var meta struct{ Bridge, Interface uint32 }
	i.into(&meta)
	out.Meta.Bridge, out.Meta.Interface = meta.Bridge, meta.Interface
	return v.GetPhysAddress(), out
}

// xconnectDetails returns a cross-connect under the interface that receives.
func xconnectDetails(i Item) (string, any) {
	out := dumps.XConnectDetails{XConnect: i.Value}
	var meta struct{ Receive uint32 }
	i.into(&meta)
	out.Meta.Receive = meta.Receive
	return strconv.FormatUint(uint64(meta.Receive), 10), out
}

// linuxDetails returns a Linux interface with its metadata.
func linuxDetails(i Item) any {
	var meta struct {
		LinuxIfIndex            int
		HostIfName, VrfMasterIf string
	}
	i.into(&meta)
	return dumps.LinuxInterfaceDetails{Interface: i.Value, Meta: dumps.LinuxInterfaceMeta{Index: meta.LinuxIfIndex, HostName: meta.HostIfName, VRF: meta.VrfMasterIf}}
}

// proxyInterfaces answers the interfaces of proxy ARP, without the ranges. The model has
// both in one value; existing clients ask for them separately.
func proxyInterfaces(w http.ResponseWriter, items iter.Seq[Item]) error {
	out := []dumps.ProxyARPInterfaceDetails{}
	for i := range items {
		v, _ := i.Value.(*l3.ProxyARP)
		for _, one := range v.GetInterfaces() {
			out = append(out, dumps.ProxyARPInterfaceDetails{Interface: one})
		}
	}
	return reply.JSON(w, out)
}

// proxyRanges answers the ranges of proxy ARP, without the interfaces.
func proxyRanges(w http.ResponseWriter, items iter.Seq[Item]) error {
	out := []dumps.ProxyARPRangeDetails{}
	for i := range items {
		v, _ := i.Value.(*l3.ProxyARP)
		for _, one := range v.GetRanges() {
			out = append(out, dumps.ProxyARPRangeDetails{Range: one})
		}
	}
	return reply.JSON(w, out)
}

// isIPACL reports whether the list has rules about IP.
func isIPACL(i Item) bool {
	v, _ := i.Value.(*acl.ACL)
	return slices.ContainsFunc(v.GetRules(), func(r *acl.ACL_Rule) bool { return r.GetIpRule() != nil })
}

// isMACIPACL reports whether the list has rules about MAC and IP.
func isMACIPACL(i Item) bool {
	v, _ := i.Value.(*acl.ACL)
	return slices.ContainsFunc(v.GetRules(), func(r *acl.ACL_Rule) bool { return r.GetMacipRule() != nil })
}
