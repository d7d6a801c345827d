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

// Consenting is the socket of a VPP that says yes to each route of one client, and does nothing: what is
// measured beside it is the client.
func RouteSink(b *testing.B) (socket string) {
	b.Helper()
	const requestID, replyID = 100, 101
	socket = filepath.Join(b.TempDir(), "api.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { listener.Close() })
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

// consent answers with out to what comes first, and with yes to each request of that number.
func consent(sock net.Conn, out []byte, request uint16, yes []byte) {
	defer sock.Close()
	in, asked := bufio.NewReaderSize(sock, 64<<10), &ip.IPRouteAddDel{}
	for message, err := vppwire.Read(in, nil); err == nil; message, err = vppwire.Read(in, message) {
		if vppwire.ID(message) == request {
			out = append(out, yes...)
			binary.BigEndian.PutUint32(out[len(out)-len(yes)+18:], vppwire.Context(message, asked))
		}
		if in.Buffered() > 0 {
			continue
		}
		if _, err := sock.Write(out); err != nil {
			return
		}
		out = out[:0]
	}
}
