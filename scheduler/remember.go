package scheduler

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/keyplane/keyplane/scheduler/internal/graph"
)

// A Memory remembers across restarts what was applied. With one, a value that
// Retrieve finds without knowing whose it is counts as ours if it is remembered,
// and values of descriptors without Retrieve are known to stand. What a
// transaction applied is saved when it has ended, before the next one begins. Package
// memory has one in a file.
type Memory interface {
	// Load yields all that is remembered.
	Load() iter.Seq2[string, []byte]
	// Save remembers the values that are not nil, and forgets the others. The map is
	// the Memory's then.
	Save(map[string][]byte) error
}

// remembered are the keys in a Memory.
type remembered struct {
	mu    sync.RWMutex      // guards what follows
	keys  map[string]string // and the plain key of each; empty: it is the same
	plain map[string]string // those that are not, and what they are the plain keys of
}

func (r *remembered) has(key string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	_, has := r.keys[key]
	return has || r.plain[key] != ""
}

// asPlain is the key that a plain key is of; empty: it is none.
func (r *remembered) asPlain(key string) string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.plain[key]
}

// follow takes in what a Memory was told, with plain keys.
func (r *remembered) follow(changes map[string][]byte, plain map[string]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.keys) == 0 {
		r.keys = make(map[string]string, len(changes))
	}
	for key, data := range changes {
		if before := r.keys[key]; r.plain[before] == key {
			delete(r.plain, before)
		}
		if data == nil {
			delete(r.keys, key)
		} else {
			r.keys[key] = plain[key]
		}
	}
	if r.plain == nil && len(plain) > 0 {
		r.plain = map[string]string{}
	}
	for key, as := range plain {
		r.plain[as] = key
	}
}

// recall reads the memory, once, before anything else is done.
func (s *Scheduler) recall(context.Context) {
	if s.opts.Memory == nil {
		return
	}
	known, plain := map[string][]byte{}, map[string]string{}
	defer func() { s.remembered.follow(known, plain) }()
	for key, data := range s.opts.Memory.Load() {
		d := s.registry.of(key)
		if d == nil {
			continue // it stays remembered until its descriptor is back
		}
		known[key] = []byte{}
		if !d.mustRecall() {
			if len(data) > 0 {
				plain[key] = string(data)
			}
			continue
		}
		m, err := unpack(data)
		if err != nil {
			s.log.Warn("what is remembered cannot be read", "key", key, "err", err)
			continue
		}
		if v := s.prepare(d, key, m); v.Err == nil {
			s.graph.Found(v, nil, false)
		}
	}
}

// mustRecall says that only the memory knows what stands: it is not read back, and
// there is no southbound that may have forgotten it.
func (d *descriptor) mustRecall() bool { return d.retrieve == nil && d.gate == nil }

// ours says whether an item that was found is ours.
func (s *Scheduler) ours(d *descriptor, f found, key string) bool {
	switch {
	case d.passive() || f.foreign:
		return false
	case f.unknown:
		return s.remembered.has(key)
	}
	return true
}

// rememberAll saves what the runs have done that are completed. Who waits for one of them
// goes first.
func (s *Scheduler) rememberAll() {
	if len(s.completed) > 0 {
		runtime.Gosched()
	}
	for _, r := range s.completed {
		s.remember(r)
	}
	clear(s.completed)
	s.completed = s.completed[:0]
}

// remember saves what a run has applied and removed.
func (s *Scheduler) remember(r *run) {
	if s.opts.Memory == nil {
		return
	}
	changes, plain := make(map[string][]byte, len(r.rec.Executed)), map[string]string{}
	for i := range r.rec.Executed {
		op := &r.rec.Executed[i]
		if op.Noop || op.Derived || op.NewErr != nil {
			continue
		}
		n := s.graph.Node(op.Key)
		if n == nil || n.Have() == nil {
			changes[op.Key] = nil
			if of := s.remembered.asPlain(op.Key); of != "" && !s.stands(of) {
				changes[of] = nil
			}
			continue
		}
		data, err := toRemember(n)
		if err != nil {
			s.log.Error("value cannot be remembered", "key", op.Key, "err", err)
			continue
		}
		if changes[op.Key] = data; len(data) > 0 && !descriptorOf(n).mustRecall() {
			plain[op.Key] = string(data)
		}
	}
	if len(changes) == 0 {
		return
	}
	s.remembered.follow(changes, plain)
	if err := s.opts.Memory.Save(changes); err != nil {
		s.log.Error("what was applied is not remembered", "values", len(changes), "err", err)
	}
}

// stands says whether a value does.
func (s *Scheduler) stands(key string) bool {
	n := s.graph.Node(key)
	return n != nil && n.Have() != nil
}

// toRemember is what is remembered of a value beside its key: all of it if it must be recalled,
// else its plain key, if that is another.
func toRemember(n *graph.Node) ([]byte, error) {
	d := descriptorOf(n)
	switch {
	case d == nil:
		return []byte{}, nil
	case d.mustRecall():
		return pack(n.Have())
	}
	v := message(n.Have())
	plain := v
	if d.plain != nil {
		plain = d.plain(n.Key(), v)
	}
	if plain == v && n.Have().Declared == nil {
		return []byte{}, nil
	}
	key, err := d.keyOf(plain)
	if err != nil || key == n.Key() {
		return []byte{}, nil //nolint:nilerr // who cannot be named cannot be found either
	}
	return []byte(key), nil
}

func pack(v *graph.Value) ([]byte, error) {
	a, err := anypb.New(message(v))
	if err != nil {
		return nil, fmt.Errorf("packing: %w", err)
	}
	return proto.Marshal(a)
}

func unpack(data []byte) (proto.Message, error) {
	var a anypb.Any
	if err := proto.Unmarshal(data, &a); err != nil {
		return nil, fmt.Errorf("unpacking: %w", err)
	}
	return a.UnmarshalNew()
}
