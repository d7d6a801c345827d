package main

import (
	"time"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l2"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l3"
	"github.com/keyplane/keyplane/scheduler"
)

const (
	configured = scheduler.Configured
	pending    = scheduler.Pending
)

// scenarios lists all scenarios, in the order in which "all" plays them.
func scenarios() []scenario {
	return []scenario{afPacket(), bridgeDomain(), recreate(), retry(), revert(), unnumbered(), drift(), complete(), lost()}
}

// loop returns a loopback with addresses.
func loop(name string, addresses ...string) *interfaces.Interface {
	return &interfaces.Interface{Name: name, Type: interfaces.Interface_SOFTWARE_LOOPBACK, Enabled: true, IpAddresses: addresses}
}

// memif1 returns a memif; a new ID needs a new interface.
func memif1(id uint32) *interfaces.Interface {
	return &interfaces.Interface{
		Name: "memif1", Type: interfaces.Interface_MEMIF, Enabled: true,
		Link: &interfaces.Interface_Memif{Memif: &interfaces.MemifLink{Id: id}},
	}
}

// afPacket shows an observed value: Linux reports its links, and the scheduler reacts.
func afPacket() scenario {
	afp1 := &interfaces.Interface{
		Name: "afp1", Type: interfaces.Interface_AF_PACKET, Enabled: true,
		Link: &interfaces.Interface_Afpacket{Afpacket: &interfaces.AfpacketLink{HostIfName: "eth0"}},
	}
	key := interfaceKey("afp1")
	return scenario{name: "af-packet", about: "an interface on top of one of Linux, which comes and goes by itself", steps: []step{
		declare("afp1 uses eth0, which Linux does not have", afp1),
		host("Linux has eth0 now", "eth0", true, key, configured),
		host("eth0 is unplugged", "eth0", false, key, pending),
		host("eth0 is back", "eth0", true, key, configured),
	}}
}

// bridgeDomain shows derived values, of which one is pending while its base is configured.
func bridgeDomain() scenario {
	bd1 := &l2.BridgeDomain{Name: "bd1", Learn: true, Interfaces: []*l2.BridgeDomain_Interface{{Name: "loop1"}, {Name: "memif1"}}}
	entry := &l2.FIBEntry{PhysAddress: "02:00:00:00:00:01", BridgeDomain: "bd1", Action: l2.FIBEntry_FORWARD, OutgoingInterface: "memif1"}
	aging := &l2.BridgeDomain{Name: "bd1", Learn: true, MacAge: 5, Interfaces: bd1.Interfaces}
	return scenario{name: "bridge-domain", about: "a bridge domain, one of whose interfaces comes late", steps: []step{
		declare("a FIB entry, its bridge domain, and one of the two interfaces", entry, bd1, loop("loop1")),
		declare("the other interface", memif1(1)),
		declare("learned addresses are to age, which disturbs nobody", aging),
		withdraw("that interface leaves", interfaceKey("memif1")),
	}}
}

// recreate shows that the dependents of a recreated value are deleted first.
func recreate() scenario {
	route := &l3.Route{DstNetwork: "10.2.0.0/16", OutgoingInterface: "memif1"}
	up := memif1(1)
	up.Mtu = 9000
	return scenario{name: "recreate", about: "a change that VPP cannot make in place, under a route", steps: []step{
		declare("a memif and a route by it", memif1(1), route),
		declare("another MTU, in place", up),
		declare("another memif id: anew, and the route with it", memif1(2)),
	}}
}

// retry shows the back-off of a failed operation, while a dependent is pending.
func retry() scenario {
	key := interfaceKey("loop1")
	again := scheduler.Txn{Retry: scheduler.RetryPolicy{Period: 100 * time.Millisecond}}
	bd1 := &l2.BridgeDomain{Name: "bd1", Interfaces: []*l2.BridgeDomain_Interface{{Name: "loop1"}}}
	return scenario{name: "retry", about: "an operation that fails twice, and what waits for it", steps: []step{
		failNext(key, 2),
		declareAs("an interface that VPP refuses, and a bridge domain with it", again, loop("loop1"), bd1),
		later("soon, and then after twice that", key, configured),
	}}
}

// revert shows a transaction that is undone because one of its operations failed.
func revert() scenario {
	bad := &l2.BridgeDomain{Name: "bd1", Learn: true}
	faster := loop("loop1", "10.0.0.1/24")
	faster.Mtu = 9000
	whole := scheduler.Txn{Revert: true}
	return scenario{name: "revert", about: "a transaction that is done as a whole or not at all", steps: []step{
		declare("what stands before", loop("loop1", "10.0.0.1/24")),
		failNext(bridgeDomainKey("bd1"), 1),
		declareAs("three changes, the last of which fails", whole, faster, memif1(1), bad),
		declareAs("once more, and all goes well", whole, faster, memif1(1), bad),
	}}
}

// unnumbered shows a dependency that any of several keys can meet.
func unnumbered() scenario {
	borrower := loop("loop2")
	borrower.Unnumbered = &interfaces.Interface_Unnumbered{InterfaceWithIp: "loop1"}
	return scenario{name: "unnumbered", about: "an interface that uses any address of another", steps: []step{
		declare("loop2 uses the addresses of loop1, which has none", borrower, loop("loop1")),
		declare("loop1 gets two", loop("loop1", "10.0.0.1/24", "10.0.0.2/24")),
		declare("loop1 loses one: the other will do", loop("loop1", "10.0.0.2/24")),
		declare("loop1 loses the last one", loop("loop1")),
	}}
}

// drift shows an item that somebody removes, which the scheduler finds when it reads VPP back.
func drift() scenario {
	route := &l3.Route{DstNetwork: "10.2.0.0/16", OutgoingInterface: "loop1"}
	return scenario{name: "drift", about: "an item that somebody removes behind the scheduler's back", steps: []step{
		declare("an interface and a route by it", loop("loop1"), route),
		vanish(interfaceKey("loop1")),
		resync("the interface was removed; a resync finds that, and the route with it is made anew"),
		resync("another resync finds nothing to do"),
	}}
}

// complete shows a transaction with the complete desired state, as a source has when it was listed.
func complete() scenario {
	route := func(network string) *l3.Route { return &l3.Route{DstNetwork: network, OutgoingInterface: "loop1"} }
	return scenario{name: "replace", about: "a transaction that says all that is wanted", steps: []step{
		declare("an interface and two routes by it", loop("loop1"), route("10.2.0.0/16"), route("10.3.0.0/16")),
		replace("all that is wanted now: the same interface, one of the routes, and a new one", loop("loop1"), route("10.3.0.0/16"), route("10.4.0.0/16")),
	}}
}

// lost shows a connection that breaks, with and without the loss of the content.
func lost() scenario {
	route := &l3.Route{DstNetwork: "10.2.0.0/16", OutgoingInterface: "loop1"}
	key := models.For[*l3.Route]().KeyOf("if/loop1/vrf/0/dst/10.2.0.0/16")
	return scenario{name: "lost", about: "a southbound that is reached by a connection, which breaks", dials: true, steps: []step{
		declare("VPP has not been started yet", loop("loop1"), route),
		connected("VPP is there", key, configured),
		cut("the connection breaks", false, key, pending),
		connected("it stands again, and so does everything else", key, configured),
		cut("VPP dies", true, key, pending),
		connected("VPP has started again, with nothing", key, configured),
	}}
}
