package agent

import (
	"bufio"
	"fmt"
	"iter"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/fib_types"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/memclnt"

	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l3"
)

// A bareVPP is the least that a program needs to have VPP do many things quickly: it
// writes one request after the other, and reads the replies meanwhile.
type bareVPP struct {
	b       *testing.B
	sock    net.Conn
	in      *bufio.Reader
	client  uint32
	ids     map[string]uint16
	decoder vppwire.Decoder
}

func dialBare(b *testing.B, socket string) *bareVPP {
	b.Helper()
	sock, err := net.Dial("unix", socket)
	if err != nil {
		b.Fatal(err)
	}
	v := &bareVPP{b: b, sock: sock, in: bufio.NewReaderSize(sock, 64<<10), ids: map[string]uint16{}}
	hello, err := vppwire.Append(nil, vppwire.CreateID, &memclnt.SockclntCreate{Name: "bare"}, 0, 1)
	v.check(err)
	_, err = sock.Write(hello)
	v.check(err)
	message, err := vppwire.Read(v.in, nil)
	v.check(err)
	var welcome memclnt.SockclntCreateReply
	v.check(v.decoder.Decode(message, &welcome))
	v.client = welcome.Index
	for _, m := range welcome.MessageTable {
		name, _, _ := strings.Cut(m.Name, "\x00")
		v.ids[name] = m.Index
	}
	return v
}

func (v *bareVPP) check(err error) {
	if err != nil {
		v.b.Helper()
		v.b.Fatal(err)
	}
}

// write writes requests, in pieces.
func (v *bareVPP) write(requests iter.Seq[api.Message]) (err error) {
	const piece = 32 << 10
	var out []byte
	for m := range requests {
		if out, err = vppwire.Append(out, v.ids[vppwire.Name(m)], m, v.client, 1); err != nil {
			return err
		}
		if len(out) < piece {
			continue
		}
		if _, err = v.sock.Write(out); err != nil {
			return err
		}
		out = out[:0]
	}
	_, err = v.sock.Write(out)
	return err
}

// pipeline has VPP do n requests, and takes the replies as they come.
func (v *bareVPP) pipeline(n int, requests iter.Seq[api.Message], take func(message []byte)) {
	v.b.Helper()
	written := make(chan error, 1)
	go func() { written <- v.write(requests) }()
	var buf []byte
	for range n {
		message, err := vppwire.Read(v.in, buf)
		v.check(err)
		take(message)
		buf = message
	}
	v.check(<-written)
}

// succeeds takes replies that hold a return value.
func (v *bareVPP) succeeds(into api.Message, retval *int32) func([]byte) {
	return func(message []byte) {
		v.check(v.decoder.Decode(message, into))
		if *retval != 0 {
			v.b.Fatalf("%s: %v", into.GetMessageName(), api.VPPApiError(*retval))
		}
	}
}

// install is what a program does that has been told of nothing but what there is to do.
func (v *bareVPP) install(loops []*interfaces.Interface, routes []*l3.Route) {
	v.b.Helper()
	indexes := v.create(loops)
	var same vppif.SwInterfaceSetFlagsReply // all three replies have the one field
	v.pipeline(3*len(loops), func(yield func(api.Message) bool) {
		for _, loop := range loops {
			for _, m := range furnishing(loop, indexes[loop.GetName()]) {
				if !yield(m) {
					return
				}
			}
		}
	}, v.succeeds(&same, &same.Retval))
	v.change(true, routes, indexes)
}

func (v *bareVPP) create(loops []*interfaces.Interface) map[string]uint32 {
	indexes := make(map[string]uint32, len(loops))
	var reply vppif.CreateLoopbackReply
	succeeds := v.succeeds(&reply, &reply.Retval)
	v.pipeline(len(loops), func(yield func(api.Message) bool) {
		for range loops {
			if !yield(&vppif.CreateLoopback{}) {
				return
			}
		}
	}, func(message []byte) {
		succeeds(message)
		indexes[loops[len(indexes)].GetName()] = uint32(reply.SwIfIndex)
	})
	return indexes
}

// furnishing is a name, an address, and being up.
func furnishing(loop *interfaces.Interface, index uint32) []api.Message {
	at := interface_types.InterfaceIndex(index)
	address := netip.MustParsePrefix(loop.GetIpAddresses()[0])
	return []api.Message{
		&vppif.SwInterfaceTagAddDel{IsAdd: true, SwIfIndex: at, Tag: loop.GetName()},
		&vppif.SwInterfaceAddDelAddress{IsAdd: true, SwIfIndex: at, Prefix: vppwire.AddressWithPrefix(address)},
		&vppif.SwInterfaceSetFlags{SwIfIndex: at, Flags: interface_types.IF_STATUS_API_FLAG_ADMIN_UP},
	}
}

// change adds routes, or takes them away.
func (v *bareVPP) change(add bool, routes []*l3.Route, indexes map[string]uint32) {
	v.b.Helper()
	var reply ip.IPRouteAddDelReply
	v.pipeline(len(routes), func(yield func(api.Message) bool) {
		for _, r := range routes {
			if !yield(bareRoute(add, r, indexes[r.GetOutgoingInterface()])) {
				return
			}
		}
	}, v.succeeds(&reply, &reply.Retval))
}

func bareRoute(add bool, r *l3.Route, index uint32) *ip.IPRouteAddDel {
	path := fib_types.FibPath{SwIfIndex: index, Weight: 1}
	path.Nh.Address = vppwire.Address(netip.MustParseAddr(r.GetNextHopAddr())).Un
	return &ip.IPRouteAddDel{IsAdd: add, IsMultipath: true, Route: ip.IPRoute{
		Prefix: vppwire.Prefix(netip.MustParsePrefix(r.GetDstNetwork())), Paths: []fib_types.FibPath{path},
	}}
}

// dump collects the routes of the API in the first table.
func (v *bareVPP) dump() (out []ip.IPRouteV2Details) {
	v.b.Helper()
	last := v.ids[vppwire.Name(&memclnt.ControlPingReply{})]
	const ofAPI = 8
	v.check(v.write(slices.Values([]api.Message{&ip.IPRouteV2Dump{Src: ofAPI}, &memclnt.ControlPing{}})))
	for buf := []byte(nil); ; {
		message, err := vppwire.Read(v.in, buf)
		v.check(err)
		if vppwire.ID(message) == last {
			return out
		}
		var one ip.IPRouteV2Details
		v.check(v.decoder.Decode(message, &one))
		out = append(out, one)
		buf = message
	}
}

// clear takes away what install has made, and what an agent has of the same.
func (v *bareVPP) clear(routes []*l3.Route) {
	v.b.Helper()
	indexes := v.loopbacks()
	v.change(false, routes, indexes)
	var reply vppif.DeleteLoopbackReply
	v.pipeline(len(indexes), func(yield func(api.Message) bool) {
		for _, index := range indexes {
			if !yield(&vppif.DeleteLoopback{SwIfIndex: interface_types.InterfaceIndex(index)}) {
				return
			}
		}
	}, v.succeeds(&reply, &reply.Retval))
}

// loopbacks are those that have a name of ours.
func (v *bareVPP) loopbacks() map[string]uint32 {
	indexes := map[string]uint32{}
	last := v.ids[vppwire.Name(&memclnt.ControlPingReply{})]
	v.check(v.write(slices.Values([]api.Message{&vppif.SwInterfaceDump{SwIfIndex: ^interface_types.InterfaceIndex(0)}, &memclnt.ControlPing{}})))
	for {
		message, err := vppwire.Read(v.in, nil)
		v.check(err)
		if vppwire.ID(message) == last {
			return indexes
		}
		var one vppif.SwInterfaceDetails
		v.check(v.decoder.Decode(message, &one))
		if strings.HasPrefix(one.Tag, benchLoop) {
			indexes[one.Tag] = uint32(one.SwIfIndex)
		}
	}
}

const benchLoop = "bench-loop"

// benchLoops are loopbacks with an address each.
func benchLoops(n int) (out []*interfaces.Interface) {
	for i := range n {
		out = append(out, &interfaces.Interface{
			Name: fmt.Sprintf("%s%d", benchLoop, i), Type: interfaces.Interface_SOFTWARE_LOOPBACK, Enabled: true,
			IpAddresses: []string{fmt.Sprintf("10.%d.%d.1/24", i>>8, i&255)},
		})
	}
	return out
}

// benchRoute is the i-th route, by way of one of some loopbacks.
func benchRoute(i, loops int) *l3.Route {
	via := i % loops
	return &l3.Route{
		DstNetwork:        fmt.Sprintf("11.%d.%d.%d/32", i>>16, i>>8&255, i&255),
		NextHopAddr:       fmt.Sprintf("10.%d.%d.2", via>>8, via&255),
		OutgoingInterface: fmt.Sprintf("%s%d", benchLoop, via),
	}
}
