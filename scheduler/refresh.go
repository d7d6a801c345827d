package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/scheduler/internal/graph"
)

// refresh corrects what is known to stand by what the descriptors retrieve, in
// the order in which they ask for each other's results. A descriptor whose
// Retrieve fails leaves what was known of its values as it was. coming is intent
// that is about to be followed, and counts as wanted.
func (s *Scheduler) refresh(ctx context.Context, r *run, ds []*descriptor, coming []Change) {
	fresh := map[graph.Kind][]*graph.Value{}
	for _, d := range ds {
		if d.retrieve != nil && !d.gate.Shut() {
			fresh[d] = nil
		}
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
	for _, d := range ds {
		if _, retrieved := fresh[d]; !retrieved {
			continue
		}
		if err := s.retrieve(ctx, r, d, fresh[d]); err != nil {
			err = fmt.Errorf("%s: %w", d.name, err)
			s.log.Error("cannot read back what stands", "descriptor", d.name, "err", err)
			r.rec.Unrefreshed = append(r.rec.Unrefreshed, err)
		}
	}
	s.notice(r)
}

func (s *Scheduler) retrieve(ctx context.Context, r *run, d *descriptor, fresh []*graph.Value) error {
	nodes := s.graph.Of(d)
	coming := lookup(fresh)
	ws := make([]wanted, 0, len(fresh)+len(nodes))
	for _, v := range fresh {
		ws = append(ws, wanted{v.Key, message(v)})
	}
	for _, n := range nodes {
		if v := n.Want(); v != nil && v.Err == nil && coming()[n.Key()] == nil {
			ws = append(ws, wanted{n.Key(), message(v)})
		}
	}
	items, found, err := s.collect(ctx, d, ws)
	if err != nil {
		return err
	}
	var lost []string
	for _, n := range nodes {
		if !found[n.Key()] && n.Have() != nil && n.Base() == nil {
			lost = append(lost, n.Key())
		}
	}
	slices.Sort(lost)
	for _, key := range lost {
		s.vanish(key)
		d.index.drop(d.nameIn(key))
	}
	for _, it := range items {
		if r.verbose {
			s.log.Info("read back", "descriptor", d.name, "key", it.key, "ours", !it.foreign, "value", messageText(it.value))
		}
		s.graph.Found(s.valueOf(d, it, coming()[it.key]), it.meta, it.foreign)
		d.remember(s.graph.Node(it.key)) // for those that retrieve after d
	}
	return nil
}

// lookup is values by their keys, made when first asked for: where nothing stands yet,
// nobody asks.
func lookup(values []*graph.Value) func() map[string]*graph.Value {
	return sync.OnceValue(func() map[string]*graph.Value {
		byKey := make(map[string]*graph.Value, len(values))
		for _, v := range values {
			byKey[v.Key] = v
		}
		return byKey
	})
}

// valueOf is what was found, as the graph has it: prepared before, if it is the message
// of what is coming or wanted.
func (s *Scheduler) valueOf(d *descriptor, it item, coming *graph.Value) *graph.Value {
	if coming == nil {
		if n := s.graph.Node(it.key); n != nil {
			coming = n.Want()
		}
	}
	if coming != nil && coming.Data == any(it.value) {
		return coming
	}
	return s.prepare(d, it.key, it.value)
}

// An item is something that stands.
type item struct {
	key     string
	value   proto.Message
	meta    any
	foreign bool
}

// collect reads back what stands of d's values; found are the keys.
func (s *Scheduler) collect(ctx context.Context, d *descriptor, ws []wanted) (items []item, found map[string]bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.VerbTimeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	found = map[string]bool{}
	for f, err := range d.retrieve(ctx, ws) {
		if err != nil {
			return nil, nil, err
		}
		if len(items) == 0 { // there is something
			items, found = make([]item, 0, len(ws)), make(map[string]bool, len(ws))
		}
		key, err := foundKey(d, f)
		if err != nil {
			s.log.Warn("retrieved something that cannot be kept", "descriptor", d.name, "key", f.key, "err", err)
			continue
		}
		if found[key] {
			s.log.Warn("retrieved twice, the first counts", "descriptor", d.name, "key", key)
			continue
		}
		found[key] = true
		items = append(items, item{key, f.value, f.meta, !s.ours(d, f, key)})
	}
	return items, found, ctx.Err()
}

func foundKey(d *descriptor, f found) (string, error) {
	if f.value == nil || !f.value.ProtoReflect().IsValid() {
		return "", errors.New("no value")
	}
	key := f.key
	if key == "" {
		var err error
		if key, err = d.keyOf(f.value); err != nil {
			return "", err
		}
	}
	if !d.has(key) {
		return "", fmt.Errorf("key %q is not one of %s", key, d.name)
	}
	return key, nil
}
