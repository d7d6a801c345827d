package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/orchestrator"
)

// sourceCollector reports the sources of declared values.
type sourceCollector struct {
	sources interface{ Health() []orchestrator.Health }
}

// sourceFigures are the figures of one source.
type sourceFigures struct {
	state, complete, lag, waited, waiting, keys, refused, doubted, remembered, problems, failures figure
	batches, events, listings, gaps                                                               figure
}

// newSourceFigures returns the metrics of sources, each with the name of the source as
// label.
func newSourceFigures() sourceFigures {
	const gauge, counter = prometheus.GaugeValue, prometheus.CounterValue
	of := func(kind prometheus.ValueType, name, help string, more ...string) figure {
		return newFigure(kind, "keyplane_source_"+name, help, append([]string{"source"}, more...)...)
	}
	return sourceFigures{
		state:      of(gauge, "state", "1 for the state of the source, 0 for its other states.", "state"),
		complete:   of(gauge, "complete", "1 if the source has delivered a complete listing, else 0."),
		lag:        of(gauge, "lag_seconds", "Age of the oldest change that waits to be taken; 0: none waits."),
		waited:     of(gauge, "waited_seconds", "Age of the oldest change when changes were taken last."),
		waiting:    of(gauge, "waiting_changes", "Changes that wait to be taken."),
		keys:       of(gauge, "keys", "Keys that the source has."),
		refused:    of(gauge, "refused_keys", "Keys with a newest value that is refused."),
		doubted:    of(gauge, "doubted_keys", "Keys that are missing but may not have been deleted."),
		remembered: of(gauge, "remembered_keys", "Keys from before the restart that the source has not confirmed."),
		problems:   of(gauge, "problems", "Problems of the store that belong to no key."),
		failures:   of(gauge, "failures", "Attempts that failed since the store was synced."),
		batches:    of(counter, "batches_total", "Batches of changes from the store."),
		events:     of(counter, "events_total", "Changes of keys from the store."),
		listings:   of(counter, "listings_total", "Complete listings."),
		gaps:       of(counter, "gaps_total", "Times that the source fell out of sync."),
	}
}

// all lists the metrics, for their description.
func (f sourceFigures) all() []figure {
	return []figure{
		f.state, f.complete, f.lag, f.waited, f.waiting, f.keys, f.refused, f.doubted, f.remembered, f.problems, f.failures,
		f.batches, f.events, f.listings, f.gaps,
	}
}

// Describe implements prometheus.Collector.
func (sourceCollector) Describe(out chan<- *prometheus.Desc) {
	for _, f := range newSourceFigures().all() {
		out <- f.desc
	}
}

// Collect implements prometheus.Collector.
func (c sourceCollector) Collect(out chan<- prometheus.Metric) {
	f := newSourceFigures()
	for _, h := range c.sources.Health() {
		for s := kvdbsync.Connecting; s <= kvdbsync.Withheld; s++ {
			out <- f.state.of(truth(h.State == s), h.Source, s.String())
		}
		out <- f.complete.of(truth(h.Complete), h.Source)
		out <- f.lag.of(h.Lag.Seconds(), h.Source)
		out <- f.waited.of(h.Waited.Seconds(), h.Source)
		out <- f.waiting.of(float64(h.Waiting), h.Source)
		out <- f.keys.of(float64(h.Keys), h.Source)
		out <- f.refused.of(float64(h.Refused), h.Source)
		out <- f.doubted.of(float64(h.Doubted), h.Source)
		out <- f.remembered.of(float64(h.Remembered), h.Source)
		out <- f.problems.of(float64(h.Problems), h.Source)
		out <- f.failures.of(float64(h.Failures), h.Source)
		out <- f.batches.of(float64(h.Batches), h.Source)
		out <- f.events.of(float64(h.Events), h.Source)
		out <- f.listings.of(float64(h.Listings), h.Source)
		out <- f.gaps.of(float64(h.Gaps), h.Source)
	}
}

// truth is the value of a metric that says yes or no.
func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
