package scheduler

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/keyplane/keyplane/scheduler/internal/counters"
	"github.com/keyplane/keyplane/scheduler/internal/executor"
	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
	"github.com/keyplane/keyplane/scheduler/internal/valuetext"
)

// A reading defines the values of one descriptor that are read back.
type reading struct {
	d *descriptor
	// keys limits the reading; nil: all values of the descriptor.
	keys map[string]bool
}

// everything reads back all values of these descriptors, and their derived values that
// have a Retrieve of their own.
func (s *Scheduler) everything(ds []*descriptor) []reading {
	wanted := map[*descriptor]bool{}
	for _, d := range ds {
		wanted[d] = true
	}
	if len(ds) < len(s.registry.Order) {
		for _, d := range ds {
			for _, n := range s.graph.Of(d) {
				for part := range s.graph.Derived(n) {
					wanted[kind.Of(part)] = true
				}
			}
		}
	}
	var out []reading
	for _, d := range s.registry.Order {
		if wanted[d] {
			out = append(out, reading{d: d})
		}
	}
	return out
}

// readingsFor reads back the values that failed verbs may have changed: the key of each
// node and its derived values. A derived value without Retrieve is read back with its
// base.
func (s *Scheduler) readingsFor(failed []*graph.Node) []reading {
	keys := map[*descriptor]map[string]bool{}
	var add func(n *graph.Node)
	add = func(n *graph.Node) {
		if d := kind.Of(n); d != nil && d.Retrieve != nil {
			if keys[d] == nil {
				keys[d] = map[string]bool{}
			}
			keys[d][n.Key()] = true
		}
		for part := range s.graph.Derived(n) {
			add(part)
		}
	}
	for _, n := range failed {
		if n.Hung() || errors.Is(n.Err(), executor.ErrStalled) {
			continue // a running verb is read back when it returns; a stalled one was not called
		}
		for n.Base() != nil && (kind.Of(n) == nil || kind.Of(n).Retrieve == nil) {
			n = n.Base()
		}
		add(n)
	}
	var out []reading
	for _, d := range s.registry.Order {
		if keys[d] != nil {
			out = append(out, reading{d, keys[d]})
		}
	}
	return out
}

// wantReadings has r read back these values next. Values of a lost connection are left out,
// unless it is the one that r has found ready again.
func (s *Scheduler) wantReadings(r *run, readings []reading, joins *line) {
	r.readings, r.lines, r.claimed, r.silent = nil, map[*line]int{}, false, nil
	if joins != nil {
		r.lines[joins] = joins.link.Losses()
	}
	for _, rd := range readings {
		if l := lineOf(rd.d); rd.d.Retrieve != nil && (l == joins || !l.link.Lost()) {
			r.readings = append(r.readings, rd)
			r.lines[l] = l.link.Losses()
		}
	}
	r.readingBegan = time.Now()
}

// refresh reads back values while all other work waits. coming has changes of the current
// transaction, which count as desired.
func (s *Scheduler) refresh(ctx context.Context, r *run, readings []reading, coming []Change) {
	before := r.phase
	r.phase = readingBack
	if len(coming) > 0 {
		r.coming = make(map[string]*graph.Value, len(coming))
	}
	for _, c := range coming {
		if c.Value != nil && c.Value.v.Err == nil {
			r.coming[c.Key] = c.Value.v
		}
	}
	s.wantReadings(r, readings, nil)
	for !s.readBack(ctx, r) {
		s.await(ctx, r, false)
	}
	r.phase, r.coming = before, nil
}

// readBack replaces the known actual state by the result of Retrieve, in the order of
// RetrieveAfter. It returns false if r must wait before it calls readBack again. If
// Retrieve of a descriptor fails, its known state is kept. If a connection does not answer
// in time, its other descriptors are not asked: each of them would take as long again.
func (s *Scheduler) readBack(ctx context.Context, r *run) bool {
	if !s.claim(r) {
		return false
	}
	for {
		s.releaseLines(r)
		if len(r.readings) == 0 {
			break
		}
		rd := r.readings[0]
		if r.call == nil && r.silent[lineOf(rd.d)] == nil {
			if lineOf(rd.d).verbs > 0 {
				return false
			}
			r.call = s.call(ctx, r, rd)
		}
		if r.call != nil && !r.call.hasEnded() {
			return false
		}
		if !s.handleReading(r, rd) {
			r.yields = true
			return false
		}
	}
	s.notice(r)
	s.counters.Phase(counters.Refresh, r.readingBegan)
	return true
}

// canRead reports whether readBack can go on.
func (s *Scheduler) canRead(r *run) bool {
	switch {
	case !r.claimed:
		for l := range r.lines {
			if l.reader != nil {
				return false
			}
		}
		return true
	case r.call != nil:
		return r.call.hasEnded()
	}
	return lineOf(r.readings[0].d).verbs == 0
}

// handleReading applies the result of the first reading of r, or a part of it. It returns
// true if there is nothing left of it.
func (s *Scheduler) handleReading(r *run, rd reading) bool {
	l := lineOf(rd.d)
	err := r.silent[l]
	if r.call != nil {
		err = r.call.err
	}
	switch {
	case l.link.Losses() != r.lines[l]: // what was read may be gone
		r.leave(l)
		s.endCall(r)
		return true
	case err == nil:
		if !s.apply(r, r.call) {
			return false
		}
	default:
		if r.call != nil && l.losable && (errors.Is(err, ErrNoAnswer) || errors.Is(err, context.DeadlineExceeded)) {
			if r.silent == nil {
				r.silent = map[*line]error{}
			}
			r.silent[l] = fmt.Errorf("not asked, because %s got no answer: %w", rd.d.Name, err)
		}
		err = fmt.Errorf("%s: %w", rd.d.Name, err)
		s.log.Error("cannot read back the actual state", "descriptor", rd.d.Name, "err", err)
		r.rec.RefreshErrors = append(r.rec.RefreshErrors, err)
	}
	s.endCall(r)
	r.readings = r.readings[1:]
	return true
}

// endCall drops the call of the first reading. A call that is still running is cancelled,
// and its result is never used.
func (s *Scheduler) endCall(r *run) {
	if r.call != nil {
		r.call.cancel()
		s.calls.drop(r.call)
		r.call = nil
	}
}

// applyTime is the time after which other work may begin while a result is applied.
const applyTime = 5 * time.Millisecond

// apply replaces the known actual state by a part of what a call has read. It returns true
// if there is nothing left. Knowledge that is newer than the call is kept.
func (s *Scheduler) apply(r *run, c *readCall) bool {
	if !c.compared {
		c.lost, c.compared = s.notFound(c), true
	}
	begun := time.Now()
	inTime := func(n int) bool { return n%64 != 63 || time.Since(begun) < applyTime }
	for n := 0; inTime(n) && len(c.lost) > 0; n++ {
		key := c.lost[0]
		c.lost = c.lost[1:]
		if !c.stale[key] {
			s.graph.NotFound(key)
			s.vanished = append(s.vanished, key)
			c.d.Index.Drop(c.d.NameIn(key))
		}
	}
	for n := 0; inTime(n) && len(c.lost) == 0 && len(c.got.items) > 0; n++ {
		it := &c.got.items[0]
		c.got.items = c.got.items[1:]
		if c.stale[it.Key] {
			continue
		}
		ours := s.ours(c.d, it)
		if r.verbose {
			s.log.Info("read back", "descriptor", c.d.Name, "key", it.Key, "ours", ours, "value", valuetext.Line(it.Value))
		}
		s.graph.Found(s.valueOf(r, c.d, it), it.Meta, !ours)
		c.d.Remember(s.graph.Node(it.Key)) // for descriptors with RetrieveAfter
	}
	if len(c.lost)+len(c.got.items) > 0 {
		return false
	}
	if c.keys == nil {
		s.ledger.ReadBack(c.d)
	}
	return true
}

// valueOf returns the graph's value for a retrieved item. It reuses the coming or the
// desired value if it has the same message.
func (s *Scheduler) valueOf(r *run, d *descriptor, it *kind.Found) *graph.Value {
	known := r.coming[it.Key]
	if known == nil {
		if n := s.graph.Node(it.Key); n != nil {
			known = n.Desired()
		}
	}
	if known != nil && known.Data == any(it.Value) {
		return known
	}
	return s.registry.Actual(d, it.Key, it.Value)
}

// notFound returns the keys of actual values that a call has not found, sorted.
func (s *Scheduler) notFound(c *readCall) (lost []string) {
	for _, n := range s.nodesOf(c.reading) {
		if n.Actual() != nil && !c.got.keys[n.Key()] && !c.stale[n.Key()] {
			lost = append(lost, n.Key())
		}
	}
	slices.Sort(lost)
	return lost
}

// nodesOf returns the nodes with an actual state that the reading decides.
func (s *Scheduler) nodesOf(rd reading) []*graph.Node {
	if rd.keys == nil && rd.d.Verbs.Hung() == 0 {
		return s.graph.Of(rd.d)
	}
	if rd.keys == nil {
		return slices.DeleteFunc(slices.Clone(s.graph.Of(rd.d)), (*graph.Node).Hung)
	}
	out := make([]*graph.Node, 0, len(rd.keys))
	for _, key := range slices.Sorted(maps.Keys(rd.keys)) {
		if n := s.graph.Node(key); n != nil && !n.Hung() {
			out = append(out, n)
		}
	}
	return out
}

// A retrieved is the result of a reading: the items and their keys.
type retrieved struct {
	items []kind.Found // with their keys
	keys  map[string]bool
}

// collect reads back the values of rd. A call that does not return in time is abandoned; when
// it returns, the descriptor is read back again, with those that were not asked because of it.
func (s *Scheduler) collect(ctx context.Context, rd reading, ws []kind.Desired) (retrieved, error) {
	read := func(ctx context.Context) (retrieved, error) {
		items, found, err := s.read(ctx, rd, ws)
		return retrieved{items, found}, err
	}
	return executor.Read(ctx, &rd.d.Reads, s.opts.VerbTimeout, read, func(took time.Duration) {
		s.log.Info("an abandoned call of Retrieve has returned", "descriptor", rd.d.Name, "took", took)
		s.inbox.Refresh(s.notAskedWithout(rd.d)...)
	})
}

// notAskedWithout returns the names of d and of the descriptors that are not asked if d gets no
// answer.
func (s *Scheduler) notAskedWithout(d *descriptor) []string {
	names := []string{d.Name}
	for _, other := range s.registry.Order {
		if other != d && d.Losable && other.Line == d.Line {
			names = append(names, other.Name)
		}
	}
	return names
}

// read calls Retrieve and collects its valid items. It ends with ctx if Retrieve obeys it.
func (s *Scheduler) read(ctx context.Context, rd reading, ws []kind.Desired) (items []kind.Found, found map[string]bool, err error) {
	d := rd.d
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	found = map[string]bool{}
	for f, err := range rd.retrieve(ctx, ws) {
		if err != nil {
			return nil, nil, err
		}
		if len(items) == 0 { // allocate only if needed
			items, found = make([]kind.Found, 0, len(ws)), make(map[string]bool, len(ws))
		}
		key, err := d.FoundKey(f)
		if err != nil {
			s.log.Warn("retrieved value is ignored", "descriptor", d.Name, "key", f.Key, "err", err)
			continue
		}
		if rd.keys != nil && !rd.keys[key] {
			continue
		}
		if found[key] {
			s.log.Warn("retrieved twice; the first value counts", "descriptor", d.Name, "key", key)
			continue
		}
		found[key] = true
		f.Key = key
		items = append(items, f)
	}
	return items, found, ctx.Err()
}

// retrieve calls the cheapest verb for the reading.
func (rd reading) retrieve(ctx context.Context, ws []kind.Desired) iter.Seq2[kind.Found, error] {
	if rd.keys == nil || rd.d.RetrieveSome == nil {
		return rd.d.Retrieve(ctx, ws)
	}
	return rd.d.RetrieveSome(ctx, slices.Sorted(maps.Keys(rd.keys)), ws)
}
