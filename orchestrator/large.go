package orchestrator

import (
	"context"
	"runtime"
	"sync"

	"github.com/keyplane/keyplane/internal/budget"
	"github.com/keyplane/keyplane/internal/wake"
	"github.com/keyplane/keyplane/kvdbsync"
)

// mostAtOnce is the number of bytes, of keys and values, that Run's goroutine decodes itself
// in one turn. That takes some milliseconds. It is small, because the changes of all other
// sources wait meanwhile.
const mostAtOnce = 64 << 10

// A largeDecoder decodes large changes of sources beside Run's goroutine. A source can bring
// megabytes of values at once, which take seconds on a busy machine. The other sources do
// not wait for them.
//
// A source with a change in here is busy: Run's goroutine takes nothing else from it. So
// the changes of a source are merged in their order, and each source has at most one here.
//
// Changes are decoded one after the other, and large ones in parts, since decoding a value takes
// up to ten times its bytes, and a value that turns out to be invalid needs them only for that
// time. No deadlock: decoding waits for its turn and for Options.Decoding, and whoever has one of
// them only computes.
type largeDecoder struct {
	memory  *budget.Budget
	ready   wake.Signal   // set when there are decoded changes
	turn    chan struct{} // has a token while a change is decoded
	working sync.WaitGroup

	mu   sync.Mutex // guards done
	done []arrival
}

// An arrival is a change of a source that was decoded by a largeDecoder.
type arrival struct {
	source *source
	change kvdbsync.Change
}

// newLargeDecoder returns one that decodes nothing yet.
func newLargeDecoder(memory *budget.Budget) largeDecoder {
	return largeDecoder{memory: memory, ready: wake.New(), turn: make(chan struct{}, 1)}
}

// take removes and returns the decoded changes, oldest first.
func (d *largeDecoder) take() []arrival {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := d.done
	d.done = nil
	return out
}

// put adds a decoded change.
func (d *largeDecoder) put(l *source, c kvdbsync.Change) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.done = append(d.done, arrival{l, c})
	d.ready.Set()
}

// DecodingCost is about the memory, in bytes, that decoding takes for each byte of a value.
const DecodingCost = 6

// mostDecoding is the memory, in bytes, that decoding a part of a change takes, unless a single
// value takes more.
const mostDecoding = 4 << 20

// nextPart returns the number of events that are decoded together, from the first one on, and
// about the memory that this takes.
func nextPart(events []kvdbsync.Event) (n int, bytes int64) {
	for i := range events {
		need := int64(0)
		if e := &events[i]; e.Decoded == nil {
			need = int64(len(e.Value)) * DecodingCost
		}
		if i > 0 && bytes+need > mostDecoding {
			return i, bytes
		}
		bytes += need
	}
	return len(events), bytes
}

// isLarge reports whether decoding the events would make the other sources wait.
func isLarge(events []kvdbsync.Event) bool {
	bytes := 0
	for i := range events {
		e := &events[i]
		if e.Decoded != nil || e.Value == nil {
			continue
		}
		if bytes += len(e.Key) + len(e.Value); bytes > mostAtOnce {
			return true
		}
	}
	return false
}

// decodeLarge decodes a change on other goroutines. They leave one processor to Run's
// goroutine. When ctx ends the change is dropped, as the agent ends too.
func (o *Orchestrator) decodeLarge(ctx context.Context, l *source, c kvdbsync.Change) {
	l.busy = true
	o.large.working.Go(func() {
		o.large.turn <- struct{}{}
		defer func() { <-o.large.turn }()
		for rest := c.Events; len(rest) > 0; {
			n, bytes := nextPart(rest)
			if !o.decodePart(ctx, rest[:n], bytes) {
				return
			}
			rest = rest[n:]
		}
		o.large.put(l, c)
	})
}

// decodePart decodes events as soon as there is so much memory. It returns false if ctx has ended.
func (o *Orchestrator) decodePart(ctx context.Context, events []kvdbsync.Event, bytes int64) bool {
	leave, err := o.large.memory.Enter(ctx, bytes)
	if err != nil {
		return false
	}
	defer leave()
	workers := max(1, runtime.GOMAXPROCS(0)-1)
	for i, d := range o.decodeOn(ctx, workers, len(events), func(i int) kvdbsync.Event { return events[i] }) {
		events[i].Decoded = d
	}
	return ctx.Err() == nil
}
