package testkit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
)

// A GRPCProxy forwards gRPC to a server, like a load balancer or a sidecar. It terminates
// the HTTP/2 connections of clients, so it answers their pings itself. It forwards each
// call as a call of its own, and a test can silence open calls.
type GRPCProxy struct {
	Addr string // host:port to connect to

	far *grpc.ClientConn

	mu     sync.Mutex // guards the following
	calls  map[*call]bool
	begun  map[string]int    // calls so far, by method
	before map[string]func() // by method; see Before
}

// A call is an open call.
type call struct {
	method string
	silent bool // guarded by the mutex of the proxy
}

// StartGRPCProxy starts a proxy for target, a host:port without TLS. The test closes it.
func StartGRPCProxy(t testing.TB, target string) *GRPCProxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listening for the gRPC proxy: %v", err)
	}
	far, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(frames{}), grpc.MaxCallRecvMsgSize(1<<30)))
	if err != nil {
		t.Fatalf("gRPC proxy to %s: %v", target, err)
	}
	p := &GRPCProxy{Addr: l.Addr().String(), far: far, calls: map[*call]bool{}, begun: map[string]int{}, before: map[string]func(){}}
	server := grpc.NewServer(grpc.ForceServerCodec(frames{}), grpc.MaxRecvMsgSize(1<<30), grpc.UnknownServiceHandler(p.handle),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}))
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) })
	t.Cleanup(func() {
		server.Stop()
		far.Close()
		serving.Wait()
	})
	return p
}

// Silence permanently silences the open calls of a method, and returns their number.
// Neither side receives messages of the other any more. Later calls are not affected.
func (p *GRPCProxy) Silence(method string) (silenced int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.calls {
		if c.method == method {
			c.silent = true
			silenced++
		}
	}
	return silenced
}

// Begun returns how many calls of a method have begun so far.
func (p *GRPCProxy) Begun(method string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.begun[method]
}

// Before has do called before the next call of a method is forwarded.
func (p *GRPCProxy) Before(method string, do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.before[method] = sync.OnceFunc(do)
}

// prepare calls what Before was given for a method.
func (p *GRPCProxy) prepare(method string) {
	p.mu.Lock()
	do := p.before[method]
	p.mu.Unlock()
	if do != nil {
		do()
	}
}

// begin registers a call, so that Silence finds it, until end is called.
func (p *GRPCProxy) begin(method string) (c *call, end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c = &call{method: method}
	p.calls[c] = true
	p.begun[method]++
	return c, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.calls, c)
	}
}

// isSilent reports whether messages of the call are held back.
func (p *GRPCProxy) isSilent(c *call) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return c.silent
}

// handle forwards one call.
func (p *GRPCProxy) handle(_ any, near grpc.ServerStream) error {
	method, _ := grpc.Method(near.Context())
	c, end := p.begin(method)
	defer end()
	p.prepare(method)
	about, _ := metadata.FromIncomingContext(near.Context())
	ctx, cancel := context.WithCancel(metadata.NewOutgoingContext(near.Context(), about.Copy()))
	defer cancel()
	far, err := p.far.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err != nil {
		return err
	}
	go func() {
		for {
			var f frame
			if near.RecvMsg(&f) != nil {
				_ = far.CloseSend()
				return
			}
			if !p.isSilent(c) && far.SendMsg(&f) != nil {
				return
			}
		}
	}()
	err = p.answer(c, near, far)
	if p.isSilent(c) {
		<-near.Context().Done()
	}
	return err
}

// answer forwards the messages of the server until it ends the call.
func (p *GRPCProxy) answer(c *call, near grpc.ServerStream, far grpc.ClientStream) error {
	for {
		var f frame
		if err := far.RecvMsg(&f); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if p.isSilent(c) {
			continue
		}
		if err := near.SendMsg(&f); err != nil {
			return err
		}
	}
}

// A frame is a message in its encoded form.
type frame []byte

// frames is a codec that does not decode messages.
type frames struct{}

// frames is a codec that copies messages as they are: the proxy needs no definition of
// them.
func (frames) Name() string { return "frames" }

// Marshal returns the bytes of a frame.
func (frames) Marshal(v any) ([]byte, error) {
	f, ok := v.(*frame)
	if !ok {
		return nil, fmt.Errorf("message is a %T; only frames are carried", v)
	}
	return *f, nil
}

// Unmarshal copies the bytes, because gRPC uses its buffer again.
func (frames) Unmarshal(data []byte, v any) error {
	f, ok := v.(*frame)
	if !ok {
		return fmt.Errorf("message is a %T; only frames are carried", v)
	}
	*f = append(frame{}, data...)
	return nil
}
