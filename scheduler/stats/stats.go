// Package stats reads the counters of a scheduler, for metrics.
//
//	fmt.Println(stats.Of(s).Operations[scheduler.Create])
//
// Reading is cheap and no transaction waits for it.
//
// The counters never decrease while the process lives, so a reader that polls can compute
// rates. Only the numbers of values, waiting calls and ready connections go up and down.
package stats

import (
	"time"

	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/drift"
	"github.com/keyplane/keyplane/scheduler/internal/counters"
	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// Stats counts the activity of a Scheduler since New, and its present values. The cost of
// reading it depends on the number of descriptors, not on the number of values.
type Stats struct {
	// Transactions counts the transactions that have ended.
	Transactions map[scheduler.TxnType]uint64
	// Operations counts executed operations, including those without a verb.
	Operations map[scheduler.Verb]uint64
	// Failures counts the operations among them that failed.
	Failures uint64
	// Verbs has the durations of the calls by name of the descriptor.
	Verbs map[string]map[scheduler.Verb]Timing
	// Values is the number of values by name of the descriptor and state. Values without a
	// descriptor are under "". A state that all values have left stays with the number 0.
	Values map[string]map[scheduler.State]uint64
	// Waiting is the number of calls that wait for the loop now, such as Commit.
	Waiting int
	// Waits are the times from the cause of a transaction until it begins; Durations are the
	// times from there to its end.
	Waits, Durations map[scheduler.TxnType]Timing
	// Phases has the durations of the parts of transactions.
	Phases map[Phase]Timing
	// Connections says by name whether a connection is ready. Connections that cannot be lost
	// are not in it.
	Connections map[string]bool
	// Drift is the number of values by descriptor and kind that the last call of
	// [drift.Check] found, which ended at DriftAt. The zero time: it was not called.
	Drift   map[string]map[drift.Kind]uint64
	DriftAt time.Time
	// LostTransactions and LostPlans count the texts that the transaction log did not write;
	// see scheduler.TransactionLog.
	LostTransactions, LostPlans uint64
}

// A Phase is a part of a transaction that takes time.
type Phase uint8

// The phases of a transaction, in order.
const (
	PhaseRefresh = Phase(counters.Refresh) // reading back
	PhasePlan    = Phase(counters.Plan)    // planning that Simulate asks for
	PhaseExecute = Phase(counters.Execute) // all operations
	PhaseRecord  = Phase(counters.Record)  // publishing and recording the outcome
)

func (p Phase) String() string { return [...]string{"refresh", "plan", "execute", "record"}[p] }

// Timing has the durations of calls.
type Timing struct {
	Count           uint64
	Total, Min, Max time.Duration
	// Buckets has the number of calls that took at most the duration of the same index in
	// Bounds, and longer than the one before it.
	Buckets [counters.Buckets]uint64
}

// Bounds returns the upper bounds of Timing.Buckets, in ascending order. Calls may have taken
// longer than the last one.
func Bounds() [counters.Buckets]time.Duration { return counters.Bounds() }

// Of returns the present counts of s.
func Of(s *scheduler.Scheduler) Stats {
	inside := s.Inside()
	now := inside.Counters.Snapshot()
	out := Stats{
		Transactions: map[scheduler.TxnType]uint64{}, Operations: map[scheduler.Verb]uint64{}, Failures: now.Failures,
		Verbs: map[string]map[scheduler.Verb]Timing{}, Values: map[string]map[scheduler.State]uint64{},
		Waiting: now.Waiting, Waits: map[scheduler.TxnType]Timing{}, Durations: map[scheduler.TxnType]Timing{},
		Phases: map[Phase]Timing{}, Connections: map[string]bool{},
		Drift: map[string]map[drift.Kind]uint64{}, DriftAt: now.DriftAt,
	}
	for name, counts := range now.Drift {
		for kind, n := range counts {
			if out.Drift[name] == nil {
				out.Drift[name] = map[drift.Kind]uint64{}
			}
			out.Drift[name][drift.Kind(kind)] = n
		}
	}
	for _, c := range s.Connections() {
		out.Connections[c.Name] = c.State.Connected()
	}
	out.LostTransactions, out.LostPlans = inside.Loss()
	for i, n := range now.Transactions {
		t := scheduler.TxnType(i)
		out.Transactions[t], out.Waits[t], out.Durations[t] = n, Timing(now.Waits[i]), Timing(now.Durations[i])
	}
	for i, timing := range now.Phases {
		out.Phases[Phase(i)] = Timing(timing)
	}
	for v, verb := range verbs() {
		out.Operations[verb] = now.Operations[v]
	}
	for name, timings := range now.Verbs {
		byVerb := map[scheduler.Verb]Timing{}
		for v, verb := range verbs() {
			if timings[v].Count > 0 {
				byVerb[verb] = Timing(timings[v])
			}
		}
		out.Verbs[name] = byVerb
	}
	for name, counts := range now.Values {
		byState := map[scheduler.State]uint64{}
		for state, n := range counts {
			byState[scheduler.State(state)] = n
		}
		out.Values[name] = byState
	}
	return out
}

// verbs returns the verbs that are counted.
func verbs() map[value.Verb]scheduler.Verb {
	return map[value.Verb]scheduler.Verb{
		value.Create: scheduler.Create,
		value.Update: scheduler.Update,
		value.Delete: scheduler.Delete,
	}
}
