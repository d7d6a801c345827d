package telemetry

import (
	"fmt"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
)

// Collector returns the counters of the last poll as metrics, with the names of the older
// agent. The label is that of the agent. Metrics are absent while VPP has no counters.
func (p *Poller) Collector(label string) prometheus.Collector {
	gauge := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	of := func(prefix string, names, help []string, labels ...string) (out []*prometheus.Desc) {
		for i, name := range names {
			out = append(out, gauge(prefix+name, help[i], labels...))
		}
		return out
	}
	return &collector{
		p: p, label: label,
		runtime: of("vpp_runtime_", []string{"calls", "vectors", "suspends", "clocks", "vectors_per_call"},
			[]string{"Calls of a node of VPP.", "Packets that a node has processed.", "Suspensions of a node.", "CPU clocks of a node.", "Mean number of packets of a call."},
			"agent", "item", "thread", "threadID"),
		memory: of("vpp_memory_", []string{"used", "total", "free", "size", "trimmable", "free_chunks", "max_total_allocated"},
			[]string{"Used bytes of a heap.", "Bytes of a heap.", "Free bytes of a heap.", "Bytes of a heap.", "Bytes that a heap could return.", "Free chunks of a heap.", "Bytes that were in use at most."},
			"agent", "thread", "threadID"),
		buffers: of("vpp_buffers_", []string{"size", "num_alloc", "num_free"},
			[]string{"Buffers of a pool.", "Used buffers.", "Free buffers, including those that threads have cached."},
			"agent", "threadID", "item", "index"),
		nodes: gauge("vpp_nodes_counter", "Packets that a node dropped or marked, by reason.", "agent", "item", "reason"),
		interfaces: of("vpp_interfaces_", []string{
			"rx_packets", "rx_bytes", "rx_errors", "tx_packets", "tx_bytes", "tx_errors", "drops", "punts", "ip4", "ip6", "rx_no_buf", "rx_miss",
		}, []string{
			"Received packets.", "Received bytes.", "Packets received with an error.", "Sent packets.", "Sent bytes.", "Packets that could not be sent.",
			"Dropped packets.", "Packets given to the host.", "Received IPv4 packets.", "Received IPv6 packets.", "Packets lost because there was no buffer.", "Packets lost because the queue was full.",
		}, "agent", "name", "index"),
		states: of("ligato_ifplugin_", []string{"operational_state", "admin_state"},
			[]string{"1 if the interface has a link, else 0.", "1 if the interface is set up, else 0."}, "name"),
	}
}

// A collector makes metrics of the last poll. All metrics are gauges, as those of the
// older agent are: dashboards depend on names and types.
type collector struct {
	p     *Poller
	label string

	runtime, memory, buffers, interfaces, states []*prometheus.Desc
	nodes                                        *prometheus.Desc
}

// Describe implements prometheus.Collector. Prometheus calls it once, when the collector
// is registered.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, group := range [][]*prometheus.Desc{c.runtime, c.memory, c.buffers, c.interfaces, c.states, {c.nodes}} {
		for _, d := range group {
			out <- d
		}
	}
}

// mostMetrics bounds the memory of an answer, in which a metric takes 600 bytes. 10,000 interfaces
// have that many.
const mostMetrics = 120_000

// An emitter hands on a metric for each value.
type emitter func(descs []*prometheus.Desc, values []float64, labels ...string)

// Collect implements prometheus.Collector. It reads nothing of VPP: any number of scrapes
// costs VPP the same. Nodes that never ran and counters that are 0 are left out, because
// they would be most of the answer.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	last := c.p.last.Load()
	if last == nil {
		return
	}
	left := mostMetrics
	emit := emitter(func(descs []*prometheus.Desc, values []float64, labels ...string) {
		if left -= len(descs); left < 0 {
			return
		}
		for i, d := range descs {
			m, err := prometheus.NewConstMetric(d, prometheus.GaugeValue, values[i], labels...)
			if err != nil {
				m = prometheus.NewInvalidMetric(d, err)
			}
			out <- m
		}
	})
	defer func() {
		if left < 0 {
			out <- prometheus.NewInvalidMetric(c.nodes, fmt.Errorf("%w: %d metrics are left out; groups can be left out with skipped in telemetry.conf", ErrTooMany, -left))
		}
	}()
	c.collectRuntime(last.Runtime, emit)
	for i, m := range last.Memory {
		emit(c.memory, floats(m.Used, m.Total, m.Free, m.Total, m.Trimmable, m.FreeChunks, m.MostAllocated), c.label, m.Name, strconv.Itoa(i))
	}
	for _, b := range last.Buffers {
		emit(c.buffers, floats(b.Used+b.Available+b.Cached, b.Used, b.Available+b.Cached), c.label, "0", b.Name, strconv.Itoa(b.Index))
	}
	for _, n := range last.Nodes {
		if n.Value == 0 {
			continue // VPP has about 3,000 of these
		}
		emit([]*prometheus.Desc{c.nodes}, floats(n.Value), c.label, n.Node, n.Reason)
	}
	for _, i := range last.Interfaces {
		name := i.Declared
		if name == "" {
			name = i.Name
		}
		emit(c.interfaces, floats(
			i.RX.Packets, i.RX.Bytes, i.RXErrors, i.TX.Packets, i.TX.Bytes, i.TXErrors, i.Drops, i.Punts, i.IP4, i.IP6, i.RXNoBuf, i.RXMiss,
		), c.label, name, strconv.FormatUint(uint64(i.Index), 10))
	}
	for name, s := range last.states {
		emit(c.states, floats(up(s.GetOperStatus()), up(s.GetAdminStatus())), name)
	}
}

// collectRuntime emits the counters of nodes. Most of about 1,000 never run.
func (c *collector) collectRuntime(threads []Thread, emit emitter) {
	for _, t := range threads {
		for _, r := range t.Items {
			if r.Calls != 0 || r.Suspends != 0 {
				emit(c.runtime, floats(r.Calls, r.Vectors, r.Suspends, r.Clocks, r.VectorsPerCall()), c.label, r.Name, t.Name, strconv.Itoa(t.ID))
			}
		}
	}
}

// up returns 1 for a state that is up, as Prometheus expects of a boolean.
func up(s interfaces.InterfaceState_Status) uint64 {
	if s == interfaces.InterfaceState_UP {
		return 1
	}
	return 0
}

// floats converts numbers of different types. A type that is neither uint64 nor float64
// would give 0, so callers pass fields of a Snapshot only.
func floats(numbers ...any) []float64 {
	out := make([]float64, len(numbers))
	for i, n := range numbers {
		switch n := n.(type) {
		case uint64:
			out[i] = float64(n)
		case float64:
			out[i] = n
		}
	}
	return out
}
