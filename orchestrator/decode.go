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

// decode turns bytes into values, on all processors where there are many.
func (o *Orchestrator) decode(events []kvdbsync.Event) []decoded {
	const atLeast = 64 // events for a goroutine
	out := make([]decoded, len(events))
	workers := max(1, min(runtime.GOMAXPROCS(0), len(events)/atLeast))
	size := (len(events) + workers - 1) / workers
	var wg sync.WaitGroup
	for from := size; from < len(events); from += size {
		wg.Go(func() { o.decodeRange(events, out, from, min(from+size, len(events))) })
	}
	o.decodeRange(events, out, 0, min(size, len(events)))
	wg.Wait()
	return out
}

func (o *Orchestrator) decodeRange(events []kvdbsync.Event, out []decoded, from, to int) {
	for i := from; i < to; i++ {
		out[i] = o.decodeOne(events[i])
	}
}

func (o *Orchestrator) decodeOne(e kvdbsync.Event) decoded {
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
