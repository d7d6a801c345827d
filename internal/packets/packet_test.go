package packets

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// A packet is what is sent. Without addresses it goes from the test to VPP.
type packet struct {
	kind     layers.EthernetType
	layers   []gopacket.SerializableLayer
	from, to net.HardwareAddr
	text     string
}

func (p packet) String() string { return p.text }

// between sets the addresses of the frame.
func (p packet) between(from, to net.HardwareAddr) packet {
	p.from, p.to = from, to
	return p
}

// udp is a packet of IPv4 or IPv6: udp("10.0.1.2:1000", "10.0.2.2:2000").
func udp(from, to string) packet {
	source, destination := netip.MustParseAddrPort(from), netip.MustParseAddrPort(to)
	datagram := &layers.UDP{SrcPort: layers.UDPPort(source.Port()), DstPort: layers.UDPPort(destination.Port())}
	p := ip(source.Addr(), destination.Addr(), layers.IPProtocolUDP, datagram)
	_ = datagram.SetNetworkLayerForChecksum(p.layers[0].(gopacket.NetworkLayer)) // it is one of IP
	p.text = "udp " + from + " > " + to
	return p
}

func ip(from, to netip.Addr, protocol layers.IPProtocol, above ...gopacket.SerializableLayer) packet {
	if from.Is4() {
		return packet{kind: layers.EthernetTypeIPv4, layers: append([]gopacket.SerializableLayer{
			&layers.IPv4{Version: 4, TTL: 64, Protocol: protocol, SrcIP: from.AsSlice(), DstIP: to.AsSlice()},
		}, above...)}
	}
	return packet{kind: layers.EthernetTypeIPv6, layers: append([]gopacket.SerializableLayer{
		&layers.IPv6{Version: 6, HopLimit: 64, NextHeader: protocol, SrcIP: from.AsSlice(), DstIP: to.AsSlice()},
	}, above...)}
}

// tcp is the first packet of a connection.
func tcp(from, to string) packet {
	source, destination := netip.MustParseAddrPort(from), netip.MustParseAddrPort(to)
	segment := &layers.TCP{SrcPort: layers.TCPPort(source.Port()), DstPort: layers.TCPPort(destination.Port()), SYN: true}
	p := ip(source.Addr(), destination.Addr(), layers.IPProtocolTCP, segment)
	_ = segment.SetNetworkLayerForChecksum(p.layers[0].(gopacket.NetworkLayer)) // it is one of IP
	p.text = "tcp " + from + " > " + to
	return p
}

// within puts a packet into the header of a tunnel between two addresses. More headers may follow
// the outer one, such as that of GRE.
func (p packet) within(from, to string, protocol layers.IPProtocol, more ...gopacket.SerializableLayer) packet {
	outer := ip(netip.MustParseAddr(from), netip.MustParseAddr(to), protocol, more...)
	if protocol == layers.IPProtocolUDP {
		_ = more[0].(*layers.UDP).SetNetworkLayerForChecksum(outer.layers[0].(gopacket.NetworkLayer)) // it is one of IP
	}
	outer.layers = append(outer.layers, p.layers...)
	outer.text = p.text + " from " + from
	return outer
}

// steeredTo puts a packet into an IPv6 packet to the first of these segments, with a routing header that
// has all of them (RFC 8754). The packet is one of IPv4.
func (p packet) steeredTo(from string, segments ...string) packet {
	const nextIPv4, routingType = 4, 4
	last := byte(len(segments) - 1)
	header := []byte{nextIPv4, byte(2 * len(segments)), routingType, last, last, 0, 0, 0}
	for _, one := range slices.Backward(segments) {
		header = append(header, netip.MustParseAddr(one).AsSlice()...)
	}
	return p.within(from, segments[0], layers.IPProtocolIPv6Routing, gopacket.Payload(header))
}

// discover is the first packet of a client of DHCP at a port.
func discover(port string) packet {
	broadcast := net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	datagram := &layers.UDP{SrcPort: 68, DstPort: 67}
	question := &layers.DHCPv4{
		Operation: layers.DHCPOpRequest, HardwareType: layers.LinkTypeEthernet, HardwareLen: 6, ClientHWAddr: hostMAC(port), Xid: 7,
		Options: layers.DHCPOptions{layers.NewDHCPOption(layers.DHCPOptMessageType, []byte{byte(layers.DHCPMsgTypeDiscover)})},
	}
	p := ip(netip.IPv4Unspecified(), netip.MustParseAddr("255.255.255.255"), layers.IPProtocolUDP, datagram, question)
	_ = datagram.SetNetworkLayerForChecksum(p.layers[0].(gopacket.NetworkLayer)) // it is one of IP
	p.text = "DHCP discover"
	return p.between(hostMAC(port), broadcast)
}

// frame makes the Ethernet header of a packet a part of it, as tunnels carry it.
func (p packet) frame() packet {
	p.layers = append([]gopacket.SerializableLayer{&layers.Ethernet{SrcMAC: p.from, DstMAC: p.to, EthernetType: p.kind}}, p.layers...)
	return p
}

// arp is a request of the test at a port, to everybody.
func arp(port string, address net.IP) packet {
	return arpOf(port, net.IPv4(10, 0, number(port), 2), address)
}

// arpOf is arp of another sender at the port.
func arpOf(port string, sender, address net.IP) packet {
	broadcast := net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	return packet{text: "arp " + address.String(), kind: layers.EthernetTypeARP, from: hostMAC(port), to: broadcast, layers: []gopacket.SerializableLayer{&layers.ARP{
		AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6, ProtAddressSize: 4, Operation: layers.ARPRequest,
		SourceHwAddress: hostMAC(port), SourceProtAddress: sender.To4(), DstHwAddress: make([]byte, 6), DstProtAddress: address.To4(),
	}}}
}

// show renders a frame without its own Ethernet header: "10.0.1.2 > 10.0.2.2 | udp 1000 > 2000 | #1".
// A wrong checksum is told at the end.
func show(frame []byte) string {
	p := gopacket.NewPacket(frame, layers.LayerTypeEthernet, gopacket.Default)
	var parts []string
	for i, layer := range p.Layers() {
		if i > 0 {
			parts = append(parts, showLayer(layer))
		}
		if _, ok := layer.(*layers.ARP); ok {
			break // the rest is padding
		}
		if ip, ok := layer.(*layers.IPv6); ok && ip.NextHeader == ethernetWithin {
			parts = append(parts, "ethernet", show(ip.Payload))
			break
		}
		// The other ports are arbitrary numbers, which mean no protocol above, except for DNS.
		if datagram, ok := layer.(*layers.UDP); ok && !isDecoded(datagram.DstPort) && datagram.NextLayerType() != layers.LayerTypeDNS {
			parts = append(parts, printable(datagram.Payload))
			break
		}
	}
	if err, wrong := p.VerifyChecksums(); err == nil && len(wrong) > 0 {
		parts = append(parts, fmt.Sprintf("wrong checksum of %v", wrong[0].Layer.LayerType()))
	}
	return strings.Join(parts, " | ")
}

// ethernetWithin is the next header of IPv6 for a frame (RFC 8986, 10.1). gopacket does not decode it.
const ethernetWithin layers.IPProtocol = 143

// isTunnel tells the ports of VXLAN and GTPU.
func isTunnel(port layers.UDPPort) bool { return port == 4789 || port == 2152 }

// isDecoded tells the ports whose payload is shown; 67 is DHCP.
func isDecoded(port layers.UDPPort) bool { return isTunnel(port) || port == 67 }

func showLayer(layer gopacket.Layer) string {
	switch l := layer.(type) {
	case *layers.Ethernet:
		return fmt.Sprintf("eth %v > %v", l.SrcMAC, l.DstMAC)
	case *layers.IPv4:
		return fmt.Sprintf("%v > %v", l.SrcIP, l.DstIP)
	case *layers.IPv6:
		return fmt.Sprintf("%v > %v", l.SrcIP, l.DstIP)
	case *layers.UDP:
		if isTunnel(l.DstPort) { // its source port is a hash
			return fmt.Sprintf("udp > %d", l.DstPort)
		}
		return fmt.Sprintf("udp %d > %d", l.SrcPort, l.DstPort)
	case *layers.DNS:
		text := fmt.Sprintf("dns %d", l.ID)
		for _, one := range l.Questions {
			text += " " + string(one.Name)
		}
		for _, one := range l.Answers {
			text += " is " + one.IP.String()
		}
		return text
	case *layers.DHCPv4:
		return fmt.Sprintf("dhcp of %v by %v", l.ClientHWAddr, l.RelayAgentIP)
	case *layers.GTPv1U:
		return fmt.Sprintf("gtpu %d", l.TEID)
	case *layers.VXLAN:
		return fmt.Sprintf("vxlan %d", l.VNI)
	case *layers.ARP:
		if l.Operation == layers.ARPRequest {
			return "arp who has " + net.IP(l.DstProtAddress).String()
		}
		return fmt.Sprintf("arp %v is at %v", net.IP(l.SourceProtAddress), net.HardwareAddr(l.SourceHwAddress))
	case *gopacket.Payload:
		return printable(*l)
	}
	return strings.ToLower(layer.LayerType().String())
}

// printable is the number of a packet, without the padding of short frames, or the sort of a message
// of IPFIX: its version is 10, and the number of its first set is 2 for templates (RFC 7011).
func printable(payload []byte) string {
	const headerSize, version, templates = 16, 10, 2
	if len(payload) > headerSize+2 && binary.BigEndian.Uint16(payload) == version {
		if binary.BigEndian.Uint16(payload[headerSize:]) == templates {
			return "ipfix templates"
		}
		return "ipfix flows"
	}
	text := strings.TrimRight(string(payload), "\x00")
	if !strings.HasPrefix(text, "#") {
		return "encrypted"
	}
	return text
}
