package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/scheduler"
)

// ErrNoSource is the error of Preview for a name without a source.
var ErrNoSource = errors.New("no such source")

// A PreviewQuery is a possible content of one source.
type PreviewQuery struct {
	Source string // the name of a source or a layer
	// Content has one event for each key. A key of the source that is not in it is deleted. The
	// last valid value stays for an event with an Err or with a value that is refused.
	Content []kvdbsync.Event
	// Keep leaves the keys that are not in Content as they are. Then an event without Value and
	// Err deletes its key.
	Keep bool
	// New allows a layer that does not exist yet.
	New bool
}

// Preview returns the changes of the desired state that would follow if a source had another
// content. It changes nothing. Removals are not delayed, even if a listing of a store with
// the same content would be doubted. The changes are those of the scheduler's Plan, sorted by key;
// a change with an Err is refused.
//
// Values are validated on the goroutine of the caller. Run's goroutine does the rest between
// transactions.
func (o *Orchestrator) Preview(ctx context.Context, q PreviewQuery) ([]scheduler.Change, error) {
	next := make(map[string]decoded, len(q.Content))
	for i, d := range o.decodeAll(len(q.Content), func(i int) kvdbsync.Event { return q.Content[i] }) {
		next[q.Content[i].Key] = d
	}
	var unknown error
	changes, err := ask(ctx, o, func() (out []scheduler.Change) {
		out, unknown = o.preview(q, next)
		return out
	})
	return changes, errors.Join(err, unknown)
}

// preview is Preview with the decoded content, by key.
func (o *Orchestrator) preview(q PreviewQuery, next map[string]decoded) ([]scheduler.Change, error) {
	at := slices.IndexFunc(o.sources, func(l *source) bool { return l.Name == q.Source })
	present := newEntries()
	if at >= 0 {
		present = o.sources[at].entries
	} else if err := o.checkNew(q); err != nil {
		return nil, err
	}
	var out []scheduler.Change
	add := func(key string, e *entry) {
		stack := o.stack(key)
		before := resolveStack(stack)
		if at >= 0 {
			stack[at] = e
		} else {
			stack = slices.Insert(slices.Clone(stack), o.placeOf(q.Source), e)
		}
		if after := resolveStack(stack); after != before {
			out = append(out, after.change(key))
		}
	}
	for key, d := range next {
		if d.value == nil && d.err == nil { // a deletion, which only Keep allows
			add(key, nil)
			continue
		}
		add(key, d.entryAfter(key, present.Get(key)))
	}
	for e := range present.All() {
		if _, stays := next[e.key()]; !stays && !q.Keep {
			add(e.key(), nil)
		}
	}
	return sorted(out), nil
}

// checkNew refuses a source that does not exist, unless it could be a new layer.
func (o *Orchestrator) checkNew(q PreviewQuery) error {
	if q.New && o.layers.Max > 0 {
		return o.checkLayer(q.Source)
	}
	var names []string
	for _, l := range o.sources {
		names = append(names, l.Name)
	}
	return fmt.Errorf("%w: %q; expected one of %s", ErrNoSource, q.Source, strings.Join(names, ", "))
}

// placeOf returns the index among the sources that a new layer would have.
func (o *Orchestrator) placeOf(name string) int {
	priority := o.layers.Priority(name)
	at := slices.IndexFunc(o.sources, func(l *source) bool {
		return l.Priority < priority || l.Priority == priority && l.Name > name
	})
	if at < 0 {
		return len(o.sources)
	}
	return at
}
