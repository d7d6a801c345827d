package grpc

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	rpc "google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	reflectionv1alpha "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/keyplane/keyplane/internal/budget"
	"github.com/keyplane/keyplane/internal/reach"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/configurator"
	"github.com/keyplane/keyplane/proto/ligato/generic"
)

// Bounds of all clients of the address together. docs/grpc.md has those that a client may meet.
const (
	// maxCalls is the number of calls in progress, or max-concurrent-streams if that is more.
	maxCalls = 128
	// maxLasting is the number of calls in progress of one method that is a stream, or that waits for the
	// system: they may last for ever.
	maxLasting = 16
	// maxLarge is the number of requests above firstBytes that are received at once.
	maxLarge = 2
	// maxReading is the number of calls at once that read many values.
	maxReading = 2
	// turnWait is how long a call waits for its turn to do that.
	turnWait = 30 * time.Second
	// maxUnread is for how long a client may read nothing of an answer, and maxUnreadOfStream nothing of
	// a stream.
	maxUnread         = 10 * time.Second
	maxUnreadOfStream = time.Minute
	// maxAnswer is how long a client may take to read one message.
	maxAnswer = 2 * time.Minute

	firstBytes = 16 << 10 // of a request, which are received without a turn
	// maxQuery is the size of a request without values, in bytes: about 10,000 ids.
	maxQuery = 1 << 20
	// needPerRequest bounds the memory of a decoded request by the largest size of one. Short values take
	// about twelve times their size.
	needPerRequest = 16
	// maxLastingNeed is the most memory, in bytes, that the request of a lasting call may take: about 1,500 ids.
	maxLastingNeed = 1 << 20
)

// A gate has the bounds of all calls over the address. It receives the request of a call, counts its memory
// before the server of gRPC decodes it, and keeps that memory until the answer is written. Many clients could
// otherwise send the largest requests at once, and read no answers.
//
// No deadlock: a call takes a slot for large requests first, then one for reading, then memory, and
// waits for none of the earlier ones afterwards.
type gate struct {
	server  *rpc.Server
	known   *models.Registry
	memory  *budget.Budget
	largest int // request, in bytes
	methods map[string]method
	// refusal is the answer to calls that change something; empty: they are served.
	refusal string
	// They hold a token for each call in progress, each large request that is received, and each call that
	// reads many values.
	calls, large, reading chan struct{}
}

// A method is what the gate must know of a method.
type method struct {
	request protoreflect.MessageDescriptor // nil: the client sends several
	largest int                            // request, in bytes
	stream  bool                           // of answers
	reads   bool                           // many values
	writes  bool                           // values
	lasting chan struct{}                  // holds a token for each call; nil: the call ends soon
}

// newGate returns a gate for all methods of a server.
func newGate(server *rpc.Server, s *service, c Config) *gate {
	calls := max(maxCalls, int(c.MaxConcurrentStreams))
	g := &gate{
		server: server, known: s.models(), memory: s.Memory, largest: c.MaxMsgSize, methods: map[string]method{},
		calls: make(chan struct{}, calls), large: make(chan struct{}, maxLarge), reading: make(chan struct{}, maxReading),
	}
	reads := map[string]bool{
		configurator.ConfiguratorService_Get_FullMethodName: true, generic.ManagerService_GetConfig_FullMethodName: true,
		generic.ManagerService_DumpState_FullMethodName: true, generic.MetaService_ProtoFileDescriptor_FullMethodName: true,
	}
	if c.readOnly() {
		g.refusal = fmt.Sprintf("needs a client certificate over TCP, and grpc.conf has no cert-file, key-file and ca-files; root and the group %s need none on the agent's socket (agentctl, or the target unix:%s)",
			reach.Group, cmp.Or(s.Socket, "PATH"))
	}
	for name, info := range server.GetServiceInfo() {
		for _, one := range info.Methods {
			path := "/" + name + "/" + one.Name
			m := method{stream: one.IsServerStream, reads: reads[path], writes: changes(name, one.Name), largest: c.MaxMsgSize}
			if !m.writes {
				m.largest = min(m.largest, maxQuery)
			}
			if one.IsServerStream || path == configurator.ConfiguratorService_Dump_FullMethodName {
				m.lasting = make(chan struct{}, maxLasting)
			}
			if !one.IsClientStream {
				m.request = requestOf(name, one.Name)
			}
			g.methods[path] = m
		}
	}
	return g
}

// methodOf returns a method of a service, or nil if this program lacks its .proto file.
func methodOf(service, name string) protoreflect.MethodDescriptor {
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service))
	if err != nil {
		return nil
	}
	of, ok := d.(protoreflect.ServiceDescriptor)
	if !ok {
		return nil
	}
	return of.Methods().ByName(protoreflect.Name(name))
}

// requestOf returns the message of the request of a method, or nil.
func requestOf(service, name string) protoreflect.MessageDescriptor {
	if m := methodOf(service, name); m != nil {
		return m.Input()
	}
	return nil
}

// changes reports whether a call of a method may change something.
func changes(service, name string) bool {
	switch service {
	case generic.ManagerService_ServiceDesc.ServiceName, configurator.ConfiguratorService_ServiceDesc.ServiceName:
		return name == "SetConfig" || name == "Update" || name == "Delete"
	case generic.MetaService_ServiceDesc.ServiceName, configurator.StatsPollerService_ServiceDesc.ServiceName,
		healthpb.Health_ServiceDesc.ServiceName, reflectionv1.ServerReflection_ServiceDesc.ServiceName, reflectionv1alpha.ServerReflection_ServiceDesc.ServiceName:
		return false
	}
	return !harmless(service, name)
}

// harmless reports whether the .proto file says that a method changes nothing.
func harmless(service, name string) bool {
	m := methodOf(service, name)
	if m == nil {
		return false
	}
	options, ok := m.Options().(*descriptorpb.MethodOptions)
	return ok && options.GetIdempotencyLevel() == descriptorpb.MethodOptions_NO_SIDE_EFFECTS
}

// ServeHTTP implements http.Handler.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := newCall(r, g.memory)
	defer c.end()
	m := g.methods[r.URL.Path]
	body, err := g.admit(c, r, m)
	if err != nil {
		refuse(w, status.Convert(err))
		return
	}
	r = r.Clone(r.Context())
	r.Body = body
	answer := &answering{ResponseWriter: w, patience: maxUnread, stream: m.stream}
	if m.stream {
		answer.patience = maxUnreadOfStream
	}
	c.serve(g.server, answer, r)
}

// admit takes what a call needs, and returns its request. The error has the status of the answer.
func (g *gate) admit(c *call, r *http.Request, m method) (io.ReadCloser, error) {
	if m.writes && g.refusal != "" {
		return nil, status.Errorf(codes.PermissionDenied, "%s %s", r.URL.Path, g.refusal)
	}
	if !c.take(g.calls) {
		return nil, status.Errorf(codes.ResourceExhausted, "%d calls are in progress, which is the maximum; try again later", cap(g.calls))
	}
	if m.lasting != nil && !c.take(m.lasting) {
		return nil, status.Errorf(codes.ResourceExhausted, "%d calls of %s are in progress, which is the maximum; try again later", maxLasting, r.URL.Path)
	}
	if m.request == nil { // also an unknown method, which the server refuses
		return http.MaxBytesReader(nil, r.Body, firstBytes), nil
	}
	text, received, err := g.receive(r, m)
	defer received()
	if err != nil {
		return nil, err
	}
	need, err := g.need(r.URL.Path, m, text)
	if err != nil {
		return nil, err
	}
	if m.reads {
		leave, err := turn(r.Context(), g.reading)
		if err != nil {
			return nil, err
		}
		c.ends = append(c.ends, leave)
	}
	if m.lasting == nil { // the number of others, and their need, bound their memory
		if err := c.hold(r.Context(), need); err != nil {
			return nil, status.FromContextError(err).Err()
		}
	}
	return &request{text}, nil
}

// receive reads a request. A large one waits for its turn, which lasts until received is called. Of one that
// is too large, only the beginning is read: the server of gRPC refuses it.
func (g *gate) receive(r *http.Request, m method) (text []byte, received func(), err error) {
	received = func() {}
	text, err = readMore(r.Body, nil, firstBytes)
	if size := messageSize(text); err == nil && len(text) == firstBytes && size <= g.largest {
		if size > m.largest {
			return nil, received, status.Errorf(codes.ResourceExhausted, "the request has %d bytes; the maximum of %s is %d", size, r.URL.Path, m.largest)
		}
		if received, err = turn(r.Context(), g.large); err != nil {
			return nil, func() {}, err
		}
		// At once: a buffer that grows takes half as much beside it.
		text = append(make([]byte, 0, headerSize+size), text...)
		text, err = readMore(r.Body, text, headerSize+size)
	}
	if err != nil {
		return nil, received, status.Errorf(codes.Canceled, "the request did not arrive: %v", err)
	}
	return text, received, nil
}

// readMore reads on until the text has size bytes, or the body ends. Memory that text has no room for at most
// doubles with each step.
func readMore(body io.Reader, text []byte, size int) ([]byte, error) {
	for len(text) < size {
		at, step := len(text), min(max(len(text), firstBytes), size-len(text))
		text = slices.Grow(text, step)[:at+step]
		n, err := io.ReadFull(body, text[at:])
		text = text[:at+n]
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return text, err
		}
	}
	return text, nil
}

// headerSize is the number of bytes before a message: whether it is compressed, and its size.
const headerSize = 5

// messageSize returns the size of the message that begins with these bytes.
func messageSize(text []byte) int {
	if len(text) < headerSize {
		return 0
	}
	return int(binary.BigEndian.Uint32(text[1:headerSize]))
}

// need returns about the memory that a request takes: three times its size while it is decoded, and what it
// is then.
func (g *gate) need(path string, m method, text []byte) (int64, error) {
	most := needPerRequest * int64(g.largest)
	if m.lasting != nil {
		most = min(most, maxLastingNeed)
	}
	need := 3 * int64(len(text))
	if len(text) > headerSize {
		need += costOf(g.known, m.request, text[headerSize:], most)
	}
	switch {
	case need <= most:
		return need, nil
	case m.lasting != nil:
		return 0, status.Errorf(codes.ResourceExhausted, "the request needs more memory than %d KB, the maximum of %s", most>>10, path)
	}
	return 0, status.Errorf(codes.ResourceExhausted, "the request needs more memory than %d KB, %d times max-msg-size in grpc.conf: split it", most>>10, needPerRequest)
}

// turn waits for a slot, which leave gives back.
func turn(ctx context.Context, slots chan struct{}) (leave func(), err error) {
	timer := time.NewTimer(turnWait)
	defer timer.Stop()
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, nil
	case <-timer.C:
		return nil, status.Error(codes.ResourceExhausted, "too many calls of this kind at once; try again later")
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}

// refuse answers a call in the form for answers without a message (gRPC over HTTP/2, Trailers-Only).
func refuse(w http.ResponseWriter, st *status.Status) {
	h := w.Header()
	h.Set("Content-Type", "application/grpc")
	h.Set("Grpc-Status", strconv.Itoa(int(st.Code())))
	h.Set("Grpc-Message", st.Message())
}

// A request is the body of a request that was received. It keeps no bytes that were read.
type request struct{ rest []byte }

// Read implements io.Reader.
func (b *request) Read(p []byte) (int, error) {
	if len(b.rest) == 0 {
		b.rest = nil
		return 0, io.EOF
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// Close implements io.Closer.
func (b *request) Close() error { return nil }
