// Package punt simulates VPP's punting of packets: to sockets of programs on the host, and
// to an interface. It punts nothing.
//
// Unlike the real one it answers a request about an unknown reason; the real one does not.
package punt

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/punt"

	"github.com/keyplane/keyplane/internal/vppsim/core"
)

const (
	// Socket is the path of VPP's own socket, as its start-up configuration names it.
	Socket        = "/run/vpp/punt.sock"
	headerVersion = 1
	noPort        = ^uint16(0)
)

// reasons are those of VPP's IPsec, which is always there. The number of a reason is its
// place, from 1.
var reasons = []string{"ipsec4-spi-o-udp-0", "ipsec4-no-such-tunnel", "ipsec6-no-such-tunnel", "ipsec6-spi-o-udp-0"}

// A port is a UDP port of one IP version.
type port struct {
	af     ip_types.AddressFamily
	number uint16
}

// sockets are the registrations by port, and by number of the reason. Each has one socket: a
// second registration replaces the first.
type sockets struct {
	ports   map[port]punt.PuntSocketDetails
	reasons map[uint32]punt.PuntSocketDetails
}

// New adds the sockets, and the redirection to interfaces.
func New(vpp *core.VPP) {
	s := &sockets{map[port]punt.PuntSocketDetails{}, map[uint32]punt.PuntSocketDetails{}}
	vpp.Register(core.Plugin{
		Messages: []core.Message{core.Call(s.register), core.Call(s.deregister), core.Dump(s.dump), core.Dump(s.dumpReasons)},
		Pages:    map[string]func() string{"show punt": s.show},
	})
	newRedirects(vpp)
}

// register makes a program's socket receive packets, or gives them another socket. A refusal
// does not tell its cause: all have the error UNSPECIFIED.
func (s *sockets) register(q *punt.PuntSocketRegister, r *punt.PuntSocketRegisterReply) core.Errno {
	r.Pathname = Socket // also with an error
	if q.HeaderVersion != headerVersion || q.Pathname == Socket {
		return api.UNSPECIFIED
	}
	d := punt.PuntSocketDetails{Punt: q.Punt, Pathname: q.Pathname}
	switch q.Punt.Type {
	case punt.PUNT_API_TYPE_L4:
		l4 := q.Punt.Punt.GetL4()
		if l4.Port == noPort || l4.Protocol != ip_types.IP_API_PROTO_UDP {
			return api.UNSPECIFIED
		}
		s.ports[port{l4.Af, l4.Port}] = d
	case punt.PUNT_API_TYPE_EXCEPTION:
		id := q.Punt.Punt.GetException().ID
		if id == 0 || int(id) > len(reasons) {
			return api.UNSPECIFIED
		}
		s.reasons[id] = d
	default:
		return api.UNSPECIFIED
	}
	return core.OK
}

// deregister ends a registration. There need not be one.
func (s *sockets) deregister(q *punt.PuntSocketDeregister, _ *punt.PuntSocketDeregisterReply) core.Errno {
	switch q.Punt.Type {
	case punt.PUNT_API_TYPE_L4:
		l4 := q.Punt.Punt.GetL4()
		delete(s.ports, port{l4.Af, l4.Port})
	case punt.PUNT_API_TYPE_EXCEPTION:
		delete(s.reasons, q.Punt.Punt.GetException().ID)
	default:
		return api.UNSPECIFIED
	}
	return core.OK
}

// dump lists the registrations of one type, in a fixed order.
func (s *sockets) dump(q *punt.PuntSocketDump, yield func(punt.PuntSocketDetails)) {
	switch q.Type {
	case punt.PUNT_API_TYPE_L4:
		for _, at := range s.sorted() {
			yield(s.ports[at])
		}
	case punt.PUNT_API_TYPE_EXCEPTION:
		for _, id := range slices.Sorted(maps.Keys(s.reasons)) {
			yield(s.reasons[id])
		}
	case punt.PUNT_API_TYPE_IP_PROTO: // nothing registers any
	}
}

// sorted returns the registered ports by number, then by IP version, so that output is
// reproducible.
func (s *sockets) sorted() []port {
	return slices.SortedFunc(maps.Keys(s.ports), func(a, b port) int { return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.af, b.af)) })
}

// dumpReasons yields the reason with a name, or all of them.
func (s *sockets) dumpReasons(q *punt.PuntReasonDump, yield func(punt.PuntReasonDetails)) {
	for i, name := range reasons {
		if q.Reason.Name == "" || q.Reason.Name == name {
			yield(punt.PuntReasonDetails{Reason: punt.PuntReason{ID: uint32(i) + 1, Name: name}})
		}
	}
}

// show is a page for people. The agent does not read it.
func (s *sockets) show() string {
	var b strings.Builder
	for _, at := range s.sorted() {
		fmt.Fprintf(&b, "ip%d udp %d to %s\n", 4+2*at.af, at.number, s.ports[at].Pathname)
	}
	for _, id := range slices.Sorted(maps.Keys(s.reasons)) {
		fmt.Fprintf(&b, "%s to %s\n", reasons[id-1], s.reasons[id].Pathname)
	}
	return b.String()
}
