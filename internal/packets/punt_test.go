package packets

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/keyplane/keyplane/internal/testkit"
)

// Packets for a UDP port of VPP, and those that VPP gives up for a reason, go to a program's socket.
func TestPuntReachesItsSocket(t *testing.T) {
	l := start(t, "a", "b")
	program := listenUnix(t)
	l.declare(routed("a", "b"), fmt.Sprintf(`vppConfig:
  puntTohosts: [{l3Protocol: ALL, l4Protocol: UDP, port: 9000, socketPath: %[1]q}]
  puntExceptions: [{reason: ipsec4-no-such-tunnel, socketPath: %[1]q}]`, program.path))
	program.receives(l.send("a", udp("10.0.1.2:1000", "10.0.1.1:9000")))
	program.receives(l.send("a", udp("[fd00:1::2]:1000", "[fd00:1::1]:9000")))
	program.receives(l.send("a", esp("10.0.1.2", "10.0.1.1")))

	// Packets for another port do not arrive before those for this one.
	l.send("a", udp("10.0.1.2:1000", "10.0.1.1:9001"))
	l.fence("a", "a")
	program.receives(l.send("a", udp("10.0.1.2:1000", "10.0.1.1:9000")))

	l.declare(routed("a", "b"), fmt.Sprintf(`vppConfig: {puntTohosts: [{l3Protocol: IPV4, l4Protocol: UDP, port: 9001, socketPath: %q}]}`, program.path))
	l.send("a", udp("10.0.1.2:1000", "10.0.1.1:9000"))
	l.send("a", esp("10.0.1.2", "10.0.1.1"))
	l.fence("a", "a")
	program.receives(l.send("a", udp("10.0.1.2:1000", "10.0.1.1:9001")))
}

// esp is a packet of IPsec for an association that nobody has.
func esp(from, to string) packet {
	p := ip(netip.MustParseAddr(from), netip.MustParseAddr(to), layers.IPProtocolESP, gopacket.Payload{0, 0, 3, 0xe9, 0, 0, 0, 1})
	p.text = "esp " + from + " > " + to
	return p
}

// Other packets for VPP leave by the interface of the redirection, or of the address.
func TestPacketsForVPPAreRedirected(t *testing.T) {
	l := start(t, "a", "b")
	p := tcp("10.0.1.2:1000", "10.0.1.1:9000")
	for name, value := range map[string]string{
		"a redirection":    `puntIpredirects: [{l3Protocol: IPV4, rxInterface: a, txInterface: b, nextHop: 10.0.2.2}]`,
		"a shared address": `Rule_list: [{interface: b, ipAddress: 10.0.1.1}]`,
	} {
		l.Log(name)
		l.declare(routed("a", "b"), "vppConfig: {"+value+"}")
		l.run(step{in: "a", packet: p, out: []string{"b: 10.0.1.2 > 10.0.1.1 | tcp"}})
		l.declare(routed("a", "b"))
		l.run(step{in: "a", packet: p, not: []string{"b"}})
	}
}

// A listener is a program with a socket for packets from VPP.
type listener struct {
	*testing.T
	path string
	conn *net.UnixConn
}

func listenUnix(t *testing.T) *listener {
	t.Helper()
	path := filepath.Join(t.TempDir(), "punt")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &listener{T: t, path: path, conn: conn}
}

// receives expects the packet with this number next.
func (l *listener) receives(mark string) {
	l.Helper()
	if err := l.conn.SetReadDeadline(time.Now().Add(testkit.Patience)); err != nil {
		l.Fatal(err)
	}
	message := make([]byte, 1<<16)
	n, err := l.conn.Read(message)
	if err != nil {
		l.Fatal(err)
	}
	if got := strings.TrimRight(string(message[:n]), "\x00"); !strings.HasSuffix(got, mark) {
		l.Fatalf("%q reached the socket; expected the packet %s", got, mark)
	}
}
