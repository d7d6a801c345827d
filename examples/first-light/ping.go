package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
)

// pingTimeout is how long ping waits for an answer.
const pingTimeout = 2 * time.Second

// A family has the differences between the two versions of ICMP.
type family struct {
	network, any   string
	protocol       int // the protocol number of IANA
	request, reply icmp.Type
}

// familyOf returns the ICMP numbers of an IP version (RFC 792, RFC 4443).
func familyOf(addr netip.Addr) family {
	if addr.Is4() {
		return family{"ip4:icmp", "0.0.0.0", 1, ipv4.ICMPTypeEcho, ipv4.ICMPTypeEchoReply}
	}
	return family{"ip6:ipv6-icmp", "::", 58, ipv6.ICMPTypeEchoRequest, ipv6.ICMPTypeEchoReply}
}

// ping sends one echo request from the namespace of this thread and waits for the answer.
// It serves machines without a ping program.
func ping(out io.Writer, address string) error {
	addr, err := netip.ParseAddr(address)
	if err != nil {
		return fmt.Errorf("address to ping: %w", err)
	}
	f := familyOf(addr)
	conn, err := icmp.ListenPacket(f.network, f.any)
	if err != nil {
		return fmt.Errorf("socket for ping: %w", err)
	}
	defer conn.Close()
	start := time.Now()
	if err := conn.SetDeadline(start.Add(pingTimeout)); err != nil {
		return err
	}
	if err := sendEcho(conn, f, addr); err != nil {
		return err
	}
	if err := awaitReply(conn, f); err != nil {
		return fmt.Errorf("no answer from %s: %w", addr, err)
	}
	_, err = fmt.Fprintf(out, "answer from %s after %s\n", addr, time.Since(start).Round(time.Microsecond))
	return err
}

// identifier distinguishes our echoes from those of other processes.
func identifier() int { return os.Getpid() & 0xffff }

// sendEcho sends one echo request.
func sendEcho(conn *icmp.PacketConn, f family, addr netip.Addr) error {
	message := icmp.Message{Type: f.request, Body: &icmp.Echo{ID: identifier(), Seq: 1, Data: []byte("first light")}}
	packet, err := message.Marshal(nil)
	if err != nil {
		return err
	}
	if _, err := conn.WriteTo(packet, &net.IPAddr{IP: addr.AsSlice()}); err != nil {
		return fmt.Errorf("no way to %s: %w", addr, err)
	}
	return nil
}

// awaitReply waits for the answer to this process; others may ping, too.
func awaitReply(conn *icmp.PacketConn, f family) error {
	buf := make([]byte, 1500)
	for {
		n, _, err := conn.ReadFrom(buf)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("waited %s", pingTimeout)
		}
		if err != nil {
			return err
		}
		message, err := icmp.ParseMessage(f.protocol, buf[:n])
		if err != nil || message.Type != f.reply {
			continue
		}
		if echo, ok := message.Body.(*icmp.Echo); ok && echo.ID == identifier() {
			return nil
		}
	}
}
