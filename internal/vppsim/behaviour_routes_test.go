package vppsim_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/fib_types"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip"

	"github.com/keyplane/keyplane/internal/vppwire"
)

func tableRows() []row {
	change := func(v *vpp, add bool, id uint32, name string) {
		v.Helper()
		v.call("change", 0, &ip.IPTableAddDel{IsAdd: add, Table: ip.IPTable{TableID: id, Name: name}}, &ip.IPTableAddDelReply{})
	}
	return []row{
		{"the first name stays", func(v *vpp) {
			v.table(10, "ten")
			v.table(11, "")
			change(v, true, 10, "other")
			change(v, true, 0, "zero")
			if all := v.tables(); all[10] != "ten" || all[11] != "ipv4-VRF:11" || all[0] != "ipv4-VRF:0" {
				v.Errorf("they are %v", all)
			}
		}},
		{"to delete what is not there is no error, nor table 0", func(v *vpp) {
			change(v, false, 77, "")
			change(v, false, 0, "")
			if all := v.tables(); all[0] == "" {
				v.Errorf("they are %v", all)
			}
		}},
		{"the hash of flows", func(v *vpp) {
			v.table(20, "")
			for _, one := range []struct {
				config ip.IPFlowHashConfig
				shows  string
			}{{0x41, "[src symmetric ]"}, {0x9f, "[src dst sport dport proto flowlabel ]"}} { // VPP ip_flow_hash.h, IP_FLOW_HASH_DEFAULT
				v.call("set_ip_flow_hash_v2", 0, &ip.SetIPFlowHashV2{TableID: 20, FlowHashConfig: one.config}, &ip.SetIPFlowHashV2Reply{})
				if text := v.command("show ip fib table 20 summary"); !strings.Contains(text, "flow hash:"+one.shows) {
					v.Errorf("after %#x, VPP has\n%s", one.config, text)
				}
			}
			fresh := v.command("show ip fib table 0 summary") + v.command("show ip6 fib table 0 summary")
			if strings.Count(fresh, "flow hash:[src dst sport dport proto flowlabel ]") != 2 {
				v.Errorf("the default is\n%s", fresh)
			}
		}},
		{"a table that is used outlives its deletion", func(v *vpp) {
			v.table(20, "")
			i := v.loop()
			v.call("bind", 0, &vppif.SwInterfaceSetTable{SwIfIndex: i, VrfID: 20}, &vppif.SwInterfaceSetTableReply{})
			change(v, false, 20, "")
			if _, there := v.tables()[20]; !there {
				v.Error("it is gone while an interface is in it")
			}
			v.call("unbind", 0, &vppif.SwInterfaceSetTable{SwIfIndex: i}, &vppif.SwInterfaceSetTableReply{})
			if _, there := v.tables()[20]; there {
				v.Error("it is there after the interface left")
			}
		}},
		{"a flush disables the interfaces in the table", func(v *vpp) {
			v.table(20, "")
			inside, outside := v.loop(), v.loop()
			v.call("bind", 0, &vppif.SwInterfaceSetTable{SwIfIndex: inside, VrfID: 20}, &vppif.SwInterfaceSetTableReply{})
			v.call("flush", 0, &ip.IPTableFlush{Table: ip.IPTable{TableID: 20}}, &ip.IPTableFlushReply{})
			if v.details(inside).Flags&1 != 0 || v.details(outside).Flags&1 == 0 {
				v.Errorf("inside the flags are %d, outside %d", v.details(inside).Flags, v.details(outside).Flags)
			}
			v.call("unbind", 0, &vppif.SwInterfaceSetTable{SwIfIndex: inside}, &vppif.SwInterfaceSetTableReply{})
		}},
		{"routes outlive their table, unless they are flushed", func(v *vpp) {
			v.table(30, "")
			i := v.loop()
			v.is("add", v.route(30, true, false, "20.0.0.0/24", via(i, "")), 0)
			change(v, false, 30, "")
			v.is("into no table", v.route(30, true, false, "20.0.1.0/24", via(i, "")), api.NO_SUCH_FIB)
			change(v, true, 30, "")
			if v.paths(30, "20.0.0.0/24") == nil {
				v.Error("it is not back")
			}
			flush := &ip.IPTableFlush{Table: ip.IPTable{TableID: 30}}
			v.call("flush", 0, flush, &ip.IPTableFlushReply{})
			if v.paths(30, "20.0.0.0/24") != nil || v.paths(30, "0.0.0.0/0") == nil {
				v.Error("a flush takes what is ours, and nothing else")
			}
			v.call("flush", api.NO_SUCH_FIB, &ip.IPTableFlush{Table: ip.IPTable{TableID: 77}}, &ip.IPTableFlushReply{})
		}},
	}
}

func via(i index, next string) fib_types.FibPath {
	p := fib_types.FibPath{SwIfIndex: uint32(i), Weight: 1}
	if next != "" {
		p.Nh.Address = vppwire.Address(netip.MustParseAddr(next)).Un
	}
	return p
}

func (v *vpp) route(table uint32, add, multipath bool, dst string, paths ...fib_types.FibPath) error {
	q := &ip.IPRouteAddDel{IsAdd: add, IsMultipath: multipath, Route: ip.IPRoute{TableID: table, Prefix: vppwire.Prefix(netip.MustParsePrefix(dst)), Paths: paths}}
	return v.Call(v.Context(), q, &ip.IPRouteAddDelReply{})
}

// paths of the route that is shown with a destination, sorted; nil: there is none.
func (v *vpp) paths(table uint32, dst string) (out []string) {
	v.Helper()
	for _, d := range dump[ip.IPRouteDetails](v, &ip.IPRouteDump{Table: ip.IPTable{TableID: table}}) {
		if vppwire.PrefixOf(d.Route.Prefix).String() != dst {
			continue
		}
		for _, p := range d.Route.Paths {
			out = append(out, fmt.Sprintf("%d %s w%d p%d t%d", int32(p.SwIfIndex), vppwire.AddrIn(p.Nh.Address, false), p.Weight, p.Preference, p.Type))
		}
	}
	slices.Sort(out)
	return out
}

func (v *vpp) shows(dst string, want ...string) {
	v.Helper()
	if got := v.paths(0, dst); !slices.Equal(got, want) {
		v.Errorf("%s has %v, want %v", dst, got, want)
	}
}

// precedence adds a route of the API to each network to which VPP has one of its own.
func precedence(v *vpp) {
	i := v.loop()
	v.call("address", 0, &vppif.SwInterfaceAddDelAddress{SwIfIndex: i, IsAdd: true, Prefix: vppwire.AddressWithPrefix(netip.MustParsePrefix("10.77.0.1/24"))}, &vppif.SwInterfaceAddDelAddressReply{})
	const special, connected, byAPI, byDefault = 1, 4, 8, 20
	for _, tt := range []struct {
		network       string
		before, after uint8 // the source of the route that is in effect
	}{
		{"0.0.0.0/0", byDefault, byAPI}, {"0.0.0.0/32", byDefault, byAPI}, {"255.255.255.255/32", byDefault, byAPI}, {"::/0", byDefault, byAPI},
		{"224.0.0.0/4", special, special}, {"240.0.0.0/4", special, special}, {"fe80::/10", special, special},
		{"10.77.0.0/24", connected, connected}, {"10.77.0.1/32", connected, connected}, {"10.77.0.0/32", connected, connected}, {"10.77.0.255/32", connected, connected},
	} {
		network := netip.MustParsePrefix(tt.network)
		path := fib_types.FibPath{SwIfIndex: ^uint32(0), Weight: 1, Type: fib_types.FIB_API_PATH_TYPE_DROP}
		if network.Addr().Is6() {
			path.Proto = fib_types.FIB_API_PATH_NH_PROTO_IP6
		}
		is := func(when string, want uint8) {
			var has ip.IPRouteLookupV2Reply
			v.call("look up", 0, &ip.IPRouteLookupV2{Exact: 1, Prefix: vppwire.Prefix(network)}, &has)
			if has.Route.Src != want {
				v.Errorf("%s: %s has the source %d; expected %d", when, network, has.Route.Src, want)
			}
		}
		is("before", tt.before)
		v.is("add", v.route(0, true, true, tt.network, path), 0)
		is("added", tt.after)
		v.is("delete", v.route(0, false, true, tt.network, path), 0)
		is("deleted", tt.before)
	}
}

func routeRows() []row {
	return []row{
		{"an address makes routes while its interface is up", addressRoutes},
		{"one path, replaced", func(v *vpp) {
			i := v.loop()
			a, b := via(i, "10.0.0.2"), via(i, "10.0.0.3")
			for _, p := range []fib_types.FibPath{a, a, b} {
				v.is("add", v.route(0, true, false, "100.0.0.0/24", p), 0)
			}
			v.shows("100.0.0.0/24", fmt.Sprintf("%d 10.0.0.3 w1 p0 t0", i))
			v.is("delete by another path", v.route(0, false, false, "100.0.0.0/24", a), 0)
			v.shows("100.0.0.0/24")
			v.is("delete what is not there", v.route(0, false, false, "100.0.0.0/24", a), 0)
		}},
		{"many paths", manyPaths},
		{"a route takes precedence over default routes, and not over others of VPP's own", precedence},
		{"a path by an interface to one host has that host as its next hop", func(v *vpp) {
			i := v.loop()
			itself := via(i, "100.0.1.9")
			v.is("add", v.route(0, true, true, "100.0.1.9/32", via(i, "")), 0)
			v.is("add with the next hop", v.route(0, true, true, "100.0.1.9/32", itself), 0)
			v.shows("100.0.1.9/32", fmt.Sprintf("%d 100.0.1.9 w1 p0 t0", i))
			v.is("delete", v.route(0, false, true, "100.0.1.9/32", via(i, "")), 0)
			v.shows("100.0.1.9/32")
		}},
		{"what a path needs", func(v *vpp) {
			i := v.loop()
			v.is("no paths", v.route(0, true, false, "101.0.0.0/24"), -52)
			v.is("unknown interface", v.route(0, true, false, "101.0.0.0/24", via(unknown, "")), api.NO_MATCHING_INTERFACE)
			v.is("unknown interface, deleted", v.route(0, false, false, "101.0.0.0/24", via(unknown, "")), api.NO_MATCHING_INTERFACE)
			v.is("into no table", v.route(555, true, false, "101.0.0.0/24", via(i, "")), api.NO_SUCH_FIB)
			p := via(none, "")
			p.TableID = 555
			v.is("by no table", v.route(0, true, false, "101.0.0.0/24", p), api.NO_SUCH_FIB)
			v.is("next hop alone", v.route(0, true, false, "101.0.0.0/24", via(none, "77.0.0.1")), 0)
			v.shows("101.0.0.0/24", "-1 77.0.0.1 w1 p0 t0")
			v.is("delete", v.route(0, false, false, "101.0.0.0/24"), 0)
		}},
		{"bits of the host are shown as they were first written", func(v *vpp) {
			i := v.loop()
			v.is("add", v.route(0, true, false, "122.0.0.77/24", via(i, "")), 0)
			v.shows("122.0.0.77/24", fmt.Sprintf("%d 0.0.0.0 w1 p0 t0", i))
			v.is("delete", v.route(0, false, false, "122.0.0.0/24", via(i, "")), 0)
			v.shows("122.0.0.77/24")
		}},
		{"the default route is replaced, and comes back", func(v *vpp) {
			i := v.loop()
			v.is("add", v.route(0, true, false, "0.0.0.0/0", via(i, "")), 0)
			v.shows("0.0.0.0/0", fmt.Sprintf("%d 0.0.0.0 w1 p0 t0", i))
			for range 2 {
				v.is("delete", v.route(0, false, false, "0.0.0.0/0", via(i, "")), 0)
			}
			v.shows("0.0.0.0/0", "-1 0.0.0.0 w1 p0 t2")
		}},
		{"a lookup finds the prefix or, unless it is to be exact, the longest", func(v *vpp) {
			i := v.loop()
			v.is("add", v.route(0, true, false, "131.0.0.0/24", via(i, "")), 0)
			look := func(what string, want api.VPPApiError, table uint32, exact uint8, prefix, found string) {
				v.Helper()
				var r ip.IPRouteLookupV2Reply
				v.call(what, want, &ip.IPRouteLookupV2{TableID: table, Exact: exact, Prefix: vppwire.Prefix(netip.MustParsePrefix(prefix))}, &r)
				if want == 0 && vppwire.PrefixOf(r.Route.Prefix).String() != found {
					v.Errorf("%s: found %s, want %s", what, vppwire.PrefixOf(r.Route.Prefix), found)
				}
			}
			look("the very", 0, 0, 1, "131.0.0.0/24", "131.0.0.0/24")
			look("one in it, exactly", api.NO_SUCH_ENTRY, 0, 1, "131.0.0.7/32", "")
			look("one in it", 0, 0, 0, "131.0.0.7/32", "131.0.0.0/24")
			look("no table", api.NO_SUCH_FIB, 555, 1, "131.0.0.0/24", "")
		}},
		{"routes outlive their interface", func(v *vpp) {
			i := v.loop()
			v.is("add", v.route(0, true, false, "130.0.0.0/24", via(i, "")), 0)
			v.flags(i, 0, 0)
			dead := fmt.Sprintf("%d 0.0.0.0 w1 p0 t0", i)
			v.shows("130.0.0.0/24", dead)
			v.is("delete the interface", v.delete(i), 0)
			v.shows("130.0.0.0/24", dead)
			v.is("delete by its path", v.route(0, false, false, "130.0.0.0/24", via(i, "")), api.NO_MATCHING_INTERFACE)
			v.is("delete without", v.route(0, false, false, "130.0.0.0/24"), 0)
			v.shows("130.0.0.0/24")
		}},
	}
}

func addressRoutes(v *vpp) {
	i := v.loop()
	v.is("add", v.address(i, true, "10.9.0.1/24"), 0)
	up := map[string]string{
		"10.9.0.1/24": fmt.Sprintf("%d 0.0.0.0 w1 p0 t0", i), "10.9.0.1/32": fmt.Sprintf("%d 10.9.0.1 w1 p0 t1", i),
		"10.9.0.0/32": "t2", "10.9.0.255/32": "t2",
	}
	for dst, want := range up {
		if got := v.paths(0, dst); len(got) != 1 || !strings.HasSuffix(got[0], want) {
			v.Errorf("%s has %v, want %s", dst, got, want)
		}
	}
	v.flags(i, 0, 0)
	for dst := range up {
		v.shows(dst)
	}
	if len(v.addresses(i, false)) != 1 {
		v.Error("the address went too")
	}
}

func manyPaths(v *vpp) {
	i := v.loop()
	a, b := via(i, "10.0.0.2"), via(i, "10.0.0.3")
	text := func(next string, weight, preference int) string {
		return fmt.Sprintf("%d %s w%d p%d t0", i, next, weight, preference)
	}
	const dst = "110.0.0.0/24"
	for range 2 {
		v.is("the same twice", v.route(0, true, true, dst, a), 0)
	}
	heavy := a
	heavy.Weight = 5
	v.is("another weight", v.route(0, true, true, dst, heavy), 0)
	v.shows(dst, text("10.0.0.2", 1, 0))
	light := b
	light.Weight, light.Preference = 0, 7
	v.is("weight 0", v.route(0, true, true, dst, light), 0)
	v.shows(dst, text("10.0.0.2", 1, 0), text("10.0.0.3", 1, 7))
	v.is("delete one that is not there", v.route(0, false, true, dst, via(i, "10.0.0.9")), 0)
	v.shows(dst, text("10.0.0.2", 1, 0), text("10.0.0.3", 1, 7))
	v.is("delete one", v.route(0, false, true, dst, a), 0)
	v.is("delete the last", v.route(0, false, true, dst, light), 0)
	v.shows(dst)
	b.Weight = 2
	v.is("two at once", v.route(0, true, false, dst, a, b), 0)
	v.shows(dst, text("10.0.0.2", 1, 0), text("10.0.0.3", 2, 0))
	v.is("delete", v.route(0, false, false, dst), 0)
}
