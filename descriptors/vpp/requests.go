package vpp

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
)

// Requests counts what went over the connection to VPP since the start.
type Requests struct {
	Connections, Open           uint64
	Sent, Done, Failed, Replies uint64
	Messages                    map[string]conn.MessageCount // by name
}

// Requests returns the present counts.
func (p *Plugin) Requests() Requests {
	info := p.manager.Info()
	out := Requests{Connections: uint64(info.Connections), Messages: p.manager.Requests()}
	if info.Connected {
		out.Open = 1
	}
	for _, m := range out.Messages {
		out.Sent += m.Requests
		out.Done += m.Done
		out.Replies += m.Replies
		out.Failed += m.Requests - m.Done
	}
	return out
}

// Collector returns the counts as metrics, with the names of the older agent.
func (p *Plugin) Collector() prometheus.Collector { return newRequestCollector(p.Requests) }

type requestCollector struct {
	read func() Requests

	created, open, sent, requests, failed, done, replies, took *prometheus.Desc
}

func newRequestCollector(read func() Requests) *requestCollector {
	of := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("ligato_govppmux_"+name, help, labels, nil)
	}
	return &requestCollector{
		read:     read,
		created:  of("channels_created_total", "Connections to VPP that were made."),
		open:     of("channels", "1 while VPP is connected, else 0."),
		sent:     of("requests", "Requests to VPP."),
		requests: of("requests_total", "Requests to VPP by message.", "message"),
		failed:   of("requests_failed_total", "Failed requests by message and error.", "message", "error"),
		done:     of("requests_done_total", "Requests that VPP has carried out, by message.", "message"),
		replies:  of("replies_received_total", "Replies and details by the message of their request.", "message"),
		took:     of("successful_request_duration_seconds", "Time of requests that VPP has carried out, by message.", "message"),
	}
}

// Describe implements prometheus.Collector.
func (c *requestCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.created, c.open, c.sent, c.requests, c.failed, c.done, c.replies, c.took} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *requestCollector) Collect(out chan<- prometheus.Metric) {
	emit := func(d *prometheus.Desc, kind prometheus.ValueType, n uint64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, kind, float64(n), labels...)
	}
	const counter, gauge = prometheus.CounterValue, prometheus.GaugeValue
	r := c.read()
	emit(c.created, counter, r.Connections)
	emit(c.open, gauge, r.Open)
	emit(c.sent, gauge, r.Sent)
	for name, m := range r.Messages {
		emit(c.requests, counter, m.Requests, name)
		emit(c.done, counter, m.Done, name)
		emit(c.replies, counter, m.Replies, name)
		for reason, n := range m.Errors {
			emit(c.failed, counter, n, name, reason)
		}
		buckets := map[float64]uint64{}
		var below uint64
		for i, bound := range conn.CountBounds() {
			below += m.Buckets[i]
			buckets[bound.Seconds()] = below
		}
		out <- prometheus.MustNewConstHistogram(c.took, m.Done, m.Took.Seconds(), buckets, name)
	}
}
