package core

import (
	"fmt"
	"maps"
	"slices"
)

// A Count is what VPP has counted at one place: packets and, for some counters, bytes.
type Count struct{ Packets, Bytes uint64 }

// A Node is a node of VPP's packet graph, with its counters on the main thread.
type Node struct {
	Name                             string
	Calls, Vectors, Suspends, Clocks uint64
}

// counted is the content of the stats segment that no other state has.
type counted struct {
	interfaces map[uint32]map[string]Count // by index and name of the counter
	nodes      []Node
	errors     map[string]uint64 // by node and reason: "ip4-input/ip4 ttl <= 1"
}

// combinedCounters and simpleCounters are the counters of interfaces in the order of VPP's
// directory.
func combinedCounters() []string {
	return []string{
		"rx", "rx-unicast", "rx-multicast", "rx-broadcast", "tx", "tx-unicast", "tx-multicast", "tx-broadcast",
	}
}

// simpleCounters are the names of the counters with one number per interface.
func simpleCounters() []string {
	return []string{"drops", "punt", "ip4", "ip6", "rx-no-buf", "rx-miss", "rx-error", "tx-error", "mpls"}
}

// Count adds to a counter of the interface with an index, such as "rx" or "drops". The
// last thread counts. Clients of the stats segment see it at once.
func (s *Server) Count(index uint32, counter string, n Count) error {
	if !slices.Contains(combinedCounters(), counter) && !slices.Contains(simpleCounters(), counter) {
		return fmt.Errorf("counter %q: expected one of %v or %v", counter, combinedCounters(), simpleCounters())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.vpp.Interface(index) == nil {
		return fmt.Errorf("counter %q: no interface has the index %d", counter, index)
	}
	all := s.vpp.counted.interfaces
	if all[index] == nil {
		all[index] = map[string]Count{}
	}
	was := all[index][counter]
	all[index][counter] = Count{was.Packets + n.Packets, was.Bytes + n.Bytes}
	return s.publish()
}

// SetNodes replaces the counters of all nodes, and the error counters by node and reason:
// "ip4-input/no buffer".
func (s *Server) SetNodes(nodes []Node, errors map[string]uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.vpp.counted.nodes, s.vpp.counted.errors = nodes, errors
	return s.publish()
}

// publish writes the present counters into the stats segment, if there is one. mu is held.
func (s *Server) publish() error {
	if s.segment == nil {
		return nil
	}
	return s.segment.write(s.vpp.entries())
}

// serveStats gives the segment to each client, with the counters of that moment.
func (s *Server) serveStats(of *segment) {
	defer of.file.Close()
	for {
		client, err := of.sock.AcceptUnix()
		if err != nil {
			return
		}
		s.mu.Lock()
		err = of.write(s.vpp.entries())
		s.mu.Unlock()
		if err != nil {
			s.o.Log.Error("simulated VPP: no counters", "err", err)
			client.Close()
			continue
		}
		of.give(client)
	}
}

// entries returns the content of the stats segment.
func (v *VPP) entries() []entryOf {
	threads := int(v.Options.Workers) + 1
	out := []entryOf{
		{name: "/sys/heartbeat", value: 1}, {name: "/sys/last_stats_clear"}, {name: "/sys/boottime", value: 1},
		{name: "/sys/num_worker_threads", value: uint64(v.Options.Workers)}, {empty: true}, {name: "/sys/vector_rate", gauge: true},
	}
	out = append(out, v.interfaceEntries(threads)...)
	out = append(out, v.nodeEntries(threads)...)
	out = append(out, v.errorEntries(threads, uint32(len(out)))...)
	for name, value := range map[string]uint64{"cached": 10, "used": 100, "available": 16000} {
		out = append(out, entryOf{name: "/buffer-pools/default-numa-0/" + name, value: value, gauge: true})
	}
	// of each heap: total, used, free, mapped, allocated at most, free chunks, releasable
	for _, heap := range []string{"stat segment", "main heap"} {
		at := uint32(len(out))
		out = append(out, entryOf{name: "/mem/" + heap, simple: [][]uint64{{1 << 30, 100 << 20, 924 << 20, 0, 200 << 20, 5, 1 << 20}}})
		for i, name := range []string{"total", "used", "free"} {
			out = append(out, entryOf{name: "/mem/" + heap + "/" + name, link: &[2]uint32{at, uint32(i)}})
		}
	}
	return out
}

// interfaceEntries returns the counters of all interfaces, one vector per thread.
func (v *VPP) interfaceEntries(threads int) (out []entryOf) {
	names := make([]string, v.NextIndex())
	for _, i := range v.Interfaces() {
		names[i.Index] = i.Name
	}
	out = append(out, entryOf{name: "/if/names", names: names})
	for _, counter := range combinedCounters() {
		e := entryOf{name: "/if/" + counter, combined: make([][][2]uint64, threads)}
		for t := range threads {
			e.combined[t] = make([][2]uint64, len(names))
		}
		for index, counts := range v.counted.interfaces {
			e.combined[threads-1][index] = [2]uint64{counts[counter].Packets, counts[counter].Bytes}
		}
		out = append(out, e)
	}
	for _, counter := range simpleCounters() {
		e := entryOf{name: "/if/" + counter, simple: make([][]uint64, threads)}
		for t := range threads {
			e.simple[t] = make([]uint64, len(names))
		}
		for index, counts := range v.counted.interfaces {
			e.simple[threads-1][index] = counts[counter].Packets
		}
		out = append(out, e)
	}
	return out
}

// nodeEntries returns the counters of nodes.
func (v *VPP) nodeEntries(threads int) (out []entryOf) {
	nodes := v.counted.nodes
	names := make([]string, len(nodes))
	byName := map[string]func(Node) uint64{
		"clocks":   func(n Node) uint64 { return n.Clocks },
		"vectors":  func(n Node) uint64 { return n.Vectors },
		"calls":    func(n Node) uint64 { return n.Calls },
		"suspends": func(n Node) uint64 { return n.Suspends },
	}
	for i, n := range nodes {
		names[i] = n.Name
	}
	out = append(out, entryOf{name: "/sys/node/names", names: names})
	for _, counter := range []string{"clocks", "vectors", "calls", "suspends"} {
		e := entryOf{name: "/sys/node/" + counter, simple: make([][]uint64, threads)}
		for t := range threads {
			e.simple[t] = make([]uint64, len(nodes))
		}
		for i, n := range nodes {
			e.simple[0][i] = byName[counter](n)
		}
		out = append(out, e)
	}
	return out
}

// errorEntries returns the entry of all error counters, which gets the index at, and the
// links to each of them.
func (v *VPP) errorEntries(threads int, at uint32) []entryOf {
	names := slices.Sorted(maps.Keys(v.counted.errors))
	all := entryOf{name: allErrors, simple: make([][]uint64, threads)}
	for t := range threads {
		all.simple[t] = make([]uint64, len(names))
	}
	out := []entryOf{all}
	for i, name := range names {
		all.simple[0][i] = v.counted.errors[name]
		out = append(out, entryOf{name: "/err/" + name, link: &[2]uint32{at, uint32(i)}})
	}
	return out
}
