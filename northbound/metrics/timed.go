package metrics

import (
	"math"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/keyplane/keyplane/scheduler/stats"
)

// A timed is a duration that is offered in two ways under one name: as a summary, which is what
// dashboards of older agents read, and with buckets, of which quantiles over several agents can
// be computed. The sum and the count are the same in both. Prometheus has no type for that, so
// the buckets are counters whose name and label are those of a histogram.
type timed struct{ summary, buckets figure }

// newTimed returns a duration whose value is read when it is collected.
func newTimed(name, help string, label string) timed {
	return timed{
		newFigure(0, name, help, label),
		newFigure(prometheus.CounterValue, name+"_bucket", help+" Those of at most le seconds.", label, "le"),
	}
}

// quantiles are those of the summary.
func quantiles() []float64 { return []float64{0.5, 0.9, 0.99} }

// timed reports a duration in both ways.
func (c *schedulerCollector) timed(out chan<- prometheus.Metric, f timed, t stats.Timing, label string) {
	values := map[float64]float64{}
	for _, q := range quantiles() {
		values[q] = c.quantile(t, q)
	}
	out <- prometheus.MustNewConstSummary(f.summary.desc, t.Count, t.Total.Seconds(), values, label)
	var below uint64
	for i, bound := range c.bounds {
		below += t.Buckets[i]
		out <- f.buckets.of(float64(below), label, strconv.FormatFloat(bound, 'g', -1, 64))
	}
	out <- f.buckets.of(float64(t.Count), label, "+Inf")
}

// quantile estimates a quantile from the buckets: their calls are taken as spread evenly. It lies
// between the shortest and the longest call. Of no calls it is NaN, as in Prometheus' own summaries.
func (c *schedulerCollector) quantile(t stats.Timing, q float64) float64 {
	if t.Count == 0 {
		return math.NaN()
	}
	rank, below, from := q*float64(t.Count), 0.0, 0.0
	for i, bound := range c.bounds {
		if n := float64(t.Buckets[i]); n > 0 && below+n >= rank {
			estimate := from + (bound-from)*(rank-below)/n
			return min(max(estimate, t.Min.Seconds()), t.Max.Seconds())
		}
		below, from = below+float64(t.Buckets[i]), bound
	}
	return t.Max.Seconds()
}
