package scheduler

import (
	"fmt"
	"strings"
	"time"
)

// A Running is a verb that runs.
type RunningVerb struct {
	Key       string
	Verb      Verb
	For       time.Duration
	Abandoned bool // the scheduler does not wait for it any more: see ErrNoAnswer
}

func (r RunningVerb) String() string {
	text := fmt.Sprintf("%s running for %s", strings.ToLower(r.Verb.String()), seconds(r.For.Truncate(time.Second)))
	if r.Abandoned {
		text += ", abandoned"
	}
	return text
}

// Running returns the verb of key that runs at this moment, if one does. No transaction waits
// for it.
func (s *Scheduler) Running(key string) (RunningVerb, bool) {
	for _, b := range s.bounds {
		if r, ok := b.running(key); ok {
			return r, true
		}
	}
	return RunningVerb{}, false
}

func (b *southbound) running(key string) (RunningVerb, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for w := range b.workers {
		if r, ok := w.running(key); ok {
			return r, true
		}
	}
	for w := range b.hung {
		if r, ok := w.running(key); ok {
			r.Abandoned = true
			return r, true
		}
	}
	return RunningVerb{}, false
}

func (w *worker) running(key string) (RunningVerb, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.chunk[w.done : w.done+w.at] {
		if t.op.Node.Key() == key {
			return RunningVerb{Key: key, Verb: verbs[t.op.Verb], For: time.Since(w.begun)}, true
		}
	}
	return RunningVerb{}, false
}
