package conn_test

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/fib_types"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/internal/vppsim"
	"github.com/keyplane/keyplane/internal/vppwire"
)

// start starts a simulated VPP.
func start(t testing.TB, o vppsim.Options) (*vppsim.Sim, string) {
	t.Helper()
	o.Socket = filepath.Join(t.TempDir(), "api.sock")
	sim, err := vppsim.New(o)
	if err == nil {
		err = sim.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Kill)
	return sim, o.Socket
}

// dial connects, and runs the connection until the test ends.
func dial(t testing.TB, socket string) *conn.Conn {
	t.Helper()
	c, err := conn.Dial(t.Context(), socket, "test")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = c.Run(context.Background()); close(ended) }()
	t.Cleanup(func() { c.Close(errors.New("the test is over")); <-ended })
	return c
}

// TestDetailsWithAClient dumps details that have a client before the context.
func TestDetailsWithAClient(t *testing.T) {
	_, socket := start(t, vppsim.Options{Hardware: []string{"nic0", "nic1"}})
	c := dial(t, socket)
	all, err := conn.Dump[vppif.SwInterfaceRxPlacementDetails](t.Context(), c, &vppif.SwInterfaceRxPlacementDump{SwIfIndex: ^vppif.SwInterfaceRxPlacementDump{}.SwIfIndex})
	if err != nil || len(all) != 2 || all[0].SwIfIndex != 1 || all[1].SwIfIndex != 2 {
		t.Errorf("dumped is %+v, %v", all, err)
	}
}

func TestCallAndDump(t *testing.T) {
	_, socket := start(t, vppsim.Options{})
	c := dial(t, socket)
	var loop vppif.CreateLoopbackReply
	if err := c.Call(t.Context(), &vppif.CreateLoopback{}, &loop); err != nil {
		t.Fatal(err)
	}
	all, err := conn.Dump[vppif.SwInterfaceDetails](t.Context(), c, &vppif.SwInterfaceDump{SwIfIndex: ^vppif.SwInterfaceDump{}.SwIfIndex})
	if err != nil || len(all) != 2 || all[1].InterfaceName != "loop0" || all[1].SwIfIndex != loop.SwIfIndex {
		t.Errorf("after creating %+v: %+v, %v", loop, all, err)
	}
}

func TestRefusalSaysAll(t *testing.T) {
	_, socket := start(t, vppsim.Options{})
	c := dial(t, socket)
	err := c.Call(t.Context(), &vppif.DeleteLoopback{SwIfIndex: 9999}, &vppif.DeleteLoopbackReply{})
	if !errors.Is(err, api.INVALID_SW_IF_INDEX) {
		t.Fatal(err)
	}
	const want = "delete_loopback(sw_if_index=9999): VPPApiError: Invalid sw_if_index (-2)"
	if err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
}

func routeVia(n int, index uint32) *ip.IPRouteAddDel {
	q := &ip.IPRouteAddDel{IsAdd: true, Route: ip.IPRoute{Paths: []fib_types.FibPath{{SwIfIndex: index, Weight: 1}}}}
	q.Route.Prefix.Len = 32
	q.Route.Prefix.Address.Un = ip_types.AddressUnionIP4(ip_types.IP4Address{11, byte(n >> 16), byte(n >> 8), byte(n)})
	return q
}

// BenchmarkRoutes is what a simulated VPP and a connection do, 64 calls at a time.
func BenchmarkRoutes(b *testing.B) {
	_, socket := start(b, vppsim.Options{})
	c := dial(b, socket)
	var loop vppif.CreateLoopbackReply
	if err := c.Call(b.Context(), &vppif.CreateLoopback{}, &loop); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	var wg sync.WaitGroup
	for g := range 64 {
		wg.Go(func() {
			for n := g; n < b.N; n += 64 {
				if err := c.Call(b.Context(), routeVia(n, uint32(loop.SwIfIndex)), &ip.IPRouteAddDelReply{}); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "routes/s")
}

// Whoever has stopped waiting for details is not given any more of them, whatever the
// reason was.
func TestDetailsAreTakenBeforeTheirEnd(t *testing.T) {
	for name, stop := range map[string]func(c *conn.Conn, cancel func()){
		"its context ends": func(_ *conn.Conn, cancel func()) { cancel() },
		"the connection":   func(c *conn.Conn, _ func()) { c.Close(errors.New("enough")) },
	} {
		t.Run(name, func(t *testing.T) {
			_, socket := start(t, vppsim.Options{})
			c := dial(t, socket)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			taking, taken := make(chan struct{}), 0
			ended := make(chan error, 1)
			go func() {
				all := &vppif.SwInterfaceDump{SwIfIndex: ^vppif.SwInterfaceDump{}.SwIfIndex}
				ended <- c.Details(ctx, all, &vppif.SwInterfaceDetails{}, func(*vppwire.Decoder, []byte) error {
					taking <- struct{}{}
					<-taking
					taken++
					return nil
				})
			}()
			<-taking
			stop(c, cancel)
			for range 1000 { // it may end now
				runtime.Gosched()
			}
			if len(ended) > 0 {
				t.Error("it ended before what it was given was taken")
			}
			taking <- struct{}{}
			if <-ended; taken != 1 {
				t.Errorf("%d taken", taken)
			}
		})
	}
}
