package orchestrator

import (
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/scheduler"
)

// decoded is what the bytes of an event say.
type decoded struct {
	value *scheduler.Value
	err   error
}

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

func (o *Orchestrator) decode(e kvdbsync.Event) decoded {
	if e.Err != nil || e.Value == nil {
		return decoded{err: e.Err}
	}
	message, err := models.Decode(e.Key, e.Value)
	if errors.Is(err, models.ErrNoModel) {
		return decoded{err: fmt.Errorf("%w: %w", scheduler.ErrUnimplemented, err)}
	}
	if err != nil {
		return decoded{err: err}
	}
	v, err := o.sched.Value(e.Key, message)
	if err != nil {
		return decoded{err: err}
	}
	return decoded{value: &v}
}
