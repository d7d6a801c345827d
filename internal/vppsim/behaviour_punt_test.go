package vppsim_test

import (
	"context"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/punt"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/vppwire"
)

// puntRows are about packets for the host. A registration for a reason that does not exist is not among them: VPP does
// not answer it.
func puntRows() []row {
	return []row{{"sockets for UDP ports", portSockets}, {"sockets for exceptions", exceptionSockets}, {"redirected packets", redirectRow}}
}

func udp(af ip_types.AddressFamily, port uint16) punt.Punt {
	return punt.Punt{Type: punt.PUNT_API_TYPE_L4, Punt: punt.PuntUnionL4(punt.PuntL4{Af: af, Protocol: ip_types.IP_API_PROTO_UDP, Port: port})}
}

// socket registers a socket, and returns the path of VPP's own one.
func (v *vpp) socketFor(of punt.Punt, path string, version uint32, want api.VPPApiError) string {
	v.Helper()
	var r punt.PuntSocketRegisterReply
	v.call("punt_socket_register", want, &punt.PuntSocketRegister{HeaderVersion: version, Punt: of, Pathname: path}, &r)
	if want == 0 {
		v.Cleanup(func() {
			q := &punt.PuntSocketDeregister{Punt: of}
			_ = v.Call(context.WithoutCancel(v.Context()), q, &punt.PuntSocketDeregisterReply{}) // what a failed row leaves
		})
	}
	return r.Pathname
}

func (v *vpp) noSocketFor(of punt.Punt) {
	v.Helper()
	v.call("punt_socket_deregister", 0, &punt.PuntSocketDeregister{Punt: of}, &punt.PuntSocketDeregisterReply{})
}

// sockets checks the registrations of one type, in any order.
func (v *vpp) sockets(of punt.PuntType, want ...punt.PuntSocketDetails) {
	v.Helper()
	got := dump[punt.PuntSocketDetails](v, &punt.PuntSocketDump{Type: of})
	for _, w := range want {
		if !slices.Contains(got, w) {
			v.Errorf("the sockets are %+v; expected %+v among them", got, w)
		}
	}
	if len(got) != len(want) {
		v.Errorf("there are %d sockets; expected %d", len(got), len(want))
	}
}

func portSockets(v *vpp) {
	own := v.socketFor(udp(0, 9000), "/tmp/a", 0, api.UNSPECIFIED) // not the version of the header, but the answer has the path
	testkit.Need(v, "a VPP with punt { socket PATH } in its start-up configuration", own != "")
	four, six := udp(ip_types.ADDRESS_IP4, 9000), udp(ip_types.ADDRESS_IP6, 9000)
	if path := v.socketFor(four, "/tmp/a", 1, 0); path != own {
		v.Errorf("VPP's path is %q; expected %q", path, own)
	}
	v.socketFor(six, "/tmp/a", 1, 0)
	v.socketFor(four, "/tmp/b", 1, 0) // takes the place of the first
	v.sockets(punt.PUNT_API_TYPE_L4, punt.PuntSocketDetails{Punt: four, Pathname: "/tmp/b"}, punt.PuntSocketDetails{Punt: six, Pathname: "/tmp/a"})
	v.socketFor(udp(0, 9001), own, 1, api.UNSPECIFIED)
	v.socketFor(udp(0, 65535), "/tmp/a", 1, api.UNSPECIFIED)
	tcp := four
	tcp.Punt.SetL4(punt.PuntL4{Protocol: ip_types.IP_API_PROTO_TCP, Port: 9000})
	v.socketFor(tcp, "/tmp/a", 1, api.UNSPECIFIED)
	v.noSocketFor(four)
	v.sockets(punt.PUNT_API_TYPE_L4, punt.PuntSocketDetails{Punt: six, Pathname: "/tmp/a"})
	v.noSocketFor(four)
	v.noSocketFor(six)
	v.sockets(punt.PUNT_API_TYPE_L4)
}

func exceptionSockets(v *vpp) {
	own := v.socketFor(udp(0, 9000), "/tmp/a", 0, api.UNSPECIFIED)
	testkit.Need(v, "a VPP with punt { socket PATH } in its start-up configuration", own != "")
	reason := func(name string) punt.Punt {
		v.Helper()
		all := dump[punt.PuntReasonDetails](v, &punt.PuntReasonDump{Reason: punt.PuntReason{Name: name}})
		if len(all) != 1 || all[0].Reason.Name != name || all[0].Reason.ID == 0 {
			v.Fatalf("the reasons %q are %+v; expected one", name, all)
		}
		return punt.Punt{Type: punt.PUNT_API_TYPE_EXCEPTION, Punt: punt.PuntUnionException(punt.PuntException{ID: all[0].Reason.ID})}
	}
	four, six := reason("ipsec4-no-such-tunnel"), reason("ipsec6-no-such-tunnel")
	if all := dump[punt.PuntReasonDetails](v, &punt.PuntReasonDump{Reason: punt.PuntReason{Name: "nothing"}}); len(all) > 0 {
		v.Errorf("there are %+v", all)
	}
	all := dump[punt.PuntReasonDetails](v, &punt.PuntReasonDump{})
	if !slices.ContainsFunc(all, func(d punt.PuntReasonDetails) bool { return d.Reason.Name == "ipsec4-no-such-tunnel" }) {
		v.Errorf("all reasons are %+v", all)
	}
	v.socketFor(four, "/tmp/a", 1, 0)
	v.socketFor(six, "/tmp/a", 1, 0)
	v.socketFor(four, "/tmp/b", 1, 0)
	v.sockets(punt.PUNT_API_TYPE_EXCEPTION, punt.PuntSocketDetails{Punt: four, Pathname: "/tmp/b"}, punt.PuntSocketDetails{Punt: six, Pathname: "/tmp/a"})
	v.sockets(punt.PUNT_API_TYPE_L4)
	v.noSocketFor(four)
	v.noSocketFor(four)
	v.noSocketFor(six)
	v.sockets(punt.PUNT_API_TYPE_EXCEPTION)
}

// redirectRow redirects packets of any interface and of one. A redirection stays when an interface is deleted.
func redirectRow(v *vpp) {
	i, j := v.loop(), v.loop()
	request := func(add, ipv6 bool, rx, tx index, next string) *ip.AddDelIPPuntRedirectV2 {
		q := &ip.AddDelIPPuntRedirectV2{IsAdd: add, Punt: ip.PuntRedirectV2{RxSwIfIndex: rx}}
		path := fib_types.FibPath{SwIfIndex: uint32(tx), Weight: 1}
		if path.Nh.Address = addr(next).Un; ipv6 {
			q.Punt.Af, path.Proto = ip_types.ADDRESS_IP6, fib_types.FIB_API_PATH_NH_PROTO_IP6
		}
		q.Punt.Paths = []fib_types.FibPath{path}
		return q
	}
	set := func(add, ipv6 bool, rx, tx index, next string, want api.VPPApiError) {
		v.Helper()
		v.call("add_del_ip_punt_redirect_v2", want, request(add, ipv6, rx, tx, next), &ip.AddDelIPPuntRedirectV2Reply{})
	}
	has := func(ipv6 bool, of index, want map[index]string) {
		v.Helper()
		af := ip_types.ADDRESS_IP4
		if ipv6 {
			af = ip_types.ADDRESS_IP6
		}
		got := dump[ip.IPPuntRedirectV2Details](v, &ip.IPPuntRedirectV2Dump{SwIfIndex: of, Af: af})
		for _, d := range got {
			if len(d.Punt.Paths) != 1 || d.Punt.Af != af {
				v.Errorf("there is %+v", d)
				continue
			}
			p := d.Punt.Paths[0]
			if text := vppwire.AddrIn(p.Nh.Address, ipv6).String(); text != want[d.Punt.RxSwIfIndex] || p.SwIfIndex != uint32(j) {
				v.Errorf("from %d it is %s by %d; expected %s by %d", d.Punt.RxSwIfIndex, text, p.SwIfIndex, want[d.Punt.RxSwIfIndex], j)
			}
		}
		if len(got) != len(want) {
			v.Errorf("there are %d redirections; expected %v", len(got), want)
		}
	}
	v.Cleanup(func() { // what a failed row leaves; VPP counts requests to end what is not there
		ctx := context.WithoutCancel(v.Context())
		for _, af := range []ip_types.AddressFamily{ip_types.ADDRESS_IP4, ip_types.ADDRESS_IP6} {
			left, _ := conn.Dump[ip.IPPuntRedirectV2Details](ctx, v.Conn, &ip.IPPuntRedirectV2Dump{SwIfIndex: none, Af: af}) // VPP may be gone
			for _, d := range left {
				q := request(false, af == ip_types.ADDRESS_IP6, d.Punt.RxSwIfIndex, none, "0.0.0.0")
				_ = v.Call(ctx, q, &ip.AddDelIPPuntRedirectV2Reply{}) // the same
			}
		}
	})
	has(false, none, nil)
	set(true, false, none, j, "10.7.0.9", 0)
	set(true, false, i, j, "0.0.0.0", 0)
	set(true, true, i, j, "fd07::9", 0)
	set(true, false, i, unknown, "10.7.0.9", api.NO_MATCHING_INTERFACE)
	has(false, none, map[index]string{none: "10.7.0.9", i: "0.0.0.0"})
	has(true, none, map[index]string{i: "fd07::9"})
	has(false, i, map[index]string{i: "0.0.0.0"})
	has(true, j, nil)
	if err := v.delete(i); err != nil {
		v.Error(err)
	}
	has(true, none, map[index]string{i: "fd07::9"})
	set(false, true, i, j, "fd07::9", 0)
	set(false, false, i, none, "0.0.0.0", 0) // the path does not matter
	has(true, none, nil)
	has(false, none, map[index]string{none: "10.7.0.9"})
	if err := v.delete(j); err != nil {
		v.Error(err)
	}
	has(false, none, map[index]string{none: "10.7.0.9"})
	set(false, false, none, none, "0.0.0.0", 0)
	has(false, none, nil)
}
