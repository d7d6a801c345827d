package packets

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/keyplane/keyplane/internal/testkit"
)

// A step sends a packet and says what comes out.
type step struct {
	in     string // the port
	packet packet
	out    []string // each "PORT: TEXT", with the text of show without the number
	not    []string // ports at which nothing of the packet may arrive
}

func (l *lab) run(steps ...step) {
	l.Helper()
	for _, s := range steps {
		mark := l.send(s.in, s.packet)
		for _, expected := range s.out {
			port, text, _ := strings.Cut(expected, ": ")
			l.expect(port, text+" | "+mark)
		}
		for _, port := range s.not {
			l.fence(s.in, port)
			if at := slices.IndexFunc(l.ports[port].seen, func(text string) bool { return strings.HasSuffix(text, " | "+mark) }); at >= 0 {
				l.Fatalf("%v into %s came out of %s: %s; it must not", s.packet, s.in, port, l.ports[port].seen[at])
			}
		}
	}
}

// send sends a packet into a port and returns its number, which is its payload: "#1".
func (l *lab) send(in string, p packet) (mark string) {
	l.Helper()
	l.sent++
	mark = fmt.Sprintf("#%d", l.sent)
	p.layers = append(slices.Clone(p.layers), gopacket.Payload(mark))
	l.put(in, p)
	return mark
}

// put sends a packet as it is.
func (l *lab) put(in string, p packet) {
	l.Helper()
	ethernet := &layers.Ethernet{SrcMAC: hostMAC(in), DstMAC: vppMAC(in), EthernetType: p.kind}
	if p.from != nil {
		ethernet.SrcMAC, ethernet.DstMAC = p.from, p.to
	}
	buffer := gopacket.NewSerializeBuffer()
	all := append([]gopacket.SerializableLayer{ethernet}, p.layers...)
	if err := gopacket.SerializeLayers(buffer, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, all...); err != nil {
		l.Fatal(err)
	}
	if _, err := l.ports[in].file.Write(buffer.Bytes()); err != nil {
		l.Fatal(err)
	}
}

// expect waits for a packet with this text.
func (l *lab) expect(port, text string) {
	l.Helper()
	l.await(port, text, func(got string) bool { return got == text })
}

// await waits for a packet that fits, and takes it.
func (l *lab) await(port, what string, fits func(got string) bool) string {
	l.Helper()
	p, late := l.ports[port], time.After(testkit.Patience)
	for {
		if i := slices.IndexFunc(p.seen, fits); i >= 0 {
			got := p.seen[i]
			p.seen = slices.Delete(p.seen, i, i+1)
			return got
		}
		select {
		case got := <-p.got:
			p.seen = append(p.seen, got)
		case <-late:
			l.Fatalf("%s did not come out of %s.\n%s", what, port, l.everything())
		}
	}
}

// everything tells what has come out of all ports and was not expected.
func (l *lab) everything() (text string) {
	for name, p := range l.ports {
		for len(p.got) > 0 {
			p.seen = append(p.seen, <-p.got)
		}
		for _, one := range p.seen {
			text += name + ": " + one + "\n"
		}
	}
	return "What came out:\n" + text
}

// fence returns when everything that went into a port before has come out, or never will. VPP
// has one thread. It takes the packets of a port in order, so an answer at in shows that it has
// taken them. The answer may overtake them on their way to out, but one to a later question
// does not.
func (l *lab) fence(in, out string) {
	l.Helper()
	passes := l.passes
	if passes == nil {
		passes = func(_, out string) { l.answers(out) }
	}
	passes(in, in)
	passes(in, out)
}

// answers asks VPP by ARP for its address at a port, and waits for the answer.
func (l *lab) answers(port string) {
	l.Helper()
	l.put(port, arp(port, net.IPv4(10, 0, number(port), 1)))
	l.expect(port, fmt.Sprintf("arp 10.0.%d.1 is at %v", number(port), vppMAC(port)))
}

// flow sends n packets of different UDP ports, and returns how many came out of each of two
// ports. All of them must come out.
func (l *lab) flow(in string, n int, from, to, one, other string) (ones, others int) {
	l.Helper()
	late := time.After(testkit.Patience)
	for i := range n {
		ending := " | " + l.send(in, udp(fmt.Sprintf("%s:%d", from, 10000+i), to))
		for came := false; !came; {
			select {
			case got := <-l.ports[one].got:
				if came = strings.HasSuffix(got, ending); came {
					ones++
				}
			case got := <-l.ports[other].got:
				if came = strings.HasSuffix(got, ending); came {
					others++
				}
			case <-late:
				l.Fatalf("the packet%s came out of neither %s nor %s", ending, one, other)
			}
		}
	}
	return ones, others
}
