package packets

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/gopacket/gopacket/layers"
)

// VPP asks its server for a name that it does not know, answers its client, and then knows the
// name. Without the cache it does neither.
func TestDNSCacheAsksItsServerOnce(t *testing.T) {
	l := start(t, "a", "b")
	l.declare(routed("a", "b"), `vppConfig: {DNSCache: {upstreamDnsServers: [10.0.2.2]}}`)
	const request = "10.0.2.1 > 10.0.2.2 | udp 53053 > 53 | dns %d example.com"
	isRequest := func(got string) bool { return strings.HasPrefix(got, "10.0.2.1 > 10.0.2.2 | udp 53053 > 53 | dns ") }

	l.put("a", dns("10.0.1.2:53", "10.0.1.1:53", 7, ""))
	var id uint16
	if _, err := fmt.Sscanf(l.await("b", "a request to the server", isRequest), request, &id); err != nil {
		t.Fatal(err)
	}
	l.put("b", dns("10.0.2.2:53", "10.0.2.1:53053", id, "10.7.7.7"))
	l.await("a", "the answer", answers(7))

	l.fence("a", "b")
	l.ports["b"].seen = nil // VPP asks again when an answer does not come at once
	l.put("a", dns("10.0.1.2:53", "10.0.1.1:53", 8, ""))
	l.await("a", "the second answer", answers(8))

	l.declare(routed("a", "b"))
	l.put("a", dns("10.0.1.2:53", "10.0.1.1:53", 9, ""))
	l.fence("a", "b")
	if slices.ContainsFunc(l.ports["b"].seen, isRequest) {
		t.Error("VPP asks a server for a name that it knows, or without the cache")
	}
	if slices.ContainsFunc(l.ports["a"].seen, answers(9)) {
		t.Error("VPP answers without the cache")
	}
}

// answers recognizes an answer to the client. VPP 25.10 repeats the name with a zero byte behind it.
func answers(id uint16) func(got string) bool {
	return func(got string) bool {
		return strings.HasPrefix(got, fmt.Sprintf("10.0.1.1 > 10.0.1.2 | udp 53 > 53 | dns %d example.com", id)) && strings.HasSuffix(got, " is 10.7.7.7")
	}
}

// dns asks for example.com, or answers with its address.
func dns(from, to string, id uint16, address string) packet {
	name := []byte("example.com")
	message := &layers.DNS{ID: id, RD: true, Questions: []layers.DNSQuestion{{Name: name, Type: layers.DNSTypeA, Class: layers.DNSClassIN}}}
	if address != "" {
		message.QR, message.RA = true, true
		message.Answers = []layers.DNSResourceRecord{{Name: name, Type: layers.DNSTypeA, Class: layers.DNSClassIN, TTL: 600, IP: net.ParseIP(address)}}
	}
	p := udp(from, to)
	p.layers = append(p.layers, message)
	return p
}
