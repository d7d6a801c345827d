// Package nodes reads what a Redis Cluster says of its nodes.
package nodes

import (
	"cmp"
	"net"
	"slices"
	"strings"
)

// WithoutSlots returns the addresses of the masters without slots that other nodes can reach: HOST:PORT.
// The text is the answer to CLUSTER NODES. A line of it has:
//
//	ID IP:PORT@BUS[,HOSTNAME] FLAGS MASTER PING PONG EPOCH LINK [SLOTS or [SLOT-MOVED]]...
func WithoutSlots(text string) (addrs []string) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		ownsSlots := len(f) > 8 && slices.ContainsFunc(f[8:], func(slot string) bool { return slot[0] != '[' })
		if len(f) < 8 || ownsSlots || f[7] != "connected" || !isHealthyMaster(f[2]) {
			continue
		}
		where, names, _ := strings.Cut(f[1], ",")
		where, _, _ = strings.Cut(where, "@")
		colon := strings.LastIndex(where, ":") // an IPv6 address has others
		if colon < 0 {
			continue
		}
		name, _, _ := strings.Cut(names, ",")
		if host := cmp.Or(name, where[:colon]); host != "" {
			addrs = append(addrs, net.JoinHostPort(host, where[colon+1:]))
		}
	}
	return addrs
}

// isHealthyMaster interprets the flags of a node.
func isHealthyMaster(flags string) (master bool) {
	for flag := range strings.SplitSeq(flags, ",") {
		switch flag {
		case "master":
			master = true
		case "fail", "fail?", "handshake", "noaddr":
			return false
		}
	}
	return master
}
