package etcd

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec with this name
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/keyplane/keyplane/kvdbsync"
)

// A codec decodes the messages of one call. It refuses a message whose content would exceed
// a page in memory. gRPC bounds only the bytes, but two of them can be an element of a list,
// which takes a hundred in memory.
type codec struct {
	encoding.CodecV2
	page    int64
	refused error // the reason; gRPC returns only its text
}

// newCodec returns the codec of a call.
func newCodec(b kvdbsync.Bounds) *codec {
	return &codec{CodecV2: encoding.GetCodecV2("proto"), page: b.WithDefaults().Page}
}

// Unmarshal implements encoding.CodecV2.
func (c *codec) Unmarshal(data mem.BufferSlice, v any) error {
	whole := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer whole.Free()
	m, ok := v.(proto.Message)
	if !ok {
		return fmt.Errorf("%T is no message", v)
	}
	left := c.page - int64(whole.Len())
	if left < 0 || weigh(m.ProtoReflect().Descriptor(), whole.ReadOnlyData(), left, mostNested) > left {
		c.refused = refusal{fmt.Errorf("%w: the content of the answer takes more memory than max-page-size allows, %d", kvdbsync.ErrTooMuch, c.page)}
		return c.refused
	}
	return c.CodecV2.Unmarshal(mem.BufferSlice{whole}, v)
}

// reason returns the codec's own error if that ended a call, and otherwise err in words for people.
func (c *codec) reason(err error) error {
	if err != nil && c.refused != nil {
		return c.refused
	}
	return inWords(err)
}

// A refusal has the code with which gRPC refuses a message that has too many bytes.
type refusal struct{ error }

// Unwrap makes errors.Is find kvdbsync.ErrTooMuch.
func (r refusal) Unwrap() error { return r.error }

// GRPCStatus makes status.Code find the code.
func (r refusal) GRPCStatus() *status.Status {
	return status.New(codes.ResourceExhausted, r.Error())
}

const (
	// messageCost is the memory in bytes of a message within another one, such as a pair, and
	// of the event that is made of it.
	messageCost = 256
	// byteCost is the memory for each byte of a list of other elements. An empty text has two.
	byteCost = 16
	// mostNested is the greatest depth of messages within messages.
	mostNested = 100
)

// weigh returns the memory that the content of a message takes besides its bytes. It decodes
// nothing, and stops when there is more than most. What is malformed weighs nothing, because it
// ends the decoding.
func weigh(d protoreflect.MessageDescriptor, data []byte, most int64, nested int) int64 {
	if nested == 0 {
		return most + 1
	}
	weight := int64(0)
	var last protoreflect.FieldDescriptor // a list has thousands of elements in a row
	lastIsFlat := false
	for len(data) > 0 && weight <= most {
		number, kind, n := protowire.ConsumeField(data)
		if n < 0 {
			break
		}
		f := d.Fields().ByNumber(number)
		switch {
		case f == nil: // it is kept as it is
		case f.Message() != nil && kind == protowire.BytesType:
			weight += messageCost
			if f != last {
				last, lastIsFlat = f, flat(f.Message())
			}
			if !lastIsFlat {
				weight += weigh(f.Message(), content(data[:n]), most-weight, nested-1)
			}
		case f.IsList():
			weight += byteCost * int64(n)
		}
		data = data[n:]
	}
	return weight
}

// flat reports that messages have no lists and no messages within.
func flat(d protoreflect.MessageDescriptor) bool {
	for i := range d.Fields().Len() {
		if f := d.Fields().Get(i); f.IsList() || f.Message() != nil {
			return false
		}
	}
	return true
}

// content returns the bytes of a field without its tag and its length.
func content(field []byte) []byte {
	_, _, n := protowire.ConsumeTag(field)
	bytes, _ := protowire.ConsumeBytes(field[n:])
	return bytes
}

// unary gives each request a codec. It makes a request fail with the reason when no endpoint can be
// reached: the etcd client would wait and report only that the deadline has passed.
func unary(b kvdbsync.Bounds) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		c := newCodec(b)
		return c.reason(invoke(ctx, method, req, reply, cc, append(opts, grpc.WaitForReady(false), grpc.ForceCodecV2(c))...))
	}
}

// streaming gives each stream a codec and bounds its messages.
func streaming(b kvdbsync.Bounds) grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		c := newCodec(b)
		s, err := open(ctx, desc, cc, method, append(opts, grpc.WaitForReady(false), grpc.ForceCodecV2(c), grpc.MaxCallRecvMsgSize(messageSize(b)))...)
		if err != nil {
			return nil, c.reason(err)
		}
		return stream{s, c}, nil
	}
}

// A stream returns the errors of its codec, and others in words for people.
type stream struct {
	grpc.ClientStream
	codec *codec
}

// RecvMsg implements grpc.ClientStream.
func (s stream) RecvMsg(m any) error { return s.codec.reason(s.ClientStream.RecvMsg(m)) }

// SendMsg implements grpc.ClientStream.
func (s stream) SendMsg(m any) error { return s.codec.reason(s.ClientStream.SendMsg(m)) }
