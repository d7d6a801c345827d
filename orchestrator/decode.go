package orchestrator

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/scheduler"
)

// decoded is what the bytes of an event say.
type decoded struct {
	value *scheduler.Value
	err   error
}

// ahead decodes what an input has before it is taken.
func (o *Orchestrator) ahead(e kvdbsync.Event) any { return o.decode(e) }

// decodeAll decodes n events, on all processors where there are many.
func (o *Orchestrator) decodeAll(n int, event func(int) kvdbsync.Event) []decoded {
	const atLeast = 64 // events for a goroutine
	out := make([]decoded, n)
	workers := max(1, min(runtime.GOMAXPROCS(0), n/atLeast))
	size := (n + workers - 1) / workers
	some := func(from, to int) {
		for i := from; i < to; i++ {
			out[i] = o.decode(event(i))
		}
	}
	var wg sync.WaitGroup
	for from := size; from < n; from += size {
		wg.Go(func() { some(from, min(from+size, n)) })
	}
	some(0, min(size, n))
	wg.Wait()
	return out
}

// errFault is why a value is refused that is not known to be bad.
var errFault = errors.New("the agent has a fault, and cannot look at this value")

// decode turns the bytes of an event into a value, unless that was done ahead. One that a fault of ours cannot
// stand is refused like any other that is bad.
func (o *Orchestrator) decode(e kvdbsync.Event) (out decoded) {
	if ahead, ok := e.Ahead.(decoded); ok {
		return ahead
	}
	defer func() {
		if fault := recover(); fault != nil {
			o.log.Error("a value could not be looked at", "key", e.Key, "panic", fault, "stack", string(debug.Stack()))
			out = decoded{err: fmt.Errorf("%w: %v", errFault, fault)}
		}
	}()
	if e.Err != nil || e.Value == nil {
		return decoded{err: e.Err}
	}
	v, err := o.sched.Decode(e.Key, e.Value)
	if err != nil {
		return decoded{err: err}
	}
	return decoded{value: &v}
}
