package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
)

// standing is how the agent says that all that is declared has been seen to.
const standing = "STATUS=the declared network is applied"

// A statusSocket hears how the agent is, by the protocol of sd_notify(3).
type statusSocket struct {
	path string
	conn *net.UnixConn
}

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

// Wait returns nil when the network stands, and an error when the socket is closed.
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
