package metrics

import "github.com/prometheus/client_golang/prometheus"

// Health is the state of the agent and its parts.
type Health struct {
	Service            string // name of the agent
	Version, BuildDate string
	State              OperationalState
	Parts              []Part
}

// A Part is a part of the agent that can fail by itself, such as a store.
type Part struct {
	Name  string
	State OperationalState
}

// OperationalState is the state of the agent or a part; the numbers are those of the older agent.
type OperationalState int

const (
	Starting OperationalState = 0
	OK       OperationalState = 1
	Failed   OperationalState = 2
)

// healthCollector reports Health.
type healthCollector struct{ read func() Health }

// serviceHealth describes the state of the agent as one number.
func serviceHealth() *prometheus.Desc {
	return prometheus.NewDesc("service_health", "State of the agent: 0 starting, 1 OK, 2 failed.", []string{"service"}, nil)
}

// serviceInfo describes the agent's version, as labels of a constant.
func serviceInfo() *prometheus.Desc {
	return prometheus.NewDesc("service_info", "Version of the agent; the value is 1.", []string{"service", "build_version", "build_date"}, nil)
}

// dependencyHealth describes the state of each part that the agent needs.
func dependencyHealth() *prometheus.Desc {
	return prometheus.NewDesc("service_dependency_health", "State of a part of the agent: 0 starting, or not there and not needed, 1 OK, 2 failed.", []string{"service", "dependency"}, nil)
}

// Describe implements prometheus.Collector.
func (healthCollector) Describe(out chan<- *prometheus.Desc) {
	out <- serviceHealth()
	out <- serviceInfo()
	out <- dependencyHealth()
}

// Collect implements prometheus.Collector.
func (c healthCollector) Collect(out chan<- prometheus.Metric) {
	h := c.read()
	out <- prometheus.MustNewConstMetric(serviceHealth(), prometheus.GaugeValue, float64(h.State), h.Service)
	out <- prometheus.MustNewConstMetric(serviceInfo(), prometheus.GaugeValue, 1, h.Service, h.Version, h.BuildDate)
	for _, p := range h.Parts {
		out <- prometheus.MustNewConstMetric(dependencyHealth(), prometheus.GaugeValue, float64(p.State), h.Service, p.Name)
	}
}
