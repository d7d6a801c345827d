// Package statistics converts the statistics of the scheduler for clients. All of it is pure: it
// works on snapshots, and clients of existing deployments know the names in the answer.
package statistics

import (
	"maps"
	"slices"
	"time"

	"github.com/keyplane/keyplane/northbound/rest/internal/records"
	"github.com/keyplane/keyplane/northbound/rest/wire/counts"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/stats"
)

// Of converts the statistics. Counters run since the start of the agent; durations of
// transactions cover the history only. Its cost grows with the numbers of values and of
// records, so monitoring should ask /metrics instead.
func Of(st stats.Stats, statuses []*scheduler.Status, history []*scheduler.Record) counts.Stats {
	out := counts.Stats{
		TxnStats: counts.TxnStats{
			OperationCount: map[string]uint64{}, ValueStateCount: map[string]uint64{},
			ErrorCount: st.Failures, Methods: transactions(history),
			Unwritten: st.LostTransactions, LatePlans: st.LostPlans,
		},
		GraphMethods: []counts.Method{},
		Descriptors:  map[string][]counts.Method{},
	}
	for _, n := range st.Transactions {
		out.TxnStats.TotalProcessed += n
	}
	for verb, n := range st.Operations {
		out.TxnStats.OperationCount[verb.String()] = n
	}
	for _, s := range statuses {
		out.TxnStats.ValueStateCount[s.State.String()]++
	}
	all := map[scheduler.Verb]stats.Timing{}
	for name, verbs := range st.Verbs {
		out.Descriptors[name] = methods(verbs)
		for verb, t := range verbs {
			all[verb] = sum(all[verb], t)
		}
	}
	out.AllDescriptors = methods(all)
	return out
}

// transactions returns the durations of transactions by type.
func transactions(history []*scheduler.Record) []counts.Method {
	timings := map[string]stats.Timing{}
	for _, r := range history {
		name, took := records.TypeName(r.Type), r.Stop.Sub(r.Start)
		timings[name] = sum(timings[name], stats.Timing{Count: 1, Total: took, Min: took, Max: took})
	}
	out := []counts.Method{}
	for _, name := range slices.Sorted(maps.Keys(timings)) {
		out = append(out, method(name, timings[name]))
	}
	return out
}

// methods returns the durations of verbs, sorted by verb.
func methods(verbs map[scheduler.Verb]stats.Timing) []counts.Method {
	out := []counts.Method{}
	for _, verb := range slices.Sorted(maps.Keys(verbs)) {
		out = append(out, method(verbName(verb), verbs[verb]))
	}
	return out
}

// verbName returns the name of a verb in a descriptor.
func verbName(v scheduler.Verb) string {
	switch v {
	case scheduler.Create:
		return "Create"
	case scheduler.Update:
		return "Update"
	case scheduler.Delete:
		return "Delete"
	default:
		return v.String()
	}
}

// method converts a timing to seconds.
func method(name string, t stats.Timing) counts.Method {
	return counts.Method{
		Name: name, Count: t.Count, Total: t.Total.Seconds(), Min: t.Min.Seconds(), Max: t.Max.Seconds(),
		Avg: (t.Total / time.Duration(max(t.Count, 1))).Seconds(),
	}
}

// sum adds two timings.
func sum(a, b stats.Timing) stats.Timing {
	if a.Count == 0 {
		return b
	}
	return stats.Timing{Count: a.Count + b.Count, Total: a.Total + b.Total, Min: min(a.Min, b.Min), Max: max(a.Max, b.Max)}
}
