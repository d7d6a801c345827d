package scheduler

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

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
		if n.Hung() || errors.Is(n.Err(), ErrStalled) {
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

// refresh replaces the known actual state by the result of Retrieve, in the order of
// RetrieveAfter. If Retrieve of a descriptor fails, its known state is kept. If a connection
// does not answer in time, its other descriptors are not asked: each of them would make
// all values wait for the timeout again. coming has changes of the current transaction,
// which count as desired.
func (s *Scheduler) refresh(ctx context.Context, r *run, readings []reading, coming []Change) {
	began := time.Now()
	defer func() { s.stats.phase(PhaseRefresh, began) }()
	readings = slices.DeleteFunc(readings, func(rd reading) bool { return rd.d.Retrieve == nil || rd.d.Link.Down() })
	fresh := map[graph.Kind][]*graph.Value{}
	for _, rd := range readings {
		fresh[rd.d] = nil
	}
	for _, c := range coming {
		if c.Value == nil || c.Value.v.Err != nil {
			continue
		}
		v := c.Value.v
		if vs, retrieved := fresh[v.Kind]; retrieved {
			fresh[v.Kind] = append(vs, v)
		}
	}
	silent := map[*graph.Connection]error{}
	for _, rd := range readings {
		err := silent[rd.d.Link]
		if err == nil {
			err = s.retrieve(ctx, r, rd, fresh[rd.d])
			if rd.d.Link != nil && (errors.Is(err, ErrNoAnswer) || errors.Is(err, context.DeadlineExceeded)) {
				silent[rd.d.Link] = fmt.Errorf("not asked, because %s got no answer: %w", rd.d.Name, err)
			}
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", rd.d.Name, err)
			s.log.Error("cannot read back the actual state", "descriptor", rd.d.Name, "err", err)
			r.rec.RefreshErrors = append(r.rec.RefreshErrors, err)
		}
	}
	s.notice(r)
}

func (s *Scheduler) retrieve(ctx context.Context, r *run, rd reading, fresh []*graph.Value) error {
	d, nodes := rd.d, s.nodesOf(rd)
	coming := lookup(fresh)
	ws := make([]kind.Desired, 0, len(fresh)+len(nodes))
	for _, v := range fresh {
		ws = append(ws, kind.Desired{Key: v.Key, Value: kind.Message(v)})
	}
	asked := nodes
	if rd.keys != nil && d.RetrieveSome == nil {
		asked = s.graph.Of(d) // Retrieve needs all desired values
	}
	for _, n := range asked {
		if v := n.Desired(); v != nil && v.Err == nil && coming()[n.Key()] == nil {
			ws = append(ws, kind.Desired{Key: n.Key(), Value: kind.Message(v)})
		}
	}
	got, err := s.collect(ctx, rd, ws)
	if err != nil {
		return err
	}
	s.markNotFound(d, nodes, got.keys)
	for _, it := range got.items {
		if r.verbose {
			s.log.Info("read back", "descriptor", d.Name, "key", it.Key, "ours", !it.Foreign, "value", valuetext.Line(it.Value))
		}
		s.graph.Found(s.valueOf(d, it, coming()[it.Key]), it.Meta, it.Foreign)
		d.Remember(s.graph.Node(it.Key)) // for descriptors with RetrieveAfter
	}
	if rd.keys == nil {
		s.ledger.ReadBack(d)
	}
	return nil
}

// markNotFound records that the actual values of nodes that were not found are lost.
func (s *Scheduler) markNotFound(d *descriptor, nodes []*graph.Node, found map[string]bool) {
	var lost []string
	for _, n := range nodes {
		if !found[n.Key()] && n.Actual() != nil {
			lost = append(lost, n.Key())
		}
	}
	slices.Sort(lost)
	for _, key := range lost {
		s.graph.NotFound(key)
		s.vanished = append(s.vanished, key)
		d.Index.Drop(d.NameIn(key))
	}
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

// lookup returns a lazy map of values by key. In an empty system nobody needs it.
func lookup(values []*graph.Value) func() map[string]*graph.Value {
	return sync.OnceValue(func() map[string]*graph.Value {
		byKey := make(map[string]*graph.Value, len(values))
		for _, v := range values {
			byKey[v.Key] = v
		}
		return byKey
	})
}

// valueOf returns the graph's value for a retrieved item. It reuses the coming or the
// desired value if it has the same message.
func (s *Scheduler) valueOf(d *descriptor, it kind.Found, coming *graph.Value) *graph.Value {
	if coming == nil {
		if n := s.graph.Node(it.Key); n != nil {
			coming = n.Desired()
		}
	}
	if coming != nil && coming.Data == any(it.Value) {
		return coming
	}
	return s.registry.Actual(d, it.Key, it.Value)
}

// A retrieved is the result of a reading: the items and their keys.
type retrieved struct {
	items []kind.Found
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
		s.inbox.refresh.add(s.inbox, s.notAskedWithout(rd.d))
	})
}

// notAskedWithout returns the names of d and of the descriptors that are not asked if d gets no
// answer.
func (s *Scheduler) notAskedWithout(d *descriptor) []string {
	names := []string{d.Name}
	for _, other := range s.registry.Order {
		if other != d && d.Link != nil && other.Link == d.Link {
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
		items = append(items, kind.Found{Key: key, Value: f.Value, Meta: f.Meta, Foreign: !s.ours(d, f, key)})
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
