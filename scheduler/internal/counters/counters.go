// Package counters counts the activity of a scheduler and its present values.
//
// A reader of the counters never delays a transaction for longer than it takes to copy a few
// hundred numbers. The cost of reading depends on the number of descriptors, not on the
// number of values. Package stats shows the counters to users.
//
// Counting must not slow down a transaction: the loop's own counters have no lock that a
// reader holds for long, and a reader gets a copy.
package counters

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/keyplane/keyplane/scheduler/internal/executor"
	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// The numbers of causes of a transaction, verbs, phases and states.
const (
	types  = 3
	verbs  = int(value.Delete) + 1
	states = 16 // at least
)

// A Phase is a part of a transaction that takes time.
type Phase uint8

// The phases of a transaction; package stats documents them.
const (
	Refresh Phase = iota
	Plan
	Execute
	Record

	phases = 4
)

// Counters has all counts. Use New. Several goroutines write the atomic fields; mu guards the
// others.
type Counters struct {
	waiting  atomic.Int64
	observed atomic.Int64 // time of the oldest observation that waits, in ns since 1970; 0: none
	values   map[string]*byState

	mu           sync.Mutex
	transactions [types]uint64
	operations   [verbs]uint64
	failures     uint64
	byVerb       map[string]*[verbs]Timing // by descriptor
	waits        [types]Timing
	durations    [types]Timing
	byPhase      [phases]Timing
	drift        map[string]Drift // of the last check; the map never changes
	driftAt      time.Time
}

// A Drift has the numbers of values of one descriptor that differ, by drift.Kind.
type Drift [3]uint64

// byState are the numbers of values of one descriptor by state. One goroutine writes them.
type byState [states]struct {
	n    atomic.Int64
	seen atomic.Bool // n was not always 0
}

// New returns zero counts of values without a descriptor.
func New() *Counters {
	return &Counters{byVerb: map[string]*[verbs]Timing{}, values: map[string]*byState{"": {}}}
}

// AddDescriptor prepares the counts of a descriptor. It must come before all other methods.
func (c *Counters) AddDescriptor(name string) { c.values[name] = &byState{} }

// A Place is where a value is counted. The zero Place is that of no value.
type Place struct {
	Exists     bool
	Descriptor string
	State      int32
}

// Moved counts the change of one value.
func (c *Counters) Moved(from, to Place) {
	if from == to {
		return
	}
	if from.Exists {
		c.values[from.Descriptor][from.State].n.Add(-1)
	}
	if to.Exists {
		count := &c.values[to.Descriptor][to.State]
		count.n.Add(1)
		if !count.seen.Load() {
			count.seen.Store(true)
		}
	}
}

// Transaction counts a transaction of a type that has ended.
func (c *Counters) Transaction(t uint8, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.transactions[t]++
	c.durations[t].add(took)
}

// Waits counts a call that waits for the loop until done is called.
func (c *Counters) Waits() (done func()) {
	c.waiting.Add(1)
	return func() { c.waiting.Add(-1) }
}

// Waited counts the time since the cause of a transaction.
func (c *Counters) Waited(t uint8, cause time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waits[t].add(max(0, time.Since(cause)))
}

// Observed marks that an observation waits from now on.
func (c *Counters) Observed() { c.observed.CompareAndSwap(0, time.Now().UnixNano()) }

// Noticed counts the wait of the oldest observation, as a transaction of type t.
func (c *Counters) Noticed(t uint8) {
	since := c.observed.Swap(0)
	if since != 0 {
		c.Waited(t, time.Unix(0, since))
	}
}

// Phase counts the time since begun.
func (c *Counters) Phase(p Phase, begun time.Time) {
	took := time.Since(begun)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byPhase[p].add(took)
}

// Operation counts an operation that has ended.
func (c *Counters) Operation(t *executor.Task) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.operations[t.Op.Verb]++
	if t.Err != nil {
		c.failures++
	}
	if t.Took == 0 {
		return
	}
	timing := c.byVerb[t.Verbs.Descriptor]
	if timing == nil {
		timing = new([verbs]Timing)
		c.byVerb[t.Verbs.Descriptor] = timing
	}
	timing[t.Op.Verb].add(t.Took)
}

// Drifted replaces the numbers of the last check. They are by descriptor; the caller does not
// change them any more.
func (c *Counters) Drifted(drift map[string]Drift, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drift, c.driftAt = drift, at
}

// A Snapshot is a copy of all counts. The slices are indexed by type of transaction,
// value.Verb and Phase.
type Snapshot struct {
	Transactions, Operations []uint64
	Failures                 uint64
	Verbs                    map[string][]Timing
	Values                   map[string]map[int32]uint64 // by descriptor and state
	Waiting                  int
	Waits, Durations, Phases []Timing
	Drift                    map[string]Drift // by descriptor; only to be read
	DriftAt                  time.Time        // zero: there was no check
}

// Snapshot returns the present counts.
func (c *Counters) Snapshot() Snapshot {
	out := Snapshot{Waiting: int(c.waiting.Load()), Values: c.countedValues(), Verbs: map[string][]Timing{}}
	c.mu.Lock()
	defer c.mu.Unlock()
	out.Transactions, out.Operations = append(out.Transactions, c.transactions[:]...), append(out.Operations, c.operations[:]...)
	out.Waits, out.Durations = append(out.Waits, c.waits[:]...), append(out.Durations, c.durations[:]...)
	out.Phases, out.Failures = append(out.Phases, c.byPhase[:]...), c.failures
	out.Drift, out.DriftAt = c.drift, c.driftAt
	for name, timing := range c.byVerb {
		out.Verbs[name] = append([]Timing(nil), timing[:]...)
	}
	return out
}

// countedValues returns the numbers of values by descriptor and state.
func (c *Counters) countedValues() map[string]map[int32]uint64 {
	out := make(map[string]map[int32]uint64, len(c.values))
	for name, counts := range c.values {
		byState := map[int32]uint64{}
		for state := range counts {
			if one := &counts[state]; one.seen.Load() {
				byState[int32(state)] = uint64(max(0, one.n.Load()))
			}
		}
		if len(byState) > 0 {
			out[name] = byState
		}
	}
	return out
}
