package packets

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/keyplane/keyplane/scheduler"
)

// toB routes 10.9.0.0/16 to the neighbour at b.
const toB = `vppConfig: {routes: [{dstNetwork: 10.9.0.0/16, nextHopAddr: 10.0.2.2, outgoingInterface: b}]}`

func TestACLPermitsAndDenies(t *testing.T) {
	l := start(t, "a", "b")
	l.declare(routed("a", "b"), toB, `
vppConfig:
  acls:
    - name: only-web
      rules:
        - {action: PERMIT, ipRule: {ip: {sourceNetwork: 10.0.1.0/24, destinationNetwork: 10.9.0.0/16}, udp: {destinationPortRange: {lowerPort: 80, upperPort: 81}, sourcePortRange: {upperPort: 65535}}}}
        - {action: DENY, ipRule: {ip: {destinationNetwork: 10.9.0.0/16}}}
      interfaces: {ingress: [a]}`)
	l.run(
		step{in: "a", packet: udp("10.0.1.2:1000", "10.9.0.1:80"), out: []string{"b: 10.0.1.2 > 10.9.0.1 | udp 1000 > 80"}},
		step{in: "a", packet: udp("10.0.1.2:1000", "10.9.0.1:82"), not: []string{"b"}},
		step{in: "a", packet: udp("10.7.1.2:1000", "10.9.0.1:80"), not: []string{"b"}},
	)
	l.declare(routed("a", "b"), toB)
	l.run(step{in: "a", packet: udp("10.0.1.2:1000", "10.9.0.1:82"), out: []string{"b: 10.0.1.2 > 10.9.0.1 | udp 1000 > 82"}})
}

// A list is replaced by one of another name, a hundred times, while packets arrive that both of
// them deny. VPP lets all through an interface without a list, so it must never have none.
func TestReplacedListLetsNothingThrough(t *testing.T) {
	l := start(t, "a", "b")
	list := func(name string) string {
		return `
vppConfig:
  acls:
    - name: ` + name + `
      rules: [{action: PERMIT, ipRule: {ip: {destinationNetwork: 10.9.5.0/24}}}]
      interfaces: {ingress: [a]}`
	}
	names := [2]string{"one", "other"}
	l.declare(routed("a", "b"), toB, list(names[0]))
	tick := time.NewTicker(100 * time.Microsecond) // several packets for each change
	defer tick.Stop()
	first := l.sent + 1
	for change := 1; change <= 100; change++ {
		txn := scheduler.Txn{Changes: append(l.values(list(names[change%2])), scheduler.Unwant("config/vpp/acls/v2/acl/"+names[(change+1)%2]))}
		done := make(chan error, 1)
		go func() {
			_, err := l.sched.Commit(l.Context(), txn)
			done <- err
		}()
		for changing := true; changing; {
			select {
			case err := <-done:
				if changing = false; err != nil {
					t.Fatal(err)
				}
			case <-tick.C:
				l.send("a", udp("10.0.1.2:1000", "10.9.0.1:82"))
			}
		}
	}
	l.fence("a", "b")
	through := slices.DeleteFunc(l.ports["b"].seen, func(text string) bool { return !strings.Contains(text, "udp 1000 > 82") })
	if len(through) > 0 {
		t.Errorf("%d of %d packets that the lists deny came through; expected none", len(through), l.sent-first+1)
	}
	l.run(step{in: "a", packet: udp("10.0.1.2:1000", "10.9.5.1:82"), out: []string{"b: 10.0.1.2 > 10.9.5.1 | udp 1000 > 82"}})
}

// What comes in at b is denied, unless it answers something that went out there.
func TestACLReflects(t *testing.T) {
	l := start(t, "a", "b")
	l.declare(routed("a", "b"), toB, `
vppConfig:
  acls:
    - {name: out, rules: [{action: REFLECT, ipRule: {ip: {sourceNetwork: 10.0.1.0/24}}}], interfaces: {egress: [b]}}
    - {name: in, rules: [{action: DENY, ipRule: {ip: {destinationNetwork: 10.0.1.0/24}}}], interfaces: {ingress: [b]}}`)
	answer := udp("10.9.0.1:2000", "10.0.1.2:1000")
	l.run(
		step{in: "b", packet: answer, not: []string{"a"}},
		step{in: "a", packet: udp("10.0.1.2:1000", "10.9.0.1:2000"), out: []string{"b: 10.0.1.2 > 10.9.0.1 | udp 1000 > 2000"}},
		step{in: "b", packet: answer, out: []string{"a: 10.9.0.1 > 10.0.1.2 | udp 2000 > 1000"}},
		step{in: "b", packet: udp("10.9.0.1:2001", "10.0.1.2:1000"), not: []string{"a"}},
	)
}

// The route leads to b; what the list permits is diverted to c.
func TestABFDiverts(t *testing.T) {
	l := start(t, "a", "b", "c")
	l.declare(routed("a", "b", "c"), toB, `
vppConfig:
  acls:
    - {name: diverted, rules: [{action: PERMIT, ipRule: {ip: {destinationNetwork: 10.9.5.0/24}}}]}
  abfs:
    - {index: 1, aclName: diverted, attachedInterfaces: [{inputInterface: a, priority: 10}], forwardingPaths: [{nextHopIp: 10.0.3.2, interfaceName: c, weight: 1}]}`)
	l.run(
		step{in: "a", packet: udp("10.0.1.2:1000", "10.9.0.1:2000"), out: []string{"b: 10.0.1.2 > 10.9.0.1 | udp 1000 > 2000"}, not: []string{"c"}},
		step{in: "a", packet: udp("10.0.1.2:1000", "10.9.5.1:2000"), out: []string{"c: 10.0.1.2 > 10.9.5.1 | udp 1000 > 2000"}, not: []string{"b"}},
	)
}

// A MACIP list permits one address of one host.
func TestMACIPListPermitsAndDenies(t *testing.T) {
	l := start(t, "a", "b")
	l.declare(routed("a", "b"), toB, `
vppConfig:
  acls:
    - name: host
      rules: [{action: PERMIT, macipRule: {sourceAddress: 10.0.1.2, sourceAddressPrefix: 32, sourceMacAddress: '`+hostMAC("a").String()+`', sourceMacAddressMask: 'ff:ff:ff:ff:ff:ff'}}]
      interfaces: {ingress: [a]}`)
	stranger := udp("10.0.1.2:1000", "10.9.0.1:2000").between(hostMAC("c"), vppMAC("a"))
	l.run(
		step{in: "a", packet: udp("10.0.1.2:1000", "10.9.0.1:2000"), out: []string{"b: 10.0.1.2 > 10.9.0.1 | udp 1000 > 2000"}},
		step{in: "a", packet: udp("10.0.1.3:1000", "10.9.0.1:2000"), not: []string{"b"}},
		step{in: "a", packet: stranger, not: []string{"b"}},
	)
	l.declare(routed("a", "b"), toB)
	l.run(step{in: "a", packet: stranger, out: []string{"b: 10.0.1.2 > 10.9.0.1 | udp 1000 > 2000"}})
}
