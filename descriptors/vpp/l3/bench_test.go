package l3

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/memclnt"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/existing"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l3"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/conformance"
)

// BenchmarkCreateRoute is the verb of a route, 64 at a time, on a VPP that does nothing.
func BenchmarkCreateRoute(b *testing.B) {
	c, err := conn.Dial(b.Context(), simulated.RouteSink(b), "benchmark")
	if err != nil {
		b.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = c.Run(context.Background()); close(ended) }()
	defer func() { c.Close(errors.New("the benchmark is over")); <-ended }()
	h := handler{Options: Options{API: c, Interfaces: existing.Interfaces{"loop": iface.Meta{Index: 7}}}, changes: &routeChanges{}}
	b.ReportAllocs()
	b.ResetTimer()
	var wg sync.WaitGroup
	for g := range 64 {
		wg.Go(func() {
			v := &l3.Route{DstNetwork: fmt.Sprintf("11.0.%d.0/24", g), NextHopAddr: "10.0.0.2", OutgoingInterface: "loop"}
			for n := g; n < b.N; n += 64 {
				if _, err := h.createRoute(b.Context(), "", v); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkVPPRetrieve100k reads back 100,000 routes that stand as declared, beside a bare
// program that decodes them; of a simulated VPP in a process of its own, or with
// VPP=binary or VPP_SOCKET of a real one.
func BenchmarkVPPRetrieve100k(b *testing.B) {
	const routes = 100_000
	socket := startVPP(b)
	h, wanted := withRoutes(b, socket, routes)
	var bare, ours time.Duration
	for b.Loop() {
		runtime.GC()
		begun := time.Now()
		if got := len(bareDump(b, socket)); got != routes {
			b.Fatalf("the bare program has %d routes", got)
		}
		bare += time.Since(begun)
		runtime.GC()
		begun = time.Now()
		got := 0
		for f, err := range conformance.Taken(h.retrieveRoutes(b.Context(), wanted)) {
			if err != nil || f.OwnerUnknown {
				b.Fatalf("%+v: %v", f, err)
			}
			got++
		}
		ours += time.Since(begun)
		if got != routes {
			b.Fatalf("%d routes were retrieved", got)
		}
	}
	b.ReportMetric(bare.Seconds()/float64(b.N), "s/bare")
	b.ReportMetric(ours.Seconds()/float64(b.N), "s/retrieve")
	b.ReportMetric(ours.Seconds()/bare.Seconds(), "of-bare")
}

func startVPP(b *testing.B) (socket string) {
	if socket = os.Getenv("VPP_SOCKET"); socket != "" {
		return socket
	}
	return testkit.StartVPPOrSim(b).Socket
}

// withRoutes makes routes by way of one loopback. They are removed at the end, as VPP may
// be somebody's.
func withRoutes(b *testing.B, socket string, n int) (handler, []scheduler.Desired[*l3.Route]) {
	b.Helper()
	c, err := conn.Dial(b.Context(), socket, "benchmark")
	if err != nil {
		b.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = c.Run(context.Background()); close(ended) }()
	var loop vppif.CreateLoopbackReply
	if err := c.Call(b.Context(), &vppif.CreateLoopback{}, &loop); err != nil {
		b.Fatal(err)
	}
	h := handler{Options: Options{API: c, Interfaces: existing.Interfaces{"loop": iface.Meta{Index: uint32(loop.SwIfIndex)}}}, changes: &routeChanges{}}
	wanted := make([]scheduler.Desired[*l3.Route], n)
	for i := range wanted {
		v := &l3.Route{DstNetwork: fmt.Sprintf("11.%d.%d.%d/32", i>>16, i>>8&255, i&255), NextHopAddr: "10.0.0.2", OutgoingInterface: "loop"}
		wanted[i] = scheduler.Desired[*l3.Route]{Key: h.routeDescriptor().Model.KeyOf(v.GetDstNetwork()), Value: v}
	}
	changeAll(b, h, wanted, true)
	b.Cleanup(func() {
		changeAll(b, h, wanted, false)
		gone := &vppif.DeleteLoopback{SwIfIndex: loop.SwIfIndex}
		if err := c.Call(context.Background(), gone, &vppif.DeleteLoopbackReply{}); err != nil {
			b.Error(err)
		}
		c.Close(errors.New("the benchmark is over"))
		<-ended
	})
	return h, wanted
}

func changeAll(b *testing.B, h handler, wanted []scheduler.Desired[*l3.Route], add bool) {
	b.Helper()
	const atOnce = 64
	var wg sync.WaitGroup
	for g := range atOnce {
		wg.Go(func() {
			for i := g; i < len(wanted); i += atOnce {
				if err := h.changeRoute(context.Background(), wanted[i].Value, h.Interfaces.All()["loop"].Index, add); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// bareDump is the least that a program does to have the routes of the first table.
func bareDump(b *testing.B, socket string) (out []ip.IPRouteV2Details) {
	b.Helper()
	check := func(err error) {
		if err != nil {
			b.Helper()
			b.Fatal(err)
		}
	}
	sock, err := net.Dial("unix", socket)
	check(err)
	defer sock.Close()
	in := bufio.NewReaderSize(sock, 64<<10)
	hello, err := vppwire.Append(nil, vppwire.CreateID, &memclnt.SockclntCreate{Name: "bare"}, 0, 1)
	check(err)
	_, err = sock.Write(hello)
	check(err)
	message, err := vppwire.Read(in, nil)
	check(err)
	var decoder vppwire.Decoder
	var welcome memclnt.SockclntCreateReply
	check(decoder.Decode(message, &welcome))
	ids := map[string]uint16{}
	for _, m := range welcome.MessageTable {
		name, _, _ := strings.Cut(m.Name, "\x00")
		ids[name] = m.Index
	}
	ask, err := vppwire.Append(nil, ids[vppwire.Name(&ip.IPRouteV2Dump{})], &ip.IPRouteV2Dump{Src: srcAPI}, welcome.Index, 1)
	check(err)
	ask, err = vppwire.Append(ask, ids[vppwire.Name(&memclnt.ControlPing{})], &memclnt.ControlPing{}, welcome.Index, 2)
	check(err)
	_, err = sock.Write(ask)
	check(err)
	for {
		message, err = vppwire.Read(in, message)
		check(err)
		if vppwire.ID(message) == ids[vppwire.Name(&memclnt.ControlPingReply{})] {
			return out
		}
		var one ip.IPRouteV2Details
		check(decoder.Decode(message, &one))
		out = append(out, one)
	}
}
