package packets

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// A port is a pair of links. VPP gets "vpp-" and the name, and the test has the other end.
//
//	port   name of the number n = 1, 2, 3...: a, b, c...
//	VPP    02:fe:00:00:00:0n, 10.0.n.1/24, fd00:n::1/64
//	test   02:00:00:00:00:0n, 10.0.n.2, fd00:n::2
type port struct {
	name string
	file *os.File    // a raw socket, of which the port is the owner
	got  chan string // what came out, as text; the reader closes it
	seen []string    // what was taken from got and not expected yet
}

// newPort makes the links and opens the socket. The test removes them.
func newPort(t *testing.T, name string) *port {
	t.Helper()
	pair := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name, MTU: 2000}, PeerName: "vpp-" + name}
	if err := netlink.LinkAdd(pair); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := netlink.LinkDel(pair); err != nil {
			t.Error(err)
		}
	})
	for _, end := range []string{name, "vpp-" + name} {
		link, err := netlink.LinkByName(end)
		if err == nil {
			err = netlink.LinkSetUp(link)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	p := &port{name: name, file: listen(t, name), got: make(chan string, 100000)}
	t.Cleanup(func() {
		_ = p.file.Close() // the reader ends
		for range p.got {  // until the reader has ended
		}
	})
	go p.read()
	return p
}

// listen opens a raw socket for all packets that arrive at a link.
func listen(t *testing.T, link string) *os.File {
	t.Helper()
	at, err := net.InterfaceByName(link)
	if err != nil {
		t.Fatal(err)
	}
	protocol := binary.NativeEndian.Uint16([]byte{unix.ETH_P_ALL >> 8, unix.ETH_P_ALL})
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: at.Index})
	if err == nil {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 1<<26)
	}
	if err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fd), link)
}

func (p *port) read() {
	defer close(p.got)
	frame := make([]byte, 1<<16)
	for {
		n, err := p.file.Read(frame)
		if err != nil {
			return
		}
		p.got <- show(frame[:n])
	}
}

// number is the n of the addresses of a port.
func number(port string) byte { return port[0] - 'a' + 1 }

// vppMAC is the address of VPP at a port, and hostMAC that of the test.
func vppMAC(port string) net.HardwareAddr  { return net.HardwareAddr{2, 0xfe, 0, 0, 0, number(port)} }
func hostMAC(port string) net.HardwareAddr { return net.HardwareAddr{2, 0, 0, 0, 0, number(port)} }

// bare declares the interface of a port without addresses.
func bare(ports ...string) (document string) {
	document = "vppConfig:\n  interfaces:\n"
	for _, name := range ports {
		document += fmt.Sprintf("    - {name: %[1]s, type: AF_PACKET, enabled: true, physAddress: %q, afpacket: {hostIfName: vpp-%[1]s}}\n", name, vppMAC(name).String())
	}
	return document
}

// routed declares the interfaces of ports with their addresses, and the test as their neighbour.
func routed(ports ...string) (document string) {
	document = "vppConfig:\n  interfaces:\n"
	for _, name := range ports {
		document += fmt.Sprintf("    - {name: %[1]s, type: AF_PACKET, enabled: true, physAddress: %[2]q, ipAddresses: [10.0.%[3]d.1/24, 'fd00:%[3]d::1/64'], afpacket: {hostIfName: vpp-%[1]s}}\n",
			name, vppMAC(name).String(), number(name))
	}
	document += "  arps:\n"
	for _, name := range ports {
		for _, address := range []string{"10.0.%d.2", "fd00:%d::2"} {
			document += fmt.Sprintf("    - {interface: %s, ipAddress: %q, physAddress: %q, static: true}\n", name, fmt.Sprintf(address, number(name)), hostMAC(name).String())
		}
	}
	return document
}
