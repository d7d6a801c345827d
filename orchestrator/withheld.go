package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/keyplane/keyplane/scheduler"
)

// A withholder is a Feed whose content may not be applied at times, such as that of a store in which another agent has the
// label; *kvdbsync.Source is one. A process that was paused may learn that in the middle of a transaction. The operations that
// have not begun then do not begin, and their keys are declared again when the content may be applied.
type withholder interface {
	// Withheld returns why nothing of the content may be applied now; nil: it may. Any goroutine may call it.
	Withheld() error
}

// withhold makes txn ask, before each operation, whether the content may still be applied that it comes from: that of l, or of
// several sources if l is nil. It returns the source of each key whose content may be withheld; nil: there is none.
func (o *Orchestrator) withhold(txn *scheduler.Txn, l *source) (of func() map[string]*source) {
	if l == nil && len(o.sources) == 1 {
		l = o.sources[0]
	}
	switch {
	case l == nil:
		all := o.sourcesOf(txn.Changes)
		of = func() map[string]*source { return all }
	case l.mayBeWithheld():
		of = sync.OnceValue(func() map[string]*source { return l.ofAll(txn.Changes) })
	default:
		return nil
	}
	txn.Withheld = func(key string) error {
		if l != nil && l.withheldNow() == nil {
			return nil
		}
		return of()[key].withheldNow()
	}
	return of
}

// ofAll returns l for each key of changes.
func (l *source) ofAll(changes []scheduler.Change) map[string]*source {
	out := make(map[string]*source, len(changes))
	for _, c := range changes {
		out[c.Key] = l
	}
	return out
}

// sourcesOf returns the source that decides about each key of changes, if its content may be withheld: the first with a valid
// value, else the first that has the key.
func (o *Orchestrator) sourcesOf(changes []scheduler.Change) map[string]*source {
	out := map[string]*source{}
	for _, c := range changes {
		at := slices.IndexFunc(o.sources, func(l *source) bool { return l.entries.Get(c.Key).valid() != nil })
		if at < 0 {
			at = slices.IndexFunc(o.sources, func(l *source) bool { return l.entries.Get(c.Key) != nil })
		}
		if at >= 0 && o.sources[at].mayBeWithheld() {
			out[c.Key] = o.sources[at]
		}
	}
	return out
}

// mayBeWithheld reports whether the content of l may be withheld at times. What was saved before the restart is used while
// the store is away, so while nobody knows who has the label.
func (l *source) mayBeWithheld() bool {
	_, ok := l.Feed.(withholder)
	return ok && l.synced
}

// withheldNow returns why nothing of l may be applied; nil: it may, or there is no l. Any goroutine may call it.
func (l *source) withheldNow() error {
	if l == nil {
		return nil
	}
	if feed, ok := l.Feed.(withholder); ok {
		if why := feed.Withheld(); why != nil {
			return fmt.Errorf("what %s says %w: %w", l.Name, errWithheld, why)
		}
	}
	return nil
}

var errWithheld = errors.New("may not be applied")

// missed remembers the keys of a transaction with operations that were withheld.
func (o *Orchestrator) missed(ctx context.Context, out outcome) {
	for _, c := range out.record.Values {
		if l := out.sources()[c.Key]; l != nil {
			if l.missed == nil {
				l.missed = map[string]bool{}
			}
			l.missed[c.Key] = true
		}
	}
	for _, l := range o.sources {
		o.again(ctx, l)
	}
}

// again declares the missed keys of l, if its content may be applied. What is there is read back first: who had the label
// may have changed it.
func (o *Orchestrator) again(ctx context.Context, l *source) {
	if len(l.missed) == 0 || l.withheldNow() != nil {
		return
	}
	var changes []scheduler.Change
	for key := range l.missed {
		changes = append(changes, o.resolve(key).change(key))
	}
	l.missed = nil
	o.start(ctx, l, scheduler.Txn{Description: l.Name + ": what was withheld", Changes: sorted(changes), Retry: o.retry, Refresh: true})
}
