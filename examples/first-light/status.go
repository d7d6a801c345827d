package main

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
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

const (
	// quietTime is how long the agent must have written nothing before the hints are printed.
	quietTime = 200 * time.Millisecond
	// readyPeriod is how often the agent is asked whether it is ready, and readyTimeout when that
	// ends. A network that the user has edited may never be ready; the hints help then, too.
	readyPeriod  = 50 * time.Millisecond
	readyTimeout = 5 * time.Second
)

// complete returns nil when the network is applied, the simulated VPP included, and everything
// about it is written. An error says that the agent has ended.
func complete(ctx context.Context, status *statusSocket, to *transcript) error {
	if err := status.Wait(); err != nil {
		return err
	}
	// VPP may connect after that.
	ready, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for !isReady(ready) && pause(ready, readyPeriod) == nil {
	}
	return to.awaitQuiet(ctx, quietTime)
}

// isReady asks the agent whether the network is as declared as far as possible.
func isReady(ctx context.Context) bool {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	web := http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://agent/readiness", http.NoBody)
	if err != nil {
		return false
	}
	answer, err := web.Do(request)
	if err != nil {
		return false
	}
	answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}
