package packets

import "testing"

func TestRouteForwardsUntilItIsRemoved(t *testing.T) {
	l := start(t, "a", "b")
	there := udp("10.0.1.2:1000", "10.9.0.1:2000")
	there6 := udp("[fd00:1::2]:1000", "[fd09::1]:2000")

	l.declare(routed("a", "b"), `vppConfig: {routes: [
		{dstNetwork: 10.9.0.0/16, nextHopAddr: 10.0.2.2, outgoingInterface: b},
		{dstNetwork: 'fd09::/32', nextHopAddr: 'fd00:2::2', outgoingInterface: b}]}`)
	l.run(
		step{in: "a", packet: there, out: []string{"b: 10.0.1.2 > 10.9.0.1 | udp 1000 > 2000"}},
		step{in: "a", packet: there6, out: []string{"b: fd00:1::2 > fd09::1 | udp 1000 > 2000"}},
	)
	l.declare(routed("a", "b"))
	l.run(
		step{in: "a", packet: there, not: []string{"b"}},
		step{in: "a", packet: there6, not: []string{"b"}},
	)
}

func TestWeightedPathsShare(t *testing.T) {
	l := start(t, "a", "b", "c")
	l.declare(routed("a", "b", "c"), `vppConfig: {routes: [
		{dstNetwork: 10.9.0.0/16, nextHopAddr: 10.0.2.2, outgoingInterface: b, weight: 1},
		{dstNetwork: 10.9.0.0/16, nextHopAddr: 10.0.3.2, outgoingInterface: c, weight: 3}]}`)

	// A hash of the flow chooses one of four buckets, so the shares are those of the hash.
	light, heavy := l.flow("a", 400, "10.0.1.2", "10.9.0.1:2000", "b", "c")
	if light < 60 || light > 140 {
		t.Errorf("%d of 400 flows took the path of weight 1, and %d that of weight 3; expected 100 and 300", light, heavy)
	}
}

// A route leads into another table, and the route there to the neighbour.
func TestRouteLeadsIntoAnotherTable(t *testing.T) {
	l := start(t, "a", "b")
	p := udp("10.0.1.2:1000", "10.9.0.1:2000")
	const other = `vppConfig: {vrfs: [{id: 5}], routes: [{vrfId: 5, dstNetwork: 10.9.0.0/16, nextHopAddr: 10.0.2.2, outgoingInterface: b}]}`
	l.declare(routed("a", "b"), other, `vppConfig: {routes: [{type: INTER_VRF, dstNetwork: 10.9.0.0/16, viaVrfId: 5}]}`)
	l.run(step{in: "a", packet: p, out: []string{"b: 10.0.1.2 > 10.9.0.1 | udp 1000 > 2000"}})
	l.declare(routed("a", "b"), other)
	l.run(step{in: "a", packet: p, not: []string{"b"}})
}
