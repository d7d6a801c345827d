// Package conns bounds the connections that an HTTP server accepts, and serves until a context ends.
//
//	err := conns.Serve(ctx, server, conns.Limit(listener, config.MaxConnections), nil)
package conns

import (
	"net"

	"golang.org/x/net/netutil"
	"golang.org/x/sys/unix"
)

// Limit returns a listener that accepts at most so many connections at once, and at most a quarter
// of the process's file descriptors. Further ones wait. The other descriptors remain for stores,
// namespaces and VPP, regardless of the number of clients.
func Limit(l net.Listener, configured int) net.Listener {
	return netutil.LimitListener(l, most(configured))
}

// most returns the smaller one of both bounds, and at least 1.
func most(configured int) int {
	var files unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &files) != nil {
		return configured
	}
	return int(max(1, min(uint64(configured), files.Cur/4)))
}
