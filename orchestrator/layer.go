package orchestrator

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/scheduler"
)

// layer is a Layer with its content.
type layer struct {
	Layer
	rank     int // its place among the layers
	entries  map[string]*entry
	refused  int // entries with an error
	synced   bool
	problems []error
	doubts   []*doubt  // none is empty; the earliest deadline first
	asked    time.Time // when a listing was last asked for because of them

	// past is what is remembered until nothing can be missing any more of what the
	// source has now; less what something has come for.
	past     map[string]*recollection
	restored bool  // it was made entries, at least once
	had      int   // keys that were remembered
	data     data  // which the source was last known to have
	distrust error // why its first listing may be of other data

	told told
}

// entry is what a layer has under a key: the last valid value, and why the
// newest one is not that. It is never changed, but replaced.
type entry struct {
	valid *scheduler.Value
	err   error
}

// set replaces the old entry of a key; nil is nothing.
func (l *layer) set(key string, old, e *entry) {
	if old != nil && old.err != nil {
		l.refused--
	}
	if e != nil && e.err != nil {
		l.refused++
	}
	if e == nil {
		delete(l.entries, key)
	} else {
		l.entries[key] = e
	}
}

// ready yields a token when the layer has something.
func (l *layer) ready() <-chan struct{} {
	if l.Local != nil {
		return l.Local.ready.C()
	}
	return l.Input.Ready()
}

// arriving tells that the layer's source may be there at any moment: it is reading its
// store, or nothing has kept it from its store yet.
func (l *layer) arriving() bool {
	source, ok := l.Input.(healthy)
	if !ok {
		return false
	}
	h := source.Health()
	return h.State == kvdbsync.Syncing || h.State == kvdbsync.Connecting && h.Err == nil
}

// reportProblems logs the first problems that are new, and the number of all.
func (l *layer) reportProblems(log *slog.Logger, problems []error) {
	known := map[string]bool{}
	for _, p := range l.problems {
		known[p.Error()] = true
	}
	told, fresh := 0, 0
	for _, p := range problems {
		if known[p.Error()] {
			continue
		}
		if fresh++; told < mostFaults {
			told++
			log.Error("source has a problem", "source", l.Name, "err", p)
		}
	}
	if fresh > told {
		log.Error("source has more problems", "source", l.Name, "more", fresh-told, "problems", len(problems))
	}
	if len(problems) == 0 && len(l.problems) > 0 {
		log.Info("source has no problem any more", "source", l.Name)
	}
	l.problems = problems
}

// mostRefusals is how many values of one change are logged as refused, one by
// one. Their status has all of them.
const mostRefusals = 20

// reportRefusals logs why values of a change are not followed.
func (o *Orchestrator) reportRefusals(l *layer, events []kvdbsync.Event, ds []decoded) {
	refused := 0
	for i, d := range ds {
		if d.err == nil {
			continue
		}
		if refused++; refused > mostRefusals {
			continue
		}
		log, text := o.log.Error, "value refused, what was valid before stays in force"
		if errors.Is(d.err, scheduler.ErrUnimplemented) {
			log, text = o.log.Warn, "no descriptor handles this key; its state is UNIMPLEMENTED"
		}
		args := []any{"source", l.Name, "key", events[i].Key, "err", d.err}
		if at := events[i].Origin.String(); at != "" {
			args = append(args, "at", at)
		}
		log(text, args...)
	}
	if refused > mostRefusals {
		o.log.Error("more values refused, see their status", "source", l.Name, "more", refused-mostRefusals)
	}
}

// report logs what failed in a transaction.
func (o *Orchestrator) report(r *scheduler.Record) {
	for i := range r.Executed {
		op := &r.Executed[i]
		if op.NewErr != nil && !op.Noop {
			o.log.Warn("operation failed", "key", op.Key, "operation", op.Verb, "state", op.NewState, "err", op.NewErr)
		}
	}
	for _, err := range r.Unrefreshed {
		o.log.Warn("not read back", "err", fmt.Errorf("transaction %d: %w", r.Seq, err))
	}
}
