// Package packets is test code: it sends packets through a real VPP, and through namespaces of
// Linux, and checks what comes out.
// Each test declares values as an operator writes them, in YAML. A dump says what VPP believes;
// these tests say what it does.
//
//	l := start(t, "a", "b")
//	l.declare(routed, `vppConfig: {routes: [{dstNetwork: 10.9.0.0/16, nextHopAddr: 10.0.2.2, outgoingInterface: b}]}`)
//	l.run(step{in: "a", packet: udp("10.0.1.2:1000", "10.9.0.1:2000"), out: []string{"b: 10.0.1.2 > 10.9.0.1 | udp 1000 > 2000"}})
//
// A port is a pair of links: VPP has one end, as an AF_PACKET interface, and the test has the
// other one, as a raw socket. Nothing depends on ARP, because the neighbours are declared. So each
// packet is sent once. Where nothing may arrive, a later packet must: see lab.fence.
//
// A pair is two VPPs with a wire between them, on which the test sees everything.
//
// The tests need VPP=/path/of/vpp; `make test-packets` runs them. Those of Linux need none, so
// `make test` runs them, too. They are all in files of tests.
package packets
