package grpc

import (
	"bufio"
	"net"
	"os"

	"github.com/keyplane/keyplane/internal/sender"
)

// A socket is a listener that removes its file when it is closed, unless another process
// has replaced the file.
type socket struct {
	net.Listener
	path    string
	file    os.FileInfo
	packets bool
}

// newSocket wraps a listener whose file is at path now. It remembers which file that is,
// so that Close never removes the socket of another agent. It closes l if it fails.
func newSocket(l net.Listener, network, path string) (net.Listener, error) {
	info, err := os.Lstat(path)
	if err != nil {
		l.Close()
		return nil, err
	}
	return &socket{Listener: sender.Listener(l), path: path, file: info, packets: network == "unixpacket"}, nil
}

// Addr is that of the file that clients see.
func (s *socket) Addr() net.Addr {
	return &net.UnixAddr{Name: s.path, Net: s.Listener.Addr().Network()}
}

// Close implements net.Listener.
func (s *socket) Close() error {
	if info, err := os.Lstat(s.path); err == nil && os.SameFile(info, s.file) {
		os.Remove(s.path)
	}
	return s.Listener.Close()
}

// Accept implements net.Listener.
func (s *socket) Accept() (net.Conn, error) {
	c, err := s.Listener.Accept()
	if err != nil || !s.packets {
		return c, err
	}
	return newPacketConn(c), nil
}

// A packetConn reads a socket of packets as a stream. A read that is shorter than a packet
// would lose the rest of it.
type packetConn struct {
	net.Conn
	in *bufio.Reader
}

// longestPacket is more than the kernel lets a process send as one packet by default.
const longestPacket = 256 << 10

// maxWrite is how much is sent as one packet: it must fit into the buffer of the socket.
const maxWrite = 32 << 10

// The buffer has room for the longest packet, so no Read of the stream loses a part of
// one.
func newPacketConn(c net.Conn) net.Conn {
	return &packetConn{c, bufio.NewReaderSize(c, longestPacket)}
}

// Read returns the next bytes of the stream. A packet may have more bytes than b; the rest
// comes with the next call.
func (p *packetConn) Read(b []byte) (int, error) {
	if p.in.Buffered() == 0 { // fills the long buffer: bufio reads directly into a b that is longer
		if _, err := p.in.Peek(1); err != nil {
			return 0, err
		}
	}
	return p.in.Read(b)
}

// Write sends b in packets of at most the allowed size. done is the number of bytes that
// were sent, also if an error ends it.
func (p *packetConn) Write(b []byte) (done int, err error) {
	for done < len(b) {
		n, err := p.Conn.Write(b[done:min(len(b), done+maxWrite)])
		done += n
		if err != nil {
			return done, err
		}
	}
	return done, nil
}
