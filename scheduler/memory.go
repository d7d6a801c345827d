package scheduler

import (
	"cmp"
	"iter"
	"runtime"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/internal/bootid"
	"github.com/keyplane/keyplane/scheduler/internal/executor"
	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/memory"
)

// A Memory remembers across restarts which values are ours. With a Memory, a retrieved value
// without an owner mark is ours if it is remembered. *statestore.Store is one.
//
// The values of descriptors without Retrieve exist if they are remembered, with their metadata as JSON, unless
// the system behind them has begun anew: the host was booted (Options.Boot), or the descriptor has a Connection
// and that has become Ready instead of ReadyAgain. Then, and if JSON loses a part of the metadata, they are
// assumed to be gone, and Create is called.
//
// A key is remembered from before its Create until its Delete has succeeded. So after a kill
// at any moment the Memory has all values that may be ours, and perhaps a key without an
// item. The scheduler forgets such a key when its descriptor was read back.
type Memory interface {
	// Load yields all remembered values.
	Load() iter.Seq2[string, []byte]
	// Save remembers the values that are not nil and forgets the others. If a key comes
	// twice, the last value counts. After Save returns, a kill of the process must not lose
	// the changes. Operations wait for Save, so it must not wait for a disk. The values do
	// not change any more; changes is valid until Save returns.
	Save(changes iter.Seq2[string, []byte]) error
}

// newLedger returns the memory of s.
func (s *Scheduler) newLedger() *memory.Ledger {
	kindOf := func(key string) (memory.Kind, bool) {
		d := s.registry.Of(key)
		return d, d != nil
	}
	prepare := func(kind memory.Kind, key string, m proto.Message) *graph.Value {
		return s.registry.Actual(kind.(*descriptor), key, m)
	}
	return memory.New(s.opts.Memory, cmp.Or(s.opts.Boot, bootid.Read()), s.log, s.graph, kindOf, prepare)
}

// remember notes the outcome of an operation of r, which is described by o, if the memory may have to follow it.
func (s *Scheduler) remember(r *run, t *executor.Task, o *Operation) {
	if !o.Derived && !o.Noop && s.ledger.Follows(t.Op, t.Err) {
		r.outcomes = append(r.outcomes, memory.Outcome{Key: o.Key, Unsure: t.Err != nil})
	}
}

// rememberCompleted saves the outcome of completed runs. Their callers go
// first. It yields the processor first, so that the caller of Commit goes on meanwhile.
func (s *Scheduler) rememberCompleted() {
	if len(s.completed) > 0 {
		runtime.Gosched()
		s.ledger.After(s.completed)
		s.completed = nil
	}
}
