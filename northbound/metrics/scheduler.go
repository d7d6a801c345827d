package metrics

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/drift"
	"github.com/keyplane/keyplane/scheduler/inspect"
	"github.com/keyplane/keyplane/scheduler/stats"
)

// A figure is a metric without its values.
type figure struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// newFigure returns a metric whose value is read when it is collected.
func newFigure(kind prometheus.ValueType, name, help string, labels ...string) figure {
	return figure{prometheus.NewDesc(name, help, labels, nil), kind}
}

// of returns the metric with a value.
func (f figure) of(n float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(f.desc, f.kind, n, labels...)
}

// schedulerCollector reports the scheduler.
type schedulerCollector struct {
	sched  *scheduler.Scheduler
	bounds []float64

	processed, dropped, capacity, length                   figure
	wait, phases, duration                                 timed
	values, connected, operations, failures, latency, lost figure
	drift, driftAt, unknown, unknownSince                  figure
}

// newSchedulerCollector returns a collector that reads the scheduler's snapshots only.
func newSchedulerCollector(s *scheduler.Scheduler) *schedulerCollector {
	const ours, older = "keyplane_", "ligato_kvscheduler_"
	const counter, gauge = prometheus.CounterValue, prometheus.GaugeValue
	c := &schedulerCollector{
		sched:      s,
		processed:  newFigure(counter, older+"txn_processed", "Transactions that have ended."),
		dropped:    newFigure(counter, older+"txn_dropped", "Transactions that were dropped because the queue was full; always 0, the queue has no limit."),
		capacity:   newFigure(gauge, older+"queue_capacity", "Limit of the queue; 0: it has none."),
		length:     newFigure(gauge, older+"queue_length", "Transactions that wait to begin."),
		wait:       newTimed(older+"queue_wait_seconds", "Time from the cause of a transaction until it begins.", "txn_type"),
		phases:     newTimed(older+"txn_process_duration_seconds", "Time of a part of a transaction.", "slice"),
		duration:   newTimed(older+"txn_duration_seconds", "Time from the beginning of a transaction to its end.", "txn_type"),
		values:     newFigure(gauge, ours+"values", "Values by descriptor, model and state. Derived values have no model; properties have no descriptor either.", "descriptor", "model", "state"),
		connected:  newFigure(gauge, ours+"connection_ready", "1 if the connection to a southbound system is ready, else 0.", "connection"),
		unknown:    newFigure(gauge, ours+"connection_unknown_kinds", "Kinds of values of a connection of which nobody knows which exist.", "connection"),
		operations: newFigure(counter, ours+"operations_total", "Executed operations, including those without a verb.", "verb"),
		failures:   newFigure(counter, ours+"operation_failures_total", "Failed operations."),
		latency:    newFigure(0, ours+"operation_duration_seconds", "Time of the verbs of a descriptor.", "descriptor", "verb"),
		lost:       newFigure(counter, ours+"transaction_log_lost_total", "Transactions that the transaction log omitted because its output was too slow or broken."),
		drift:      newFigure(gauge, ours+"drift_values", "Values that differed from the configured ones at the last check, by kind: missing, differs, unexpected.", "descriptor", "kind"),
		driftAt:    newFigure(gauge, ours+"drift_check_timestamp_seconds", "Time of the last check of the drift, in seconds since 1970."),
	}
	c.unknownSince = newFigure(gauge, ours+"connection_unknown_since_timestamp_seconds", "Time since which a kind of the connection is unknown, in seconds since 1970; absent if none is.", "connection")
	for _, bound := range stats.Bounds() {
		c.bounds = append(c.bounds, bound.Seconds())
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *schedulerCollector) Describe(out chan<- *prometheus.Desc) {
	for _, f := range []figure{
		c.processed, c.dropped, c.capacity, c.length,
		c.wait.summary, c.wait.buckets, c.phases.summary, c.phases.buckets, c.duration.summary, c.duration.buckets,
		c.values, c.connected, c.operations, c.failures, c.latency, c.lost, c.drift, c.driftAt,
		c.unknown, c.unknownSince,
	} {
		out <- f.desc
	}
}

// Collect implements prometheus.Collector.
func (c *schedulerCollector) Collect(out chan<- prometheus.Metric) {
	st := stats.Of(c.sched)
	var all uint64
	for t, n := range st.Transactions {
		all += n
		c.timed(out, c.wait, st.Waits[t], typeName(t))
		c.timed(out, c.duration, st.Durations[t], typeName(t))
	}
	out <- c.processed.of(float64(all))
	out <- c.dropped.of(0)
	out <- c.capacity.of(0)
	out <- c.length.of(float64(st.Waiting))
	for p, timing := range st.Phases {
		c.timed(out, c.phases, timing, p.String())
	}
	c.collectValues(st, out)
	for name, ready := range st.Connections {
		out <- c.connected.of(truth(ready), name)
	}
	c.collectUnknown(out)
	for verb, n := range st.Operations {
		out <- c.operations.of(float64(n), strings.ToLower(verb.String()))
	}
	out <- c.failures.of(float64(st.Failures))
	for descriptor, verbs := range st.Verbs {
		for verb, timing := range verbs {
			out <- c.histogram(c.latency, timing, descriptor, strings.ToLower(verb.String()))
		}
	}
	out <- c.lost.of(float64(st.LostTransactions))
	c.collectDrift(st, out)
}

// collectUnknown reports how many kinds of each connection are unknown, and for how long one of them has been.
func (c *schedulerCollector) collectUnknown(out chan<- prometheus.Metric) {
	for _, conn := range c.sched.Connections() {
		out <- c.unknown.of(float64(len(conn.Kinds)), conn.Name)
		if len(conn.Kinds) == 0 {
			continue
		}
		oldest := slices.MinFunc(conn.Kinds, func(a, b scheduler.UnknownKind) int { return a.Since.Compare(b.Since) })
		out <- c.unknownSince.of(float64(oldest.Since.UnixNano())/1e9, conn.Name)
	}
}

// collectDrift reports the last check of the drift, if there was one. Descriptors that did not
// drift are there with 0, so that an alert on a sum works from the first check on.
func (c *schedulerCollector) collectDrift(st stats.Stats, out chan<- prometheus.Metric) {
	if st.DriftAt.IsZero() {
		return
	}
	out <- c.driftAt.of(float64(st.DriftAt.UnixNano()) / 1e9)
	for _, d := range inspect.Descriptors(c.sched) {
		if !d.Retrieves && st.Drift[d.Name] == nil {
			continue
		}
		for _, k := range drift.Kinds() {
			out <- c.drift.of(float64(st.Drift[d.Name][k]), d.Name, k.String())
		}
	}
}

// collectValues reports the numbers of values.
func (c *schedulerCollector) collectValues(st stats.Stats, out chan<- prometheus.Metric) {
	modelOf := c.models()
	for descriptor, byState := range st.Values {
		for state, n := range byState {
			out <- c.values.of(float64(n), descriptor, modelOf[descriptor], state.String())
		}
	}
}

// models returns the name of the model of each descriptor that has one.
func (c *schedulerCollector) models() map[string]string {
	byPrefix := map[string]string{}
	for _, m := range c.sched.Models().All() {
		byPrefix[m.Prefix()] = m.Name()
	}
	out := map[string]string{}
	for _, d := range inspect.Descriptors(c.sched) {
		if d.Modelled {
			out[d.Name] = byPrefix[d.Prefix]
		}
	}
	return out
}

// histogram converts a timing. Prometheus counts a call in each bucket that is large enough
// for it; a Timing counts it once.
func (c *schedulerCollector) histogram(f figure, t stats.Timing, labels ...string) prometheus.Metric {
	buckets := make(map[float64]uint64, len(c.bounds))
	var below uint64
	for i, bound := range c.bounds {
		below += t.Buckets[i]
		buckets[bound] = below
	}
	return prometheus.MustNewConstHistogram(f.desc, t.Count, t.Total.Seconds(), buckets, labels...)
}

// typeName returns the name of a type of transaction, as in the history.
func typeName(t scheduler.TxnType) string {
	switch t {
	case scheduler.Notification:
		return "SBNotification"
	case scheduler.RetryFailed:
		return "RetryFailedOps"
	default:
		return "NBTransaction"
	}
}
