package grpc

import (
	"context"
	"net"

	"github.com/keyplane/keyplane/scheduler"
)

// PacketConn reads a socket of packets as a stream, for clients.
func PacketConn(c net.Conn) net.Conn { return newPacketConn(c) }

// ListenOnce opens the address of a configuration without retries.
func ListenOnce(ctx context.Context, c Config) (net.Listener, error) {
	return (&Server{Config: c}).listenOnce(ctx)
}

// MaxGone is how many removed values are kept for subscriptions.
const MaxGone = maxGone

// NewHub returns what numbers the changes for subscriptions.
func NewHub(sched *scheduler.Scheduler, ended <-chan struct{}) *hub { return newHub(sched, ended) }

// Open begins a subscription.
func (h *hub) Open(wants func(key string) bool) *reader {
	r, _ := h.open("", wants)
	return r
}

// Take takes what the reader has not taken.
func (r *reader) Take() error {
	_, _, err := r.take()
	return err
}

// Kept returns how many removed values are kept now, and how many values in all.
func (h *hub) Kept() (gone, all int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pull()
	return len(h.gone), len(h.newest)
}
