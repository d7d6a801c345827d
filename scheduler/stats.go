package scheduler

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/keyplane/keyplane/proto/ligato/kvscheduler"
	"github.com/keyplane/keyplane/scheduler/internal/executor"
	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
)

// Stats counts the activity of a Scheduler since New, and its present values. The cost of
// reading it depends on the number of descriptors, not on the number of values.
type Stats struct {
	Transactions map[TxnType]uint64
	Operations   map[Verb]uint64            // executed operations, including those without a verb
	Failures     uint64                     // failed operations
	Verbs        map[string]map[Verb]Timing // by name of the descriptor
	// Values is the number of values by name of the descriptor and state. Values without a
	// descriptor are under "". A state that all values have left stays with the number 0.
	Values map[string]map[State]uint64
	// Waiting is the number of calls that wait for the loop now, such as Commit.
	Waiting int
	// Waits are the times from the cause of a transaction until it begins; Durations are the
	// times from there to its end.
	Waits, Durations map[TxnType]Timing
	Phases           map[Phase]Timing
	Connections      map[string]bool // by name: whether it is ready
	// Drift is the number of values by descriptor and kind that the last call of Drift found,
	// which ended at DriftAt. The zero time: it was not called yet.
	Drift   map[string]map[DriftKind]uint64
	DriftAt time.Time
	Output  OutputLoss
}

// A Phase is a part of a transaction that takes time.
type Phase uint8

const (
	PhaseRefresh Phase = iota // reading back
	PhasePlan                 // planning that Simulate asks for
	PhaseExecute              // all operations
	PhaseRecord               // publishing and recording the outcome
)

func (p Phase) String() string { return [...]string{"refresh", "plan", "execute", "record"}[p] }

// Timing has the durations of calls.
type Timing struct {
	Count           uint64
	Total, Min, Max time.Duration
	// Buckets has the number of calls that took at most the duration of the same index in
	// TimingBounds, and longer than the one before it.
	Buckets [timingBuckets]uint64
}

const timingBuckets = 16

// TimingBounds returns the upper bounds of Timing.Buckets, in ascending order. Calls may
// have taken longer than the last one.
func TimingBounds() [timingBuckets]time.Duration {
	const us, ms = time.Microsecond, time.Millisecond
	return [...]time.Duration{
		50 * us, 100 * us, 250 * us, 500 * us, 1 * ms, 2500 * us, 5 * ms, 10 * ms,
		25 * ms, 50 * ms, 100 * ms, 250 * ms, 1000 * ms, 2500 * ms, 10 * time.Second, 30 * time.Second,
	}
}

func (t *Timing) add(d time.Duration) {
	if t.Count == 0 || d < t.Min {
		t.Min = d
	}
	t.Count++
	t.Total += d
	t.Max = max(t.Max, d)
	for i, bound := range TimingBounds() {
		if d <= bound {
			t.Buckets[i]++
			return
		}
	}
}

// stats collects Stats. Several goroutines write the atomic fields; mu guards the others.
type stats struct {
	waiting  atomic.Int64
	observed atomic.Int64 // time of the oldest observation that waits, in ns since 1970; 0: none
	values   map[string]*valueCounts

	mu           sync.Mutex
	transactions [3]uint64
	operations   [4]uint64
	failures     uint64
	verbs        map[*descriptor]*[4]Timing
	waits        [3]Timing
	durations    [3]Timing
	phases       [4]Timing
	drift        map[string]map[DriftKind]uint64 // of the last call of Drift
	driftAt      time.Time
}

func newStats() stats {
	return stats{verbs: map[*descriptor]*[4]Timing{}, values: map[string]*valueCounts{"": {}}}
}

// valueStates is the number of states; RETRYING is the last one.
const valueStates = int(kvscheduler.ValueState_RETRYING) + 1

// valueCounts are the numbers of values of one descriptor by state. Run's goroutine writes them.
type valueCounts [valueStates]struct {
	n    atomic.Int64
	seen atomic.Bool // n was not always 0
}

// describes prepares the counts of a descriptor. It must be called before Run.
func (st *stats) describes(descriptor string) { st.values[descriptor] = &valueCounts{} }

// value counts the change of one value. old and now are nil if there is none.
func (st *stats) value(old, now *Status) {
	if old != nil && now != nil && old.State == now.State && old.Descriptor == now.Descriptor {
		return
	}
	if old != nil {
		st.values[old.Descriptor][old.State].n.Add(-1)
	}
	if now != nil {
		count := &st.values[now.Descriptor][now.State]
		count.n.Add(1)
		if !count.seen.Load() {
			count.seen.Store(true)
		}
	}
}

// drifted replaces the last drift.
func (st *stats) drifted(d *Drift) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.drift, st.driftAt = d.counts(), d.Stop
}

// transaction counts a transaction that has ended.
func (st *stats) transaction(r *Record) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.transactions[r.Type]++
	st.durations[r.Type].add(r.Stop.Sub(r.Start))
}

// waited counts the time since the cause of a transaction.
func (st *stats) waited(t TxnType, cause time.Time) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.waits[t].add(max(0, time.Since(cause)))
}

// observes marks that an observation waits from now on.
func (st *stats) observes() { st.observed.CompareAndSwap(0, time.Now().UnixNano()) }

// noticed counts the wait of the oldest observation.
func (st *stats) noticed() {
	since := st.observed.Swap(0)
	if since != 0 {
		st.waited(Notification, time.Unix(0, since))
	}
}

// phase counts the time since begun.
func (st *stats) phase(p Phase, begun time.Time) {
	took := time.Since(begun)
	st.mu.Lock()
	defer st.mu.Unlock()
	st.phases[p].add(took)
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
	d := kind.OfOp(t.Op)
	timing := st.verbs[d]
	if timing == nil {
		timing = new([4]Timing)
		st.verbs[d] = timing
	}
	timing[t.Op.Verb].add(t.Took)
}

// Stats returns the present counts.
func (s *Scheduler) Stats() Stats {
	st := &s.stats
	out := Stats{
		Waiting: int(st.waiting.Load()), Values: st.countedValues(), Output: s.outputLoss(),
		Connections: make(map[string]bool, len(s.connections)),
	}
	for name, g := range s.connections {
		out.Connections[name] = g.ready.Load()
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	out.Drift, out.DriftAt = st.drift, st.driftAt // the maps never change
	out.Failures, out.Verbs = st.failures, map[string]map[Verb]Timing{}
	out.Transactions, out.Operations = map[TxnType]uint64{}, map[Verb]uint64{}
	out.Waits, out.Durations, out.Phases = map[TxnType]Timing{}, map[TxnType]Timing{}, map[Phase]Timing{}
	for t := Notification; t <= RetryFailed; t++ {
		out.Transactions[t], out.Waits[t], out.Durations[t] = st.transactions[t], st.waits[t], st.durations[t]
	}
	for p := PhaseRefresh; p <= PhaseRecord; p++ {
		out.Phases[p] = st.phases[p]
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
		out.Verbs[d.Name] = byVerb
	}
	return out
}

// countedValues returns the numbers of values by descriptor and state.
func (st *stats) countedValues() map[string]map[State]uint64 {
	out := make(map[string]map[State]uint64, len(st.values))
	for name, counts := range st.values {
		byState := map[State]uint64{}
		for state := range counts {
			if c := &counts[state]; c.seen.Load() {
				byState[State(state)] = uint64(max(0, c.n.Load()))
			}
		}
		if len(byState) > 0 {
			out[name] = byState
		}
	}
	return out
}
