package simulated

import (
	"bufio"
	"encoding/binary"
	"net"
	"path/filepath"
	"testing"

	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/memclnt"

	"github.com/keyplane/keyplane/internal/vppwire"
)

// RouteSink returns the socket of a server that accepts one client and answers every route
// request with success. It stores nothing, so that a benchmark measures the client alone.
func RouteSink(b *testing.B) (socket string) {
	b.Helper()
	const requestID, replyID = 100, 101
	socket = filepath.Join(b.TempDir(), "api.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { listener.Close() })
	// The table has the two messages that the benchmark uses; the client finds no others.
	welcome, err := vppwire.Append(nil, vppwire.CreateReplyID, &memclnt.SockclntCreateReply{Index: 7, MessageTable: []memclnt.MessageTableEntry{
		{Index: requestID, Name: vppwire.Name(&ip.IPRouteAddDel{})}, {Index: replyID, Name: vppwire.Name(&ip.IPRouteAddDelReply{})},
	}}, 0, 1)
	if err != nil {
		b.Fatal(err)
	}
	yes, err := vppwire.Append(nil, replyID, &ip.IPRouteAddDelReply{}, 0, 0)
	if err != nil {
		b.Fatal(err)
	}
	go func() {
		if sock, err := listener.Accept(); err == nil {
			consent(sock, welcome, requestID, yes)
		}
	}()
	return socket
}

// consent answers the first message with welcome, and each route request with a copy of yes
// in which it sets the context of the request. Answers are written in bulk whenever no
// request is buffered.
func consent(sock net.Conn, welcome []byte, requestID uint16, yes []byte) {
	defer sock.Close()
	out := welcome
	in, request := bufio.NewReaderSize(sock, 64<<10), &ip.IPRouteAddDel{}
	for message, err := vppwire.Read(in, nil); err == nil; message, err = vppwire.Read(in, message) {
		if vppwire.ID(message) == requestID {
			out = append(out, yes...)
			// 16 bytes of socket header and 2 bytes of message ID precede the context.
			binary.BigEndian.PutUint32(out[len(out)-len(yes)+18:], vppwire.Context(message, request))
		}
		// As a real VPP does, which answers a burst at once.
		if in.Buffered() > 0 {
			continue
		}
		if _, err := sock.Write(out); err != nil {
			return
		}
		out = out[:0]
	}
}
