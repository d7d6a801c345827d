package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/scheduler"
)

// A Declaration is the entry of one source for a key.
type Declaration struct {
	Key    string
	Source string
	// Writer says who wrote the newest value, as the description of its transaction does: "etcd, revision 57".
	// It is Source alone if no more is known.
	Writer   string
	Priority int
	// Effective means that this value takes effect: it is the valid one with the highest
	// priority.
	Effective bool
	// Err is the reason why the newest value is refused; nil: it is valid.
	Err error
	// HasValid means that a valid value is known; with Err, an earlier one.
	HasValid bool
	// Remembered says that the entry comes from before the restart, and the source has not
	// confirmed it yet.
	Remembered bool
	// Doubted says that the key is missing from the source but may not have been deleted.
	// A listing after the grace time decides, or Forget if the source is not configured.
	Doubted bool
}

// State is valid, refused or unimplemented.
func (c Declaration) State() string {
	switch {
	case c.Err == nil:
		return "valid"
	case errors.Is(c.Err, scheduler.ErrUnimplemented):
		return "unimplemented"
	}
	return "refused"
}

// ErrStopped is the error of Declarations, Effective, Declare and Local when Run has ended before
// their answer. Then a request may be in effect.
var ErrStopped = errors.New("the orchestrator has stopped")

// Declarations returns the entries of all sources for key, the highest priority first.
// Run's goroutine answers between transactions.
func (o *Orchestrator) Declarations(ctx context.Context, key string) ([]Declaration, error) {
	return ask(ctx, o, func() []Declaration { return o.declarations(key) })
}

// keysAtOnce is how many keys Run's goroutine looks up for DeclarationsUnder before it serves others.
const keysAtOnce = 500

// DeclarationsUnder is Declarations for all keys with the prefix, sorted by key. The entries of one key
// are of the same moment. Run's goroutine only collects keys and looks some up at a time: a client that asks
// again and again for all keys must not delay the changes of sources.
func (o *Orchestrator) DeclarationsUnder(ctx context.Context, prefix string) (out []Declaration, err error) {
	keys, err := ask(ctx, o, func() (keys []string) {
		for _, l := range o.sources {
			for e := range l.entries.All() {
				if key := e.key(); strings.HasPrefix(key, prefix) {
					keys = append(keys, key)
				}
			}
		}
		return keys
	})
	slices.Sort(keys)
	for part := range slices.Chunk(slices.Compact(keys), keysAtOnce) {
		some, err := ask(ctx, o, func() (some []Declaration) {
			for _, key := range part {
				some = append(some, o.declarations(key)...)
			}
			return some
		})
		if err != nil {
			return nil, err
		}
		out = append(out, some...)
	}
	return out, err
}

// declarations lists the sources that have the key, the highest priority first.
func (o *Orchestrator) declarations(key string) (out []Declaration) {
	decided := false
	for _, l := range o.sources {
		e := l.entries.Get(key)
		if e == nil {
			continue
		}
		past := l.saved[key]
		out = append(out, Declaration{
			Key: key, Source: l.Name, Writer: e.writer(l.Name), Priority: l.Priority,
			Effective: !decided && e.valid() != nil, Err: e.err(), HasValid: e.valid() != nil,
			Remembered: past != nil && past.entry == e, Doubted: l.unconfigured || l.isDoubted(key),
		})
		decided = decided || e.valid() != nil
	}
	return out
}

// A Held is the entry of one source for a key, whether or not it takes effect.
type Held struct {
	Key string
	// Message is the last valid value; nil: no value was valid. Nobody may change it.
	Message proto.Message
	// Err is the reason why the newest value is refused; nil: Message is the newest.
	Err    error
	Labels map[string]string
}

// Content returns the entries of one source or layer, sorted by key. The error is ErrNoSource
// if none has this name. Run's goroutine answers between transactions.
func (o *Orchestrator) Content(ctx context.Context, source string) ([]Held, error) {
	found := false
	all, err := ask(ctx, o, func() (out []Held) {
		for _, l := range o.sources {
			if l.Name != source {
				continue
			}
			found = true
			for e := range l.entries.All() {
				out = append(out, e.held())
			}
		}
		return out
	})
	slices.SortFunc(all, func(a, b Held) int { return cmp.Compare(a.Key, b.Key) }) // here: it takes long
	if err == nil && !found {
		err = fmt.Errorf("%w: %q", ErrNoSource, source)
	}
	return all, err
}

// held returns the entry as programs see it.
func (e *entry) held() Held {
	out := Held{Key: e.key(), Err: e.err(), Labels: e.labels()}
	if v := e.valid(); v != nil {
		out.Message = v.Message()
	}
	return out
}

// ask lets Run's goroutine answer a question.
func ask[T any](ctx context.Context, o *Orchestrator, question func() T) (answer T, err error) {
	done := make(chan struct{})
	select {
	case o.asked <- func() { answer = question(); close(done) }:
		<-done
		return answer, nil
	case <-o.stopped:
		return answer, ErrStopped
	case <-ctx.Done():
		return answer, fmt.Errorf("waiting for the end of a transaction: %w", ctx.Err())
	}
}
