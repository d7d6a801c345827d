package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/keyplane/keyplane/scheduler/internal/graph"
)

// refresh corrects what is known to stand by what the descriptors retrieve, in
// the order in which they ask for each other's results. A descriptor whose
// Retrieve fails leaves what was known of its values as it was. coming is intent
// that is about to be followed, and counts as wanted.
func (s *Scheduler) refresh(ctx context.Context, r *run, ds []*descriptor, coming []Change) {
	fresh := map[graph.Kind][]wanted{}
	for _, d := range ds {
		if d.retrieve != nil && !d.gate.Shut() {
			fresh[d] = nil
		}
	}
	for _, c := range coming {
		if c.Value == nil || c.Value.v.Err != nil {
			continue
		}
		k := c.Value.v.Kind
		if ws, retrieved := fresh[k]; retrieved {
			fresh[k] = append(ws, wanted{c.Key, c.Value.Message()})
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

func (s *Scheduler) retrieve(ctx context.Context, r *run, d *descriptor, ws []wanted) error {
	nodes := s.graph.Of(d)
	coming := make(map[string]bool, len(ws))
	for _, w := range ws {
		coming[w.key] = true
	}
	for _, n := range nodes {
		if v := n.Want(); v != nil && v.Err == nil && !coming[n.Key()] {
			ws = append(ws, wanted{n.Key(), message(v)})
		}
	}
	items, err := s.collect(ctx, d, ws)
	if err != nil {
		return err
	}
	found := make(map[string]bool, len(items))
	for _, it := range items {
		found[it.value.Key] = true
	}
	var lost []string
	for _, n := range nodes {
		if !found[n.Key()] && n.Have() != nil && n.Base() == nil {
			lost = append(lost, n.Key())
		}
	}
	slices.Sort(lost)
	for _, key := range lost {
		s.graph.Lost(key)
		d.index.drop(d.nameIn(key))
	}
	for _, it := range items {
		if r.verbose {
			s.log.Info("read back", "descriptor", d.name, "key", it.value.Key, "ours", !it.foreign, "value", messageText(message(it.value)))
		}
		s.graph.Found(it.value, it.meta, it.foreign)
		d.remember(s.graph.Node(it.value.Key)) // for those that retrieve after d
	}
	return nil
}

type item struct {
	value   *graph.Value
	meta    any
	foreign bool
}

func (s *Scheduler) collect(ctx context.Context, d *descriptor, ws []wanted) (items []item, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.VerbTimeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	seen := map[string]bool{}
	for f, err := range d.retrieve(ctx, ws) {
		if err != nil {
			return nil, err
		}
		key, err := foundKey(d, f)
		if err != nil {
			s.log.Warn("retrieved something that cannot be kept", "descriptor", d.name, "key", f.key, "err", err)
			continue
		}
		if seen[key] {
			s.log.Warn("retrieved twice, the first counts", "descriptor", d.name, "key", key)
			continue
		}
		seen[key] = true
		items = append(items, item{s.prepare(d, key, f.value), f.meta, !s.ours(d, f, key)})
	}
	return items, ctx.Err()
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
