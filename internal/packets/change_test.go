package packets

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/keyplane/keyplane/internal/testkit"
)

// A stream of packets is sent while the paths of its route change a hundred times. At least one
// path stays, or the new one is there before the old one leaves. No packet may be lost.
func TestChangedPathLosesNothing(t *testing.T) {
	for name, routes := range map[string][2]string{
		"the weight changes": {
			`{dstNetwork: 10.9.0.0/16, nextHopAddr: 10.0.2.2, outgoingInterface: b, weight: 1}`,
			`{dstNetwork: 10.9.0.0/16, nextHopAddr: 10.0.2.2, outgoingInterface: b, weight: 5}`,
		},
		"the weights of two paths change": {
			`{dstNetwork: 10.9.0.0/16, nextHopAddr: 10.0.2.2, outgoingInterface: b, weight: 1},
			 {dstNetwork: 10.9.0.0/16, nextHopAddr: 10.0.3.2, outgoingInterface: c, weight: 3}`,
			`{dstNetwork: 10.9.0.0/16, nextHopAddr: 10.0.2.2, outgoingInterface: b, weight: 3},
			 {dstNetwork: 10.9.0.0/16, nextHopAddr: 10.0.3.2, outgoingInterface: c, weight: 1}`,
		},
		"a second path comes and goes": {
			`{dstNetwork: 10.9.0.0/16, nextHopAddr: 10.0.2.2, outgoingInterface: b}`,
			`{dstNetwork: 10.9.0.0/16, nextHopAddr: 10.0.2.2, outgoingInterface: b},
			 {dstNetwork: 10.9.0.0/16, nextHopAddr: 10.0.3.2, outgoingInterface: c}`,
		},
		"the next hop moves to another interface": {
			`{dstNetwork: 10.9.0.0/16, nextHopAddr: 10.0.2.2, outgoingInterface: b}`,
			`{dstNetwork: 10.9.0.0/16, nextHopAddr: 10.0.3.2, outgoingInterface: c}`,
		},
		"the next hop is looked up, and moves": {
			`{dstNetwork: 10.9.0.0/16, nextHopAddr: 10.0.2.2}`,
			`{dstNetwork: 10.9.0.0/16, nextHopAddr: 10.0.3.2}`,
		},
		"the next hop becomes one of IPv6": {
			`{dstNetwork: 10.9.0.0/16, nextHopAddr: 10.0.2.2, outgoingInterface: b}`,
			`{dstNetwork: 10.9.0.0/16, nextHopAddr: "fd00:3::2", outgoingInterface: c}`,
		},
		"one of two next hops moves": {
			`{dstNetwork: 10.9.0.0/16, nextHopAddr: 10.0.2.2, outgoingInterface: b},
			 {dstNetwork: 10.9.0.0/16, nextHopAddr: 10.0.3.2, outgoingInterface: c}`,
			`{dstNetwork: 10.9.0.0/16, nextHopAddr: 10.0.2.2, outgoingInterface: b},
			 {dstNetwork: 10.9.0.0/16, nextHopAddr: 10.0.3.2}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := start(t, "a", "b", "c")
			ways := [2]string{`vppConfig: {routes: [` + routes[0] + `]}`, `vppConfig: {routes: [` + routes[1] + `]}`}
			l.losesNothing(ways)
		})
	}
}

// A policy is replaced by one of another number a hundred times. No route leads to the destination,
// so a packet that no policy diverts is lost.
func TestReplacedPolicyLosesNothing(t *testing.T) {
	l := start(t, "a", "b", "c")
	const list = `
vppConfig:
  acls: [{name: all, rules: [{action: PERMIT, ipRule: {ip: {destinationNetwork: 10.9.0.0/16}}}]}]`
	policies := [2]string{
		list + `
  abfs: [{index: 1, aclName: all, attachedInterfaces: [{inputInterface: a}], forwardingPaths: [{nextHopIp: 10.0.2.2, interfaceName: b}]}]`,
		list + `
  abfs: [{index: 2, aclName: all, attachedInterfaces: [{inputInterface: a}], forwardingPaths: [{nextHopIp: 10.0.3.2, interfaceName: c}]}]`,
	}
	l.losesNothing(policies)
}

// losesNothing sends a stream from a to 10.9.0.1, which each of two configurations leads to b or c.
// They replace each other a hundred times.
func (l *lab) losesNothing(ways [2]string) {
	l.Helper()
	l.declare(routed("a", "b", "c"), ways[0])
	s := l.stream("a", udp("10.0.1.2:1000", "10.9.0.1:2000"), "b", "c")
	for change := 1; change <= 100; change++ {
		l.declare(routed("a", "b", "c"), ways[change%2])
		s.flows()
	}
	if sent, lost := s.end(); lost > 0 {
		l.Errorf("%d of %d packets were lost; expected none", lost, sent)
	}
}

// A stream sends packets until its end.
type stream struct {
	l     *lab
	stop  chan struct{}
	ended chan struct{}

	progress chan struct{} // a packet has arrived
	// The stream has these until it has ended.
	first, last int
	came        map[int]bool
}

// window is how many packets may be under way. It is smaller than the ring of a port, so no
// packet is lost because VPP is slow.
const window = 32

// stream sends packets into a port; they come out of these two.
func (l *lab) stream(in string, p packet, one, other string) *stream {
	s := &stream{l: l, stop: make(chan struct{}), ended: make(chan struct{}), progress: make(chan struct{}), first: l.sent + 1, last: l.sent, came: map[int]bool{}}
	go func() {
		defer close(s.ended)
		// If all packets under way are lost, another one shows when VPP forwards again. There are
		// so few of them that they do not fill the ring while VPP gets no time.
		again := time.NewTicker(100 * time.Millisecond)
		defer again.Stop()
		newest := l.sent
		for {
			if l.sent-newest < window {
				l.send(in, p)
			}
			select {
			case <-s.stop:
				s.last = l.sent
				return
			case text := <-l.ports[one].got:
				newest = max(newest, s.arrived(text))
			case text := <-l.ports[other].got:
				newest = max(newest, s.arrived(text))
			case <-again.C:
				l.send(in, p)
			}
		}
	}()
	return s
}

// arrived notes a packet, and returns its number; 0: it is none of ours.
func (s *stream) arrived(text string) int {
	_, mark, _ := strings.Cut(text, " | #")
	n, err := strconv.Atoi(mark)
	if err != nil || n < s.first {
		return 0
	}
	s.came[n] = true
	select {
	case s.progress <- struct{}{}:
	default:
	}
	return n
}

// flows waits until a packet arrives that had not yet arrived.
func (s *stream) flows() {
	s.l.Helper()
	select {
	case <-s.progress:
	case <-time.After(testkit.Patience):
		close(s.stop)
		<-s.ended
		s.l.Fatal("no packet arrives any more")
	}
}

// end stops the stream and returns how many packets were sent, and how many of them did not arrive.
func (s *stream) end() (sent, lost int) {
	s.l.Helper()
	close(s.stop)
	<-s.ended
	for _, out := range []string{"b", "c"} {
		s.l.fence("a", out)
		for _, text := range s.l.ports[out].seen {
			s.arrived(text)
		}
	}
	sent = s.last - s.first + 1
	return sent, sent - len(s.came)
}
