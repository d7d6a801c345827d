// Package vppwire encodes and decodes the frames of VPP's binary API: the frame header, the
// message header, and the first message of a client, which asks for the numbers of all other
// messages. The agent's client and the simulated VPP share it. GoVPP's bindings encode and
// decode the fields of messages.
//
// A frame is a header of 16 bytes and a message. The third word of the header is the length
// of the message, big endian (VPP src/vlibmemory/socket_api.c, msgbuf_t).
package vppwire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/codec"

	"github.com/keyplane/keyplane/internal/guard"
)

const (
	// CreateID and CreateReplyID are the fixed numbers of sockclnt_create and its reply. All
	// other numbers come from the message table.
	CreateID, CreateReplyID = 15, 16
	// MaxMessage is the length in bytes of the longest message that is read.
	MaxMessage = 64 << 20

	frameHeader = 16
)

// ErrTooLong is the error of Read for a frame that is longer than MaxMessage.
var ErrTooLong = errors.New("message too long")

// Name returns the name of m in the message table: with the checksum of its definition.
func Name(m api.Message) string { return m.GetMessageName() + "_" + m.GetCrcString() }

// HeaderLen returns the number of bytes before the fields of m: the number of the message, and
// the client and the context if a message of m's kind has them.
func HeaderLen(m api.Message) int {
	switch m.GetMessageType() {
	case api.RequestMessage:
		return 10
	case api.ReplyMessage, api.EventMessage:
		return 6
	default:
		return 2
	}
}

// Append appends m as a frame. A request has a client and a context, a reply has a context, and
// an event has a client; Append ignores the rest.
func Append(to []byte, id uint16, m api.Message, client, context uint32) ([]byte, error) {
	body, ok := m.(codec.Marshaler)
	if !ok {
		return to, fmt.Errorf("%s cannot be encoded: it is not of GoVPP's bindings", m.GetMessageName())
	}
	header := HeaderLen(m)
	size := header + body.Size()
	from := len(to)
	to = append(to, make([]byte, frameHeader+size)...)
	binary.BigEndian.PutUint32(to[from+8:], uint32(size))
	message := to[from+frameHeader:]
	binary.BigEndian.PutUint16(message, id)
	switch m.GetMessageType() {
	case api.RequestMessage:
		binary.BigEndian.PutUint32(message[2:], client)
		binary.BigEndian.PutUint32(message[6:], context)
	case api.ReplyMessage:
		binary.BigEndian.PutUint32(message[2:], context)
	case api.EventMessage:
		binary.BigEndian.PutUint32(message[2:], client)
	case api.OtherMessage: // it has neither
	}
	if _, err := body.Marshal(message[header:]); err != nil {
		return to[:from], fmt.Errorf("encoding %s: %w", m.GetMessageName(), err)
	}
	return to, nil
}

// SetContext sets the context of requests that Append has made.
func SetContext(frames []byte, context uint32) {
	for len(frames) > 0 {
		binary.BigEndian.PutUint32(frames[frameHeader+6:], context)
		frames = frames[frameHeader+binary.BigEndian.Uint32(frames[8:]):]
	}
}

// Read reads the message of the next frame into buf, or into a larger buffer if buf is too
// small. The caller passes the result to the next Read as buf.
func Read(r *bufio.Reader, buf []byte) ([]byte, error) {
	header, err := r.Peek(frameHeader)
	if err != nil {
		return nil, err
	}
	size := int(binary.BigEndian.Uint32(header[8:]))
	if size > MaxMessage {
		return nil, fmt.Errorf("%w: %d bytes", ErrTooLong, size)
	}
	if _, err := r.Discard(frameHeader); err != nil {
		return nil, err
	}
	if size <= max(cap(buf), readAhead) {
		buf = slices.Grow(buf[:0], size)[:size]
		_, err = io.ReadFull(r, buf)
		return buf, err
	}
	return readLong(r, buf[:0], size)
}

// readAhead is the length of the longest message for which there is room before its bytes come.
const readAhead = 1 << 20

// readLong reads a long message. The buffer grows with the bytes that arrive, so a wrong length
// does not cost memory.
func readLong(r *bufio.Reader, buf []byte, size int) ([]byte, error) {
	for len(buf) < size {
		from := len(buf)
		step := min(size-from, max(from, readAhead))
		buf = slices.Grow(buf, step)[:from+step]
		if n, err := io.ReadFull(r, buf[from:]); err != nil {
			return buf[:from+n], err
		}
	}
	return buf, nil
}

// ID is the number of a message.
func ID(message []byte) uint16 {
	if len(message) < 2 {
		return 0
	}
	return binary.BigEndian.Uint16(message)
}

// Client returns the client index in a request; 0: the message is too short.
func Client(message []byte) uint32 {
	if len(message) < 6 {
		return 0
	}
	return binary.BigEndian.Uint32(message[2:])
}

// Context returns the context of a message of m's kind. An answer has the context of its
// request.
func Context(message []byte, m api.Message) uint32 {
	at := 2
	if m.GetMessageType() == api.RequestMessage {
		at = 6
	}
	if len(message) < at+4 {
		return 0
	}
	return binary.BigEndian.Uint32(message[at:])
}

// A Decoder decodes messages. It works out the layout of a message type once and keeps it,
// so a program that decodes many messages keeps one Decoder for each connection or dump.
// The zero value works, and any goroutine may use it. It must not be copied.
type Decoder struct {
	shapes sync.Map // reflect.Type to *shape
}

// Decode decodes one message by a Decoder of its own. See Decoder.Decode.
func Decode(message []byte, m api.Message) error {
	var d Decoder
	return d.Decode(message, m)
}

// Decode reads the fields of m from a message. It replaces bytes of strings that are no
// text by question marks; see Text. A message that is too short is an error, and so is a
// count beyond the message's length (ErrCount). After an error m is incomplete and must
// not be used. Decode needs at most a small multiple of the message's length in memory.
func (d *Decoder) Decode(message []byte, m api.Message) error {
	body, ok := m.(codec.Unmarshaler)
	if !ok {
		return fmt.Errorf("%s cannot be decoded: its type is not one of GoVPP's bindings", m.GetMessageName())
	}
	err := guard.Run(func() error { return d.decode(message, m, body) })
	if short, ok := errors.AsType[*guard.Panic](err); ok { // the bindings read past the end of a short message
		return fmt.Errorf("decoding %s of %d bytes: %v", m.GetMessageName(), len(message), short.Value)
	}
	return err
}

// decode checks the message against its shape before GoVPP reads it: GoVPP trusts lengths.
func (d *Decoder) decode(message []byte, m api.Message, body codec.Unmarshaler) error {
	header := HeaderLen(m)
	if len(message) < header {
		return fmt.Errorf("decoding %s of %d bytes: its header has %d", m.GetMessageName(), len(message), header)
	}
	// The capacity ends with the message: a larger message may have left bytes behind it.
	holds := message[header:len(message):len(message)]
	s, err := d.shapeOf(m)
	if err == nil {
		_, err = s.check(holds)
	}
	if err != nil {
		return fmt.Errorf("decoding %s of %d bytes: %w", m.GetMessageName(), len(message), err)
	}
	return body.Unmarshal(holds)
}
