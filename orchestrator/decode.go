package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"

	"github.com/keyplane/keyplane/internal/guard"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/scheduler"
)

// decoded is the result of decoding an event.
type decoded struct {
	value  *scheduler.Value
	err    error
	labels map[string]string // of a layer: see Declared
	by     string            // of a layer: see Request
}

// decodeAll decodes n events, on all CPUs if there are many.
func (o *Orchestrator) decodeAll(n int, event func(int) kvdbsync.Event) []decoded {
	return o.decodeOn(context.Background(), runtime.GOMAXPROCS(0), n, event)
}

// decodeOn decodes n events on so many goroutines, or fewer if there are few events. It
// stops early when ctx ends; the result is incomplete then.
func (o *Orchestrator) decodeOn(ctx context.Context, workers, n int, event func(int) kvdbsync.Event) []decoded {
	const atLeast = 64 // events per goroutine
	out := make([]decoded, n)
	workers = max(1, min(workers, n/atLeast))
	size := (n + workers - 1) / workers
	some := func(from, to int) {
		for i := from; i < to && ctx.Err() == nil; i++ {
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

// errInternal is the error of a value whose decoder panicked.
var errInternal = errors.New("internal error of the agent; the value cannot be decoded")

// Decode decodes an event for kvdbsync.Options.Decode. So a Feed can decode events on
// other CPUs while it still lists its store. c and log are those of the Orchestrator.
func Decode(c Committer, log *slog.Logger, e kvdbsync.Event) any { return decode(c, log, e) }

// decode returns the value of an event, unless the Feed has decoded it already.
func (o *Orchestrator) decode(e kvdbsync.Event) decoded {
	if done, ok := e.Decoded.(decoded); ok {
		return done
	}
	return decode(o.sched, o.log, e)
}

// decode refuses a value if its decoder panics: one value must not stop the agent.
func decode(c Committer, log *slog.Logger, e kvdbsync.Event) (out decoded) {
	err := guard.Run(func() error {
		out = decodeEvent(c, e)
		return nil
	})
	if err != nil {
		return refusePanic(log, e.Key, err)
	}
	return out
}

// refusePanic returns the error of a value whose decoder panicked, and logs the stack. The
// message of the error has no stack, because operators see it as the reason of INVALID.
func refusePanic(log *slog.Logger, key string, err error) decoded {
	if bug, ok := errors.AsType[*guard.Panic](err); ok {
		log.Error("decoding a value panicked", "key", key, "panic", bug.Value, "stack", bug.Stack)
		return decoded{err: fmt.Errorf("%w: %v", errInternal, bug.Value)}
	}
	return decoded{err: err}
}

// decodeEvent parses the value of an event. It keeps an error of the store as it is.
func decodeEvent(c Committer, e kvdbsync.Event) decoded {
	if e.Err != nil || e.Value == nil {
		return decoded{err: e.Err}
	}
	v, err := c.Decode(e.Key, e.Value)
	if err != nil {
		return decoded{err: err}
	}
	return decoded{value: &v}
}
