package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

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

// A Preview is what would follow if a source had another content.
type Preview struct {
	// Changes are those of the desired state, for the scheduler's Plan, sorted by key. A change
	// with an Err is refused.
	Changes []scheduler.Change
	// Kept are the keys for which the value of another source takes effect, sorted by key. So a
	// caller can tell them from keys that are already as the query wants them.
	Kept []Kept
}

// A Kept is a key of a query that does not get its content of the query: either a source of
// higher priority has another value, or the query deletes the key and any other source has it.
type Kept struct {
	Key string
	By  string // the name of the source whose value takes effect
}

// Preview returns what would follow if a source had another content. It changes nothing.
// Removals are not delayed, even if a listing of a store with the same content would be doubted.
//
// Values are validated on the goroutine of the caller. Run's goroutine does the rest between
// transactions.
func (o *Orchestrator) Preview(ctx context.Context, q PreviewQuery) (Preview, error) {
	next := make(map[string]decoded, len(q.Content))
	for i, d := range o.decodeAll(len(q.Content), func(i int) kvdbsync.Event { return q.Content[i] }) {
		next[q.Content[i].Key] = d
	}
	var unknown error
	out, err := ask(ctx, o, func() (out Preview) {
		out, unknown = o.preview(q, next)
		return out
	})
	return out, errors.Join(err, unknown)
}

// preview is Preview with the decoded content, by key.
func (o *Orchestrator) preview(q PreviewQuery, next map[string]decoded) (out Preview, err error) {
	at := slices.IndexFunc(o.sources, func(l *source) bool { return l.Name == q.Source })
	sources, present, fresh := o.sources, newEntries(), at < 0
	if fresh {
		if err := o.checkNew(q); err != nil {
			return out, err
		}
		at = o.placeOf(q.Source)
		sources = slices.Insert(slices.Clone(sources), at, &source{Source: Source{Name: q.Source}})
	} else {
		present = sources[at].entries
	}
	add := func(key string, e *entry) {
		stack := o.stack(key)
		before := resolveStack(stack)
		if fresh {
			stack = slices.Insert(slices.Clone(stack), at, e)
		} else {
			stack[at] = e
		}
		if after := resolveStack(stack); after != before {
			out.Changes = append(out.Changes, after.change(key))
		}
		if by := insteadOf(stack, at); by >= 0 {
			out.Kept = append(out.Kept, Kept{Key: key, By: sources[by].Name})
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
	out.Changes = sorted(out.Changes)
	slices.SortFunc(out.Kept, func(a, b Kept) int { return strings.Compare(a.Key, b.Key) })
	return out, nil
}

// insteadOf returns the index of the source whose value takes effect instead of the entry at an
// index; -1: there is none. A refused entry counts only below another source: otherwise the query
// has a change with its error.
func insteadOf(stack []*entry, at int) int {
	first := slices.IndexFunc(stack, func(e *entry) bool { return e.valid() != nil })
	switch {
	case first < 0 || first == at, first > at && stack[at] != nil:
		return -1
	case stack[at].valid() != nil && stack[at].err() == nil && proto.Equal(stack[at].last.Message(), stack[first].last.Message()):
		return -1
	}
	return first
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
