// Package readback reads back the actual state of values: it calls Retrieve of their descriptors,
// and gives the results to the graph.
//
//	reader.Want(&reading, reader.Everything(descriptors), nil)
//	for reader.Go(ctx, &reading) != readback.Done {
//		... // wait until reader.Ready or the end of a verb, then while !reader.CanGo(&reading)
//	}
//
//	a Reading  waits for                                      then
//	wanted     other readings of the connection of its first  claimed: no verb of this connection begins
//	           part
//	claimed    the verbs that are running                     the call of that part; after a while: wanted, when they have ended
//	           the call                                       its result is applied, in pieces
//	applied                                                   the next part
//
// A Reading has one connection at a time: those of its other parts neither wait for it nor hold it up.
//
// The goroutine of the scheduler owns all of it. Only Retrieve runs on goroutines of its own:
// one call at a time for each Reading. What is learned while a call runs is newer than its
// result, so the result says nothing about it.
package readback

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/keyplane/keyplane/internal/wake"
	"github.com/keyplane/keyplane/scheduler/internal/executor"
	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
	"github.com/keyplane/keyplane/scheduler/internal/memory"
	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// Options are the parts of the scheduler that a Reader uses. All are required.
type Options struct {
	Log      *slog.Logger
	Graph    *graph.Graph
	Registry *kind.Registry
	Ledger   *memory.Ledger
	Timeout  time.Duration // of one call of Retrieve
	// Again requests that descriptors are read back soon. Any goroutine may call it, also after the end of the
	// scheduler.
	Again func(descriptors ...string)
	// Vanished gets the key of each value that was not found any more.
	Vanished func(key string)
	// Changed gets the key of each value that was as desired, and is not any more.
	Changed func(key string)
	// Shown gets the values of a descriptor that the graph does not keep.
	Shown func(d *kind.Descriptor, found []kind.Found)
}

// A Reader reads back the values of one scheduler.
type Reader struct {
	Options
	calls  calls
	unread *unread
}

// New returns a Reader that reads nothing yet.
func New(o Options) *Reader {
	return &Reader{o, calls{ready: wake.New()}, newUnread(o.Again)}
}

// Ready is ready after the end of a call: a Reading may go on.
func (rb *Reader) Ready() <-chan struct{} { return rb.calls.ready.C() }

// A Reading is a number of parts that are read back one after the other. The zero value reads
// nothing.
type Reading struct {
	Nobody  <-chan struct{} // closed: nobody waits for the result any more; nil: never
	Coming  Coming          // they count as desired
	Verbose bool            // log each value that is read back
	Began   time.Time       // when the parts were wanted

	errs        []error                    // the reasons why descriptors could not be read back
	parts       []Part                     // not read yet; the first is being read
	connections map[*kind.Connection]int   // of the parts, with the losses when they were wanted
	joins       *kind.Connection           // was found ready again; nil: none was
	rests       bool                       // notifications asked for it; see kind.Rest
	until       time.Time                  // when it has waited too long for verbs; zero: it does not wait
	call        *call                      // of the first part; nil: not begun
	silent      map[*kind.Connection]error // those that are not asked again
}

// Want has r read back these parts next. Values of a lost connection are left out, unless it is
// joins, which was found ready again.
func (rb *Reader) Want(r *Reading, parts []Part, joins *kind.Connection) {
	r.parts, r.connections, r.silent = nil, map[*kind.Connection]int{}, nil
	r.joins, r.rests, r.until = joins, false, time.Time{}
	if joins != nil {
		r.connections[joins] = joins.Losses()
	}
	for _, p := range parts {
		if c := p.Of.Connection; p.Of.Retrieve != nil && (c == joins || !c.Lost()) {
			r.parts = append(r.parts, p)
			r.connections[c] = c.Losses()
		}
	}
	r.parts = grouped(r.parts)
	r.Began = time.Now()
}

// Wanted reports whether r has connections to read. That is so even if one has no values.
func (r *Reading) Wanted() bool { return len(r.connections) > 0 }

// TakeErrors returns the reasons why descriptors could not be read back, once.
func (r *Reading) TakeErrors() []error {
	errs := r.errs
	r.errs = nil
	return errs
}

// Progress is how far a Reading has come.
type Progress uint8

const (
	Waits  Progress = iota // for its connections or its call; see Reader.CanGo
	Yields                 // it can go on, but other work may go first
	Done
)

// Go replaces the known actual state by the result of Retrieve, in the order of
// RetrieveAfter, until r must wait. If Retrieve of a descriptor fails, its known state is kept, those
// that are read after it are not asked, and all of them are read again soon. If a connection does not
// answer in time, its other descriptors are not asked either: each of them would take as long again.
func (rb *Reader) Go(ctx context.Context, r *Reading) Progress {
	for {
		rb.release(r)
		c := r.next()
		switch {
		case c == nil:
			return Done
		case c.Losses() != r.connections[c]: // what was read may be gone
			rb.endCall(r)
			rb.leave(r, c)
			continue
		case !rb.claim(r, c):
			return Waits
		case !r.reads(c):
			continue
		}
		p := r.parts[0]
		if r.call == nil && rb.unable(r, p) == nil {
			if c.Busy() {
				rb.awaitVerbs(r, c)
				return Waits
			}
			r.until, c.Patience = time.Time{}, 0
			r.call = rb.begin(ctx, r, p)
		}
		if r.call != nil && !r.call.hasEnded() {
			return Waits
		}
		if !rb.handle(r, p) {
			return Yields
		}
	}
}

// CanGo reports whether Go can do something.
func (rb *Reader) CanGo(r *Reading) bool {
	c := r.next()
	switch {
	case r.call != nil:
		return r.call.hasEnded()
	case c == nil, c.Losses() != r.connections[c]:
		return true
	case !r.has(c):
		return r.mayClaim(c)
	}
	return !c.Busy() || r.isImpatient(c)
}

// handle applies the result of the first part of r, or a piece of it. It returns true if there is
// nothing left of it.
func (rb *Reader) handle(r *Reading, p Part) bool {
	c := p.Of.Connection
	err := rb.unable(r, p)
	if r.call != nil {
		err = r.call.err
	}
	switch {
	case err == nil:
		if !rb.apply(r, r.call) {
			return false
		}
		if p.Keys == nil {
			rb.unread.remove(p.Of.Name)
			rb.Graph.Known(p.Of)
		}
	default:
		if r.call != nil && c.Losable && (errors.Is(err, executor.ErrNoAnswer) || errors.Is(err, context.DeadlineExceeded)) {
			if r.silent == nil {
				r.silent = map[*kind.Connection]error{}
			}
			r.silent[c] = fmt.Errorf("not asked, because %s got no answer: %w", p.Of.Name, err)
		}
		news := rb.unread.add(p.Of.Name, err)
		rb.Graph.Unread(p.Of, "it cannot be read back: "+err.Error())
		err = fmt.Errorf("%s: %w", p.Of.Name, err)
		// It is repeated each minute, and may never succeed. Whoever ended it knows that.
		if news && !errors.Is(err, context.Canceled) {
			rb.Log.Error("cannot read back the actual state", "descriptor", p.Of.Name, "err", err)
		}
		r.errs = append(r.errs, err)
	}
	rb.endCall(r)
	r.parts = r.parts[1:]
	return true
}

// unable returns the reason why a part is not asked for; nil: it is.
func (rb *Reader) unable(r *Reading, p Part) error {
	return cmp.Or(r.silent[p.Of.Connection], rb.unread.before(p.Of, rb.Registry.Order))
}

// endCall drops the call of the first part. A call that is still running is cancelled,
// and its result is never used.
func (rb *Reader) endCall(r *Reading) {
	if r.call != nil {
		r.call.cancel()
		rb.calls.drop(r.call)
		r.call = nil
	}
}

// applyTime is the time after which other work may begin while a result is applied.
const applyTime = 5 * time.Millisecond

// apply replaces the known actual state by a piece of what a call has read. It returns true
// if there is nothing left. Knowledge that is newer than the call is kept.
func (rb *Reader) apply(r *Reading, c *call) bool {
	if !c.compared {
		c.lost, c.compared = rb.notFound(c), true
	}
	begun := time.Now()
	inTime := func(n int) bool { return n%64 != 63 || time.Since(begun) < applyTime }
	for n := 0; inTime(n) && len(c.lost) > 0; n++ {
		rb.applyLost(c, c.lost[0])
		c.lost = c.lost[1:]
	}
	for n := 0; inTime(n) && len(c.lost) == 0 && len(c.got.Items) > 0; n++ {
		rb.applyFound(r, c, &c.got.Items[0])
		c.got.Items = c.got.Items[1:]
	}
	if len(c.lost)+len(c.got.Items) > 0 {
		return false
	}
	if c.Keys == nil {
		rb.Ledger.ReadBack(c.Of)
	}
	if c.again {
		rb.Again(c.Of.Name)
	}
	if c.readsAll() {
		rb.Shown(c.Of, c.got.shown)
	}
	rb.identify(c.Of)
	return true
}

// applyLost says that a value was not found.
func (rb *Reader) applyLost(c *call, key string) {
	if c.outdated(key) {
		return
	}
	rb.Graph.NotFound(key)
	if !c.Of.Known.Unknown() {
		rb.Vanished(key) // else it may have gone with its connection
	}
	c.Of.Index.Drop(c.Of.NameIn(key))
}

// applyFound makes a value that was found the actual one.
func (rb *Reader) applyFound(r *Reading, c *call, it *kind.Found) {
	if c.outdated(it.Key) {
		return
	}
	ours := rb.ours(c.Of, it)
	if r.Verbose {
		rb.Log.Info("read back", "descriptor", c.Of.Name, "key", it.Key, "ours", ours, "value", value.Line(it.Value))
	}
	changed, vanished := rb.Graph.Found(rb.valueOf(r, c.Of, it), it.Meta, !ours)
	if changed {
		rb.Changed(it.Key)
		vanished = nil // they have gone with the change
	}
	for _, key := range vanished {
		rb.Vanished(key)
	}
	c.Of.Remember(rb.Graph.Node(it.Key)) // for descriptors with RetrieveAfter
}

// identify looks again at the identities of values that depend on those of d.
func (rb *Reader) identify(d *kind.Descriptor) {
	if d.Referenced {
		for _, n := range rb.Graph.Of(d) {
			rb.Graph.Identify(n)
		}
	}
}

// valueOf returns the graph's value for a retrieved item. It reuses the coming or the
// desired value if it has the same message.
func (rb *Reader) valueOf(r *Reading, d *kind.Descriptor, it *kind.Found) *graph.Value {
	known := r.Coming.get(d, it.Key)
	if known == nil {
		if n := rb.Graph.Node(it.Key); n != nil {
			known = n.Desired()
		}
	}
	if known != nil && known.Data == any(it.Value) {
		return known
	}
	return rb.Registry.Actual(d, it.Key, it.Value)
}

// notFound returns the keys of actual values that a call has not found, sorted.
func (rb *Reader) notFound(c *call) (lost []string) {
	for _, n := range rb.nodesOf(c.Part) {
		if n.Actual() != nil && !c.got.keys[n.Key()] && !c.outdated(n.Key()) {
			lost = append(lost, n.Key())
		}
	}
	slices.Sort(lost)
	return lost
}

// ours reports whether a retrieved item is ours. The rules are those of
// Found.OwnerUnknown. A mistake here would delete a value of somebody else, or leave one
// of ours for ever.
func (rb *Reader) ours(d *kind.Descriptor, it *kind.Found) bool {
	switch {
	case d.Passive() || it.Foreign:
		return false
	case it.OwnerUnknown:
		if n := rb.Graph.Node(it.Key); n != nil && n.Base() != nil {
			return !n.Base().Foreign() // a derived value has the owner of its base
		}
		return rb.Ledger.Has(it.Key)
	}
	return true
}
