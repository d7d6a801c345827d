package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
)

// A readySocket hears when the agent is ready, by the protocol of sd_notify(3).
type readySocket struct {
	path string
	conn *net.UnixConn
}

func listenReady() (*readySocket, error) {
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
	return &readySocket{path: path, conn: conn}, nil
}

// Wait returns nil when the agent is ready, and an error when the socket is closed.
func (r *readySocket) Wait() error {
	buf := make([]byte, 4096)
	for {
		n, err := r.conn.Read(buf)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(buf[:n])) {
			if strings.TrimSpace(line) == "READY=1" {
				return nil
			}
		}
	}
}

// Close ends Wait and removes the socket.
func (r *readySocket) Close() {
	r.conn.Close()
	os.RemoveAll(filepath.Dir(r.path))
}
