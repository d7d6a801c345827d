package packets

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/descriptors/linux"
	"github.com/keyplane/keyplane/internal/scratch"
	"github.com/keyplane/keyplane/internal/testkit"
)

// The network of the test of Linux: two hosts and a router between them, each in a namespace.
const (
	veths = `linuxConfig:
  interfaces:
    - {name: client, type: VETH, namespace: {type: NSID, reference: client}, hostIfName: eth0, enabled: true, ipAddresses: [10.1.1.2/24, 'fd01:1::2/64'], veth: {peerIfName: router1}}
    - {name: router1, type: VETH, namespace: {type: NSID, reference: router}, hostIfName: eth1, enabled: true, ipAddresses: [10.1.1.1/24, 'fd01:1::1/64'], veth: {peerIfName: client}}
    - {name: server, type: VETH, namespace: {type: NSID, reference: server}, hostIfName: eth0, enabled: true, ipAddresses: [10.1.2.2/24, 'fd01:2::2/64'], veth: {peerIfName: router2}}
    - {name: router2, type: VETH, namespace: {type: NSID, reference: router}, hostIfName: eth2, enabled: true, ipAddresses: [10.1.2.1/24, 'fd01:2::1/64'], veth: {peerIfName: server}}`
	ways = `linuxConfig:
  routes:
    - {outgoingInterface: client, scope: GLOBAL, dstNetwork: 10.1.2.0/24, gwAddr: 10.1.1.1}
    - {outgoingInterface: server, scope: GLOBAL, dstNetwork: 10.1.1.0/24, gwAddr: 10.1.2.1}
    - {outgoingInterface: client, scope: GLOBAL, dstNetwork: 'fd01:2::/64', gwAddr: 'fd01:1::1'}
    - {outgoingInterface: server, scope: GLOBAL, dstNetwork: 'fd01:1::/64', gwAddr: 'fd01:2::1'}`
	filter = `linuxConfig:
  RuleChain:
    - name: forward
      namespace: {type: NSID, reference: router}
      chainType: FORWARD
      defaultPolicy: DROP
      rules: ["-p icmp -j ACCEPT", "-p udp --dport 80 -j ACCEPT", "-p udp --dport 81 -j DROP"]`
	filter6 = `linuxConfig:
  RuleChain:
    - name: forward6
      namespace: {type: NSID, reference: router}
      protocol: IPV6
      chainType: FORWARD
      defaultPolicy: DROP
      rules: ["-p ipv6-icmp -j ACCEPT", "-p udp --dport 80 -j ACCEPT", "-p udp --dport 81 -j DROP"]`
)

func TestLinuxRoutes(t *testing.T) {
	l := startLinux(t)
	l.declare(veths)
	l.ping("client", "10.1.1.1")
	l.ping("router", "fd01:2::2")
	l.expectNoRoute("10.1.2.2:80")

	l.declare(veths, ways)
	l.ping("client", "10.1.2.2")
	l.ping("server", "fd01:1::2")

	l.declare(veths)
	l.expectNoRoute("10.1.2.2:80")
	l.expectNoRoute("[fd01:2::2]:80")
}

// The rules count the packets that they decide about. A denied packet was counted before the test
// looks at its socket, so nothing may be there.
func TestLinuxFilterCountsAndDrops(t *testing.T) {
	for _, c := range []struct{ version, server, icmp, save, chain string }{
		{"IPv4", "10.1.2.2", "icmp", "iptables-save", filter},
		{"IPv6", "fd01:2::2", "ipv6-icmp", "ip6tables-save", filter6},
	} {
		t.Run(c.version, func(t *testing.T) {
			l := startLinux(t)
			testkit.Need(t, "iptables", scratch.InNetns("router", func() error { return exec.Command(c.save).Run() }) == nil)
			l.declare(veths, ways, c.chain)
			l.ping("client", c.server) // from here on no packet is lost because a link is new
			if n := l.counted(c.save, "-p "+c.icmp+" -j ACCEPT"); n < 2 {
				t.Errorf("the rule of ICMP counted %d packets; expected the request and the answer at least", n)
			}
			at := func(port string) string { return net.JoinHostPort(c.server, port) }

			permitted, denied, others := l.listen(at("80")), l.listen(at("81")), l.listen(at("82"))
			for range 3 {
				l.datagram(at("80"))
				l.arrives(permitted)
			}
			l.counts(c.save, "--dport 80 -j ACCEPT", 3)
			for range 2 {
				l.datagram(at("81"))
				l.datagram(at("82"))
			}
			l.counts(c.save, "--dport 81 -j DROP", 2)
			l.counts(c.save, ":FORWARD DROP ", 2)
			for _, socket := range []*net.UDPConn{denied, others} {
				if n := waiting(t, socket); n > 0 {
					t.Errorf("%d bytes arrived at %v; expected none", n, socket.LocalAddr())
				}
			}

			l.declare(veths, ways)
			for _, socket := range []*net.UDPConn{denied, others} {
				l.datagram(socket.LocalAddr().String())
				l.arrives(socket)
			}
		})
	}
}

// startLinux makes the namespaces, of which the one in the middle forwards, and starts an agent for
// Linux alone.
func startLinux(t *testing.T) *lab {
	t.Helper()
	testkit.Netns(t, "client", "router", "server")
	err := scratch.InNetns("router", func() error {
		return errors.Join(os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0), os.WriteFile("/proc/sys/net/ipv6/conf/all/forwarding", []byte("1"), 0))
	})
	testkit.Need(t, "IPv4 and IPv6 forwarding in a namespace", err == nil)
	l := &lab{T: t, sched: newScheduler(t)}
	host, err := linux.Register(l.sched, linux.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	run(t, l.sched.Run, host.Run)
	return l
}

// within calls do in a namespace, and ends the test if it fails.
func (l *lab) within(namespace string, do func() error) {
	l.Helper()
	if err := scratch.InNetns(namespace, do); err != nil {
		l.Fatal(err)
	}
}

// ping asks an address by ICMP until it answers. The first packets may be lost: a new link carries
// none for a moment, and the kernel checks that nobody else has a new IPv6 address.
func (l *lab) ping(namespace, address string) {
	l.Helper()
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	late := time.After(testkit.Patience)
	for {
		err := scratch.InNetns(namespace, func() error { return echo(address) })
		if err == nil {
			return
		}
		select {
		case <-again.C:
		case <-late:
			l.Fatalf("%s does not answer %s: %v", address, namespace, err)
		}
	}
}

// echo sends one request by ICMP, and waits a moment for its answer.
func echo(address string) error {
	network, request, answered := "ip4:icmp", []byte{8, 0, 0, 0, 0, 7, 0, 1}, byte(0)
	if strings.Contains(address, ":") {
		network, request[0], answered = "ip6:ipv6-icmp", 128, 129 // the kernel adds the checksum
	} else {
		binary.BigEndian.PutUint16(request[2:], ^uint16(0x0800+7+1))
	}
	conn, err := net.Dial(network, address)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, sent := conn.Write(request)
	if err := errors.Join(sent, conn.SetReadDeadline(time.Now().Add(time.Second))); err != nil {
		return err
	}
	for got := make([]byte, 1500); ; {
		n, _, err := conn.(*net.IPConn).ReadFrom(got) // unlike Read, without the IPv4 header
		if err != nil {
			return err
		}
		if n >= len(request) && got[0] == answered && bytes.Equal(got[4:8], request[4:]) {
			return nil
		}
	}
}

// expectNoRoute expects that the client has no route to an address.
func (l *lab) expectNoRoute(address string) {
	l.Helper()
	l.within("client", func() error {
		conn, err := net.Dial("udp", address)
		if err == nil {
			return errors.Join(fmt.Errorf("the client has a route to %s; expected none", address), conn.Close())
		}
		if !errors.Is(err, unix.ENETUNREACH) {
			return err
		}
		return nil
	})
}

// listen opens a socket of the server.
func (l *lab) listen(address string) (conn *net.UDPConn) {
	l.Helper()
	l.within("server", func() (err error) {
		at, err := net.ResolveUDPAddr("udp", address)
		if err == nil {
			conn, err = net.ListenUDP("udp", at)
		}
		return err
	})
	l.Cleanup(func() { _ = conn.Close() })
	return conn
}

// datagram sends one from the client.
func (l *lab) datagram(to string) {
	l.Helper()
	l.within("client", func() error {
		conn, err := net.Dial("udp", to)
		if err != nil {
			return err
		}
		_, err = conn.Write([]byte("#1"))
		return errors.Join(err, conn.Close())
	})
}

// arrives waits for a datagram.
func (l *lab) arrives(at *net.UDPConn) {
	l.Helper()
	err := at.SetReadDeadline(time.Now().Add(testkit.Patience))
	if err == nil {
		_, err = at.Read(make([]byte, 1500))
	}
	if err != nil {
		l.Fatal(err)
	}
}

// waiting is the length of the first datagram in a socket; 0: there is none.
func waiting(t *testing.T, at *net.UDPConn) (n int) {
	t.Helper()
	raw, err := at.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { n, err = unix.IoctlGetInt(int(fd), unix.SIOCINQ) })
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// counts waits until a rule of the router's filter has counted this number of packets. A greater
// number ends the test.
func (l *lab) counts(save, rule string, packets int) {
	l.Helper()
	l.until(func() string {
		n := l.counted(save, rule)
		if n > packets {
			l.Fatalf("%q counted %d packets; expected %d", rule, n, packets)
		}
		if n < packets {
			return fmt.Sprintf("%q counted %d packets; expected %d", rule, n, packets)
		}
		return ""
	})
}

// counted returns the packets of the first line of iptables-save, or of that for IPv6, that has this text:
// "[3:90] -A ...", or ":FORWARD DROP [2:60]" for a policy.
func (l *lab) counted(save, rule string) (packets int) {
	l.Helper()
	var saved []byte
	l.within("router", func() (err error) {
		saved, err = exec.Command(save, "-c", "-t", "filter").Output()
		return err
	})
	for line := range strings.Lines(string(saved)) {
		_, counters, _ := strings.Cut(line, "[")
		if !strings.Contains(line, rule) {
			continue
		}
		if _, err := fmt.Sscanf(counters, "%d:", &packets); err != nil {
			l.Fatalf("%s: %v", line, err)
		}
		return packets
	}
	l.Fatalf("no line has %q:\n%s", rule, saved)
	return 0
}
