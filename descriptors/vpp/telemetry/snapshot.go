package telemetry

import (
	"time"

	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
)

// A Snapshot has the counters of VPP at one moment. Groups that are skipped are empty.
type Snapshot struct {
	At         time.Time           `json:"time"`
	Runtime    []Thread            `json:"runtime,omitempty"`
	Memory     []Heap              `json:"memory,omitempty"`
	Buffers    []BufferPool        `json:"buffers,omitempty"`
	Nodes      []NodeCounter       `json:"nodes,omitempty"`
	Interfaces []InterfaceCounters `json:"interfaces,omitempty"`
}

// A Thread has the counters of the nodes that a thread runs.
type Thread struct {
	ID    int           `json:"id"`
	Name  string        `json:"name"` // vpp_main, vpp_wk_0, ...
	Items []RuntimeItem `json:"items"`
}

// A RuntimeItem is a node of the packet graph on one thread. VPP counts nodes only with
// `statseg { per-node-counters on }`.
type RuntimeItem struct {
	Index    uint32 `json:"index"`
	Name     string `json:"name"`
	Calls    uint64 `json:"calls"`
	Vectors  uint64 `json:"vectors"` // packets
	Suspends uint64 `json:"suspends"`
	Clocks   uint64 `json:"clocks"`
}

// VectorsPerCall is the mean number of packets that a call of the node processed.
func (r RuntimeItem) VectorsPerCall() float64 {
	if r.Calls == 0 {
		return 0
	}
	return float64(r.Vectors) / float64(r.Calls)
}

// set stores one column of VPP's "show runtime" by its name in the statistics segment.
// Unknown names are ignored: a newer VPP may have more.
func (r *RuntimeItem) set(counter string, n uint64) {
	switch counter {
	case "calls":
		r.Calls = n
	case "vectors":
		r.Vectors = n
	case "suspends":
		r.Suspends = n
	case "clocks":
		r.Clocks = n
	}
}

// A Heap is a heap of VPP, in bytes except FreeChunks.
type Heap struct {
	Name          string `json:"name"` // "main heap" or "stat segment"
	Total         uint64 `json:"total"`
	Used          uint64 `json:"used"`
	Free          uint64 `json:"free"`
	Mapped        uint64 `json:"mapped"`
	MostAllocated uint64 `json:"mostAllocated"` // since the start
	FreeChunks    uint64 `json:"freeChunks"`
	Trimmable     uint64 `json:"trimmable"`
}

// A BufferPool counts the buffers of a pool. Buffers that threads have cached are free too.
type BufferPool struct {
	Name      string `json:"name"`
	Index     int    `json:"index"`
	Cached    uint64 `json:"cached"`
	Used      uint64 `json:"used"`
	Available uint64 `json:"available"`
}

// A NodeCounter counts packets that a node dropped or marked, by reason.
type NodeCounter struct {
	Node   string `json:"node"`
	Reason string `json:"name"`
	Value  uint64 `json:"value"`
}

// Combined counts packets and their bytes.
type Combined struct {
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
}

// InterfaceCounters are the counters of an interface, summed over all threads.
type InterfaceCounters struct {
	Index uint32 `json:"index"` // sw_if_index
	Name  string `json:"name"`  // in VPP
	// Declared is the name of the interface in the configuration; empty: it has none.
	Declared string `json:"declared,omitempty"`

	RX          Combined `json:"rx"`
	TX          Combined `json:"tx"`
	RXUnicast   Combined `json:"rxUnicast"`
	RXMulticast Combined `json:"rxMulticast"`
	RXBroadcast Combined `json:"rxBroadcast"`
	TXUnicast   Combined `json:"txUnicast"`
	TXMulticast Combined `json:"txMulticast"`
	TXBroadcast Combined `json:"txBroadcast"`
	RXErrors    uint64   `json:"rxErrors"`
	TXErrors    uint64   `json:"txErrors"`
	RXNoBuf     uint64   `json:"rxNoBuf"`
	RXMiss      uint64   `json:"rxMiss"`
	Drops       uint64   `json:"drops"`
	Punts       uint64   `json:"punts"`
	IP4         uint64   `json:"ip4"`
	IP6         uint64   `json:"ip6"`
	MPLS        uint64   `json:"mpls"`
}

// combined returns the field of a counter of packets and bytes; nil: it is unknown.
func (c *InterfaceCounters) combined(counter string) *Combined {
	switch counter {
	case "rx":
		return &c.RX
	case "tx":
		return &c.TX
	case "rx-unicast":
		return &c.RXUnicast
	case "rx-multicast":
		return &c.RXMulticast
	case "rx-broadcast":
		return &c.RXBroadcast
	case "tx-unicast":
		return &c.TXUnicast
	case "tx-multicast":
		return &c.TXMulticast
	case "tx-broadcast":
		return &c.TXBroadcast
	}
	return nil
}

// simple returns the field of a counter of packets; nil: it is unknown.
func (c *InterfaceCounters) simple(counter string) *uint64 {
	switch counter {
	case "rx-error":
		return &c.RXErrors
	case "tx-error":
		return &c.TXErrors
	case "rx-no-buf":
		return &c.RXNoBuf
	case "rx-miss":
		return &c.RXMiss
	case "drops":
		return &c.Drops
	case "punt":
		return &c.Punts
	case "ip4":
		return &c.IP4
	case "ip6":
		return &c.IP6
	case "mpls":
		return &c.MPLS
	}
	return nil
}

// Stats returns the counters as StatsPollerService sends them. The name is the declared one.
func (c *InterfaceCounters) Stats() *interfaces.InterfaceStats {
	of := func(n Combined) *interfaces.InterfaceStats_CombinedCounter {
		return &interfaces.InterfaceStats_CombinedCounter{Packets: n.Packets, Bytes: n.Bytes}
	}
	return &interfaces.InterfaceStats{
		Name: c.Declared, Rx: of(c.RX), Tx: of(c.TX),
		RxUnicast: of(c.RXUnicast), RxMulticast: of(c.RXMulticast), RxBroadcast: of(c.RXBroadcast),
		TxUnicast: of(c.TXUnicast), TxMulticast: of(c.TXMulticast), TxBroadcast: of(c.TXBroadcast),
		RxError: c.RXErrors, TxError: c.TXErrors, RxNoBuf: c.RXNoBuf, RxMiss: c.RXMiss,
		Drops: c.Drops, Punts: c.Punts, Ip4: c.IP4, Ip6: c.IP6, Mpls: c.MPLS,
	}
}
