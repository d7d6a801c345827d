package scheduler

import (
	"maps"
	"sync"
	"time"

	"github.com/keyplane/keyplane/scheduler/internal/executor"
	"github.com/keyplane/keyplane/scheduler/internal/graph"
)

// Stats counts the activity of a Scheduler since New.
type Stats struct {
	Transactions map[TxnType]uint64
	Operations   map[Verb]uint64            // executed operations, including those without a verb
	Failures     uint64                     // failed operations
	Verbs        map[string]map[Verb]Timing // by name of the descriptor
	Output       OutputLoss
}

// Timing has the durations of calls.
type Timing struct {
	Count           uint64
	Total, Min, Max time.Duration
}

func (t Timing) plus(d time.Duration) Timing {
	if t.Count == 0 || d < t.Min {
		t.Min = d
	}
	return Timing{t.Count + 1, t.Total + d, t.Min, max(t.Max, d)}
}

// stats collects Stats.
type stats struct {
	mu           sync.Mutex
	transactions [3]uint64
	operations   [4]uint64
	failures     uint64
	verbs        map[*descriptor]*[4]Timing
}

func (st *stats) transaction(t TxnType) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.transactions[t]++
}

func (st *stats) operation(t *executor.Task) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.operations[t.Op.Verb]++
	if t.Err != nil {
		st.failures++
	}
	if t.Took == 0 {
		return
	}
	d := kindOf(t.Op)
	timing := st.verbs[d]
	if timing == nil {
		timing = new([4]Timing)
		st.verbs[d] = timing
	}
	timing[t.Op.Verb] = timing[t.Op.Verb].plus(t.Took)
}

// Stats returns the present counts.
func (s *Scheduler) Stats() Stats {
	st := &s.stats
	st.mu.Lock()
	defer st.mu.Unlock()
	out := Stats{Transactions: map[TxnType]uint64{}, Operations: map[Verb]uint64{}, Failures: st.failures, Verbs: map[string]map[Verb]Timing{}, Output: s.outputLoss()}
	for t, n := range st.transactions {
		out.Transactions[TxnType(t)] = n
	}
	for v := graph.Create; v <= graph.Delete; v++ {
		out.Operations[verbs[v]] = st.operations[v]
	}
	for d, timing := range maps.All(st.verbs) {
		byVerb := map[Verb]Timing{}
		for v := graph.Create; v <= graph.Delete; v++ {
			if timing[v].Count > 0 {
				byVerb[verbs[v]] = timing[v]
			}
		}
		out.Verbs[d.name] = byVerb
	}
	return out
}
