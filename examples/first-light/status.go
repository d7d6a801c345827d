package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
)

// standing is the status by which the agent reports that the declared network is applied.
const standing = "STATUS=the declared network is applied"

// A statusSocket receives the status of the agent, by the protocol of sd_notify(3).
type statusSocket struct {
	path string
	conn *net.UnixConn
}

// listenStatus makes a socket to which the agent reports that it is ready, as it does to
// systemd (sd_notify).
func listenStatus() (*statusSocket, error) {
	dir, err := os.MkdirTemp("", "first-light-")
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return &statusSocket{path: path, conn: conn}, nil
}

// Wait returns nil when the network is applied, and an error when the socket is closed.
func (s *statusSocket) Wait() error {
	buf := make([]byte, 4096)
	for {
		n, err := s.conn.Read(buf)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(buf[:n])) {
			if strings.HasPrefix(line, standing) {
				return nil
			}
		}
	}
}

// Close ends Wait and removes the socket.
func (s *statusSocket) Close() {
	s.conn.Close()
	os.RemoveAll(filepath.Dir(s.path))
}
