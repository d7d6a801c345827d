package grpc

import (
	"context"
	"net"
)

// PacketConn reads a socket of packets as a stream, for clients.
func PacketConn(c net.Conn) net.Conn { return newPacketConn(c) }

// ListenOnce opens the address of a configuration without retries.
func ListenOnce(ctx context.Context, c Config) (net.Listener, error) {
	return (&Server{Config: c}).listenOnce(ctx)
}
