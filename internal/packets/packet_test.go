package packets

import (
	"fmt"
	"net"
	"net/netip"
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

// frame makes the Ethernet header of a packet a part of it, as tunnels carry it.
func (p packet) frame() packet {
	p.layers = append([]gopacket.SerializableLayer{&layers.Ethernet{SrcMAC: p.from, DstMAC: p.to, EthernetType: p.kind}}, p.layers...)
	return p
}

// arp is a request of the test at a port, to everybody.
func arp(port string, address net.IP) packet {
	broadcast := net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	return packet{text: "arp " + address.String(), kind: layers.EthernetTypeARP, from: hostMAC(port), to: broadcast, layers: []gopacket.SerializableLayer{&layers.ARP{
		AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6, ProtAddressSize: 4, Operation: layers.ARPRequest,
		SourceHwAddress: hostMAC(port), SourceProtAddress: []byte{10, 0, number(port), 2}, DstHwAddress: make([]byte, 6), DstProtAddress: address.To4(),
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
		// The ports are arbitrary numbers, which mean no protocol above, except for VXLAN and DNS.
		if datagram, ok := layer.(*layers.UDP); ok && datagram.DstPort != 4789 && datagram.NextLayerType() != layers.LayerTypeDNS {
			parts = append(parts, printable(datagram.Payload))
			break
		}
	}
	if err, wrong := p.VerifyChecksums(); err == nil && len(wrong) > 0 {
		parts = append(parts, fmt.Sprintf("wrong checksum of %v", wrong[0].Layer.LayerType()))
	}
	return strings.Join(parts, " | ")
}

func showLayer(layer gopacket.Layer) string {
	switch l := layer.(type) {
	case *layers.Ethernet:
		return fmt.Sprintf("eth %v > %v", l.SrcMAC, l.DstMAC)
	case *layers.IPv4:
		return fmt.Sprintf("%v > %v", l.SrcIP, l.DstIP)
	case *layers.IPv6:
		return fmt.Sprintf("%v > %v", l.SrcIP, l.DstIP)
	case *layers.UDP:
		if l.DstPort == 4789 { // the source port of VXLAN is a hash
			return "udp > 4789"
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

// printable is the number of a packet, without the padding of short frames.
func printable(payload []byte) string {
	text := strings.TrimRight(string(payload), "\x00")
	if !strings.HasPrefix(text, "#") {
		return "encrypted"
	}
	return text
}
