// Package details answers the paths of /dump: the actual values of one model each, in the forms
// that clients of vpp-agent 3.5 parse. The table [Paths] has all of them, even those
// whose model no descriptor of this agent has.
//
// What a descriptor tells besides the value reaches this package as JSON, so it knows no
// descriptor. The metadata has names that this package translates. The details of a system have
// the names of 3.5 already: nothing else reads them. What nobody tells is zero in the answer.
//
// Tests: package rest compares the answer of each path with a golden file, with every field set.
package details

import (
	"encoding/json"
	"iter"
	"net/http"
	"net/netip"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
	"github.com/keyplane/keyplane/northbound/rest/wire/dumps"
	linuxif "github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/vpp/acl"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/vpp/ipsec"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l2"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l3"
	"github.com/keyplane/keyplane/proto/ligato/vpp/nat"
	"github.com/keyplane/keyplane/proto/ligato/vpp/punt"
	"github.com/keyplane/keyplane/proto/ligato/vpp/wireguard"
)

// An Item is a value that was read back: its message, without secrets unless the client
// may see them, and what the descriptor tells besides, as JSON.
type Item struct {
	Value any
	// The metadata, and the details that the system tells of the item.
	// nil: there are none, and the fields of the answer are zero.
	Meta, Details json.RawMessage
}

// into decodes what the descriptor tells. Fields that it does not have stay as they are.
func (i Item) into(out any) {
	for _, text := range []json.RawMessage{i.Meta, i.Details} {
		_ = json.Unmarshal(text, out)
	}
}

// A Path is one path of /dump: the model whose actual values it answers, and how.
type Path struct {
	Path, Model, About string
	// Shape has the type of the answer, for the description of the API.
	Shape any
	// Answer converts the values. Their number is not bounded, so results are lazy.
	Answer func(w http.ResponseWriter, items iter.Seq[Item]) error
	// Also is another model whose values have a part in the answer, or empty.
	Also string
}

// Paths returns the table of /dump.
func Paths() []Path {
	const vpp, linux = "/dump/vpp/v2/", "/dump/linux/v2/"
	const global = "vpp.nat.nat44-global"
	out := []Path{
		{vpp + "abf", "vpp.abfs.abf", "ACL-based forwarding policies of VPP", []dumps.ABFDetails{}, listOf(abfDetails), ""},
		{vpp + "acl/ip", "vpp.acls.acl", "IP ACLs of VPP", []dumps.ACLDetails{}, listOf(aclDetails, isIPACL), ""},
		{vpp + "acl/macip", "vpp.acls.acl", "MACIP ACLs of VPP", []dumps.ACLDetails{}, listOf(aclDetails, isMACIPACL), ""},
		{vpp + "interfaces", "vpp.interfaces", "interfaces of VPP, by index", map[string]dumps.InterfaceDetails{}, interfacesOf(), ""},
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
			map[string]dumps.InterfaceDetails{}, interfacesOf(kind.types...), ""})
	}
	return append(out, []Path{
		{vpp + "nat/global", global, "NAT44 of VPP", &nat.Nat44Global{}, single(message), ""},
		{vpp + "nat/dnat", "vpp.nat.dnat44", "DNAT44 of VPP", []*nat.DNat44{}, listOf(message), ""},
		{vpp + "nat/interfaces", "vpp.nat.nat44-interface", "NAT44 interfaces of VPP, also those in the value of NAT44", []*nat.Nat44Interface{}, natInterfaces, global},
		{vpp + "nat/pools", "vpp.nat.nat44-pool", "NAT44 pools of VPP, also the addresses in the value of NAT44", []*nat.Nat44AddressPool{}, natPools, global},
		{vpp + "bd", "vpp.l2.bridge-domain", "bridge domains of VPP", []dumps.BridgeDomainDetails{}, listOf(bridgeDetails), ""},
		{vpp + "fib", "vpp.l2.fib", "entries of the L2 FIB of VPP, by MAC address", map[string]dumps.FIBDetails{}, mapOf(fibDetails), ""},
		{vpp + "xc", "vpp.l2.xconnect", "cross-connects of VPP, by receiving interface", map[string]dumps.XConnectDetails{}, mapOf(xconnectDetails), ""},
		{vpp + "routes", "vpp.route", "routes of VPP", []dumps.RouteDetails{}, listOf(routeDetails), ""},
		{vpp + "arps", "vpp.arp", "neighbours of VPP", []dumps.ARPDetails{}, listOf(arpDetails), ""},
		{vpp + "proxyarp/interfaces", "vpp.proxyarp-global", "interfaces of VPP with proxy ARP", []dumps.ProxyARPInterfaceDetails{}, proxyInterfaces, ""},
		{vpp + "proxyarp/ranges", "vpp.proxyarp-global", "ranges of proxy ARP of VPP", []dumps.ProxyARPRangeDetails{}, proxyRanges, ""},
		{vpp + "ipscanneigh", "vpp.ipscanneigh-global", "scanning of neighbours by VPP", &l3.IPScanNeighbor{}, single(message), ""},
		{vpp + "vrrps", "vpp.vrrp", "virtual routers of VPP", []dumps.VRRPDetails{}, listOf(func(i Item) any { return dumps.VRRPDetails{Vrrp: i.Value, Meta: i.Meta} }), ""},
		{vpp + "ipsec/spds", "vpp.ipsec.spd", "IPsec policy databases of VPP", []*ipsec.SecurityPolicyDatabase{}, listOf(message), ""},
		{vpp + "ipsec/sps", "vpp.ipsec.sp", "IPsec policies of VPP", []*ipsec.SecurityPolicy{}, listOf(message), ""},
		{vpp + "ipsec/sas", "vpp.ipsec.sa", "IPsec security associations of VPP", []dumps.SADetails{}, listOf(saDetails), ""},
		{vpp + "punt/sockets", "vpp.tohost", "punt sockets of VPP", []dumps.PuntDetails{}, listOf(puntDetails), ""},
		{vpp + "wireguard/peers", "vpp.wg.peer", "WireGuard peers of VPP", []*wireguard.Peer{}, listOf(message), ""},
		{linux + "interfaces", "linux.interfaces.interface", "interfaces of Linux", []dumps.LinuxInterfaceDetails{}, listOf(linuxDetails), ""},
		{linux + "routes", "linux.l3.route", "routes of Linux", []dumps.LinuxRouteDetails{}, listOf(linuxRouteDetails), ""},
		{linux + "arps", "linux.l3.arp", "neighbours of Linux", []dumps.LinuxARPDetails{}, listOf(linuxARPDetails), ""},
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
			_ = json.Unmarshal(i.Meta, &meta)
			one := dumps.InterfaceDetails{Interface: v, Meta: dumps.InterfaceMeta{
				SwIfIndex: meta.SwIfIndex, SubSwIfIndex: meta.Parent, SupSwIfIndex: meta.Parent,
				InternalName: meta.InternalName, DevType: meta.DevType, TAPHost: meta.TAPHostIfName,
			}}
			_ = json.Unmarshal(i.Details, &one.Meta)
			out[meta.SwIfIndex] = one
		}
		return reply.JSON(w, out)
	}
}

// message returns the value, for models without metadata.
func message(i Item) any { return i.Value }

// aclDetails returns an access list with its number. The tag in VPP is its name, and its owner.
func aclDetails(i Item) any {
	out := dumps.ACLDetails{ACL: i.Value}
	var meta struct{ Index uint32 }
	i.into(&meta)
	out.Meta.Index = meta.Index
	i.into(&out.Meta)
	return out
}

// abfDetails returns a policy. Its number in VPP is that of the value.
func abfDetails(i Item) any {
	out := dumps.ABFDetails{ABF: i.Value}
	v, _ := i.Value.(interface{ GetIndex() uint32 })
	out.Meta.PolicyID = v.GetIndex()
	return out
}

// bridgeDetails has the number of the bridge domain under the name that clients expect.
func bridgeDetails(i Item) any {
	out := dumps.BridgeDomainDetails{BridgeDomain: i.Value}
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
	i.into(&out.Meta)
	return strconv.FormatUint(uint64(meta.Receive), 10), out
}

// routeDetails returns a path of a route of VPP.
func routeDetails(i Item) any {
	out := dumps.RouteDetails{Route: i.Value, Meta: dumps.RouteMeta{LabelStack: []dumps.FIBLabel{}}}
	i.into(&out.Meta)
	return out
}

// arpDetails returns a neighbour of VPP.
func arpDetails(i Item) any {
	out := dumps.ARPDetails{Arp: i.Value}
	i.into(&out.Meta)
	return out
}

// saDetails returns an IPsec association.
func saDetails(i Item) any {
	out := dumps.SADetails{SA: i.Value, Meta: dumps.SAMeta{IfIdx: ^uint32(0)}}
	i.into(&out.Meta)
	return out
}

// puntDetails returns a socket with its path, which the value has, too.
func puntDetails(i Item) any {
	v, _ := i.Value.(*punt.ToHost)
	return dumps.PuntDetails{PuntData: i.Value, SocketPath: v.GetSocketPath()}
}

// linuxDetails returns a Linux interface with its metadata. People leave the default of the MTU
// out of values; clients of dumps see it.
func linuxDetails(i Item) any {
	out := dumps.LinuxInterfaceDetails{Interface: i.Value}
	var meta struct {
		LinuxIfIndex            int
		HostIfName, VrfMasterIf string
		MTU                     uint32 `json:"mtu"`
	}
	i.into(&meta)
	out.Meta = dumps.LinuxInterfaceMeta{Index: meta.LinuxIfIndex, HostName: meta.HostIfName, VRF: meta.VrfMasterIf}
	i.into(&out.Meta)
	if v, ok := i.Value.(*linuxif.Interface); ok && v.GetMtu() == 0 && meta.MTU != 0 {
		v = proto.CloneOf(v) // the scheduler may have the message, too
		v.Mtu, out.Interface = meta.MTU, v
	}
	return out
}

// linuxRouteDetails returns a Linux route with what the kernel has of it.
func linuxRouteDetails(i Item) any {
	var meta struct {
		Route struct {
			Link            int
			Scope, Protocol uint8
			Table           uint32
		}
	}
	i.into(&meta)
	r := meta.Route
	return dumps.LinuxRouteDetails{Route: i.Value, Meta: dumps.LinuxRouteMeta{Interface: r.Link, Scope: r.Scope, Protocol: r.Protocol, Table: r.Table}}
}

// linuxARPDetails returns a neighbour of Linux with what the kernel has of it.
func linuxARPDetails(i Item) any {
	var meta struct {
		Neighbour struct {
			Link int
			IP   netip.Addr
		}
	}
	i.into(&meta)
	out := dumps.LinuxARPDetails{ARP: i.Value, Meta: dumps.LinuxARPMeta{Interface: meta.Neighbour.Link}}
	switch ip := meta.Neighbour.IP; {
	case ip.Is4():
		out.Meta.Family = unix.AF_INET
	case ip.Is6():
		out.Meta.Family = unix.AF_INET6
	}
	return out
}

// proxyInterfaces answers the interfaces of proxy ARP, without the ranges. The model has
// both in one value; existing clients ask for them separately.
func proxyInterfaces(w http.ResponseWriter, items iter.Seq[Item]) error {
	out := []dumps.ProxyARPInterfaceDetails{}
	for i := range items {
		v, _ := i.Value.(*l3.ProxyARP)
		var of struct{ Interfaces map[string]uint32 } // indexes by name
		i.into(&of)
		for _, one := range v.GetInterfaces() {
			out = append(out, dumps.ProxyARPInterfaceDetails{Interface: one, Meta: dumps.IndexMeta{SwIfIndex: of.Interfaces[one.GetName()]}})
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
