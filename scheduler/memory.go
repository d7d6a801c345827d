package scheduler

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/keyplane/keyplane/scheduler/internal/executor"
	"github.com/keyplane/keyplane/scheduler/internal/graph"
)

// A Memory remembers across restarts what is ours. With one, a value that Retrieve finds
// without knowing whose it is counts as ours if it is remembered, and values of descriptors
// without Retrieve are known to stand. *statestore.Store is one.
//
// A key is remembered before its Create begins, and until its Delete has succeeded. So
// after a kill at any moment the Memory has all that may be ours, and perhaps a key whose
// item was not made. The scheduler forgets that key when its descriptor was read back.
type Memory interface {
	// Load yields all that is remembered.
	Load() iter.Seq2[string, []byte]
	// Save remembers the values that are not nil, and forgets the others; of a key that
	// comes twice, the last counts. When it returns, a kill of the process must not lose
	// them. Operations wait for it, so it must not wait for a disk. The values are not
	// changed any more; changes is only good until Save returns.
	Save(changes iter.Seq2[string, []byte]) error
}

// A note is a change of the memory. data nil: the key is forgotten.
//
// For a value that must be recalled, data is all of it, packed. It begins with doubt while an
// operation of it is under way. For others, data is the plain keys that are not the key,
// separated by plainSeparator.
type note struct {
	key    string
	data   []byte
	recall bool // the value must be recalled
}

const (
	// doubt begins no packed message, as no field has the number 0.
	doubt          = 0
	plainSeparator = "\x00"
)

// each yields notes as a Memory takes them.
func each(notes []note) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for _, n := range notes {
			if !yield(n.key, n.data) {
				return
			}
		}
	}
}

// remembered are the keys in a Memory.
type remembered struct {
	mu    sync.RWMutex      // guards what follows; only Run's goroutine changes it
	keys  map[string]string // and the plain keys of each; empty: only the key itself
	plain map[string]string // the plain keys, and of which key each is

	// unsure are keys of which nobody knows whether their items stand, until their
	// descriptor is read back. Only Run's goroutine uses it.
	unsure map[*descriptor]map[string]bool
}

func (r *remembered) has(key string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	_, has := r.keys[key]
	return has || r.plain[key] != ""
}

// hasOwn tells that key is remembered, and not only as a plain key. Only Run's goroutine
// calls it.
func (r *remembered) hasOwn(key string) bool {
	_, has := r.keys[key]
	return has
}

// asPlain is the key that a plain key is of; empty: it is none.
func (r *remembered) asPlain(key string) string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.plain[key]
}

// follow takes in what a Memory is told of a key; forgotten: that it is not remembered.
// It is called with mu held.
func (r *remembered) follow(key, plain string, forgotten bool) {
	if before := r.keys[key]; before != "" && before != plain {
		for p := range strings.SplitSeq(before, plainSeparator) {
			if r.plain[p] == key {
				delete(r.plain, p)
			}
		}
	}
	if forgotten {
		delete(r.keys, key)
		return
	}
	if r.keys == nil {
		r.keys = map[string]string{}
	}
	r.keys[key] = plain
	if plain == "" {
		return
	}
	if r.plain == nil {
		r.plain = map[string]string{}
	}
	for p := range strings.SplitSeq(plain, plainSeparator) {
		r.plain[p] = key
	}
}

// doubtful notes that nobody knows whether the item of a key stands.
func (r *remembered) doubtful(d *descriptor, key string) {
	if r.unsure == nil {
		r.unsure = map[*descriptor]map[string]bool{}
	}
	if r.unsure[d] == nil {
		r.unsure[d] = map[string]bool{}
	}
	r.unsure[d][key] = true
}

// recall reads the memory, once, before anything else is done.
func (s *Scheduler) recall(context.Context) {
	if s.opts.Memory == nil {
		return
	}
	s.remembered.mu.Lock()
	defer s.remembered.mu.Unlock()
	for key, data := range s.opts.Memory.Load() {
		d := s.registry.of(key)
		switch {
		case d == nil: // it stays remembered until its descriptor is back
		case d.mustRecall():
			s.remembered.follow(key, "", false)
			s.recallValue(d, key, data)
		default:
			s.remembered.follow(key, string(data), false)
			s.remembered.doubtful(d, key)
		}
	}
}

// recallValue has the graph know what only the memory does.
func (s *Scheduler) recallValue(d *descriptor, key string, data []byte) {
	unsure := len(data) > 0 && data[0] == doubt
	if unsure {
		data = data[1:]
	}
	m, err := unpack(data)
	if err != nil {
		s.log.Warn("what is remembered cannot be read", "key", key, "err", err)
		return
	}
	v := s.prepare(d, key, m)
	if v.Err != nil {
		return
	}
	v.Doubt = unsure
	s.graph.Found(v, nil, false)
}

// mustRecall says that only the memory knows what stands: it is not read back, and
// there is no southbound that may have forgotten it.
func (d *descriptor) mustRecall() bool { return d.retrieve == nil && d.link == nil }

// ours says whether an item that was found is ours.
func (s *Scheduler) ours(d *descriptor, f found, key string) bool {
	switch {
	case d.passive() || f.foreign:
		return false
	case f.unknown:
		if n := s.graph.Node(key); n != nil && n.Base() != nil {
			return !n.Base().Foreign() // a derived value is whose its base is
		}
		return s.remembered.has(key)
	}
	return true
}

// recordAhead remembers what may be ours from now on, as tasks are about to begin: in one
// write for all of them.
func (s *Scheduler) recordAhead(tasks []*executor.Task) {
	notes := s.notes[:0]
	for _, t := range tasks {
		if t.Op.Node.Base() != nil {
			continue
		}
		switch {
		case kindOf(t.Op).mustRecall():
			notes = s.noteDoubt(notes, t)
		case t.Op.Verb != graph.Delete:
			notes = s.noteComing(notes, t)
		}
	}
	s.save(notes)
}

// recordAdopted remembers the items that are ours because they were found as declared, before
// their state is shown.
func (s *Scheduler) recordAdopted() {
	if s.opts.Memory == nil {
		return
	}
	notes := s.notes[:0]
	for n := range s.graph.PeekTouched() {
		if n.News && n.Actual() != nil && s.misremembered(n) {
			notes = s.noteStanding(notes, n, true)
		}
	}
	s.save(notes)
}

// noteDoubt notes that what stands under a key that must be recalled is about to change.
func (s *Scheduler) noteDoubt(notes []note, t *executor.Task) []note {
	v := t.Op.New
	if t.Op.Verb == graph.Delete {
		v = t.Op.Old
	}
	data, err := pack(v)
	if err != nil {
		s.log.Error("value cannot be remembered", "key", v.Key, "err", err)
		return notes
	}
	return append(notes, note{v.Key, append([]byte{doubt}, data...), true})
}

// noteComing notes that a value is about to stand, perhaps as another plain value than before.
func (s *Scheduler) noteComing(notes []note, t *executor.Task) []note {
	key, plain := t.Op.New.Key, kindOf(t.Op).plainKey(t.Op.New)
	before, has := s.remembered.keys[key]
	switch {
	case has && before == plain:
		return notes
	case before != "" && plain != "":
		plain = before + plainSeparator + plain
	case before != "":
		plain = before
	}
	return append(notes, note{key: key, data: []byte(plain)})
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

// remember saves what became of the keys of a run.
func (s *Scheduler) remember(r *run) {
	if s.opts.Memory == nil {
		return
	}
	notes := s.notes[:0]
	for i := range r.rec.Executed {
		if op := &r.rec.Executed[i]; !op.Derived && !op.Noop {
			notes = s.noteEnd(notes, op.Key, op.NewErr != nil)
		}
	}
	for _, key := range r.quiet {
		notes = s.noteEnd(notes, key, true)
	}
	s.save(notes)
}

// noteEnd notes what became of a key. unsure says that no verb has succeeded.
func (s *Scheduler) noteEnd(notes []note, key string, unsure bool) []note {
	n := s.graph.Node(key)
	if n != nil && n.Actual() != nil {
		return s.noteStanding(notes, n, unsure)
	}
	if of := s.remembered.asPlain(key); of != "" && !unsure && !s.stands(of) {
		notes = append(notes, note{key: of})
	}
	if !s.remembered.hasOwn(key) || unsure && n != nil && n.Desired() != nil {
		return notes // what is wanted stays remembered until it was tried again
	}
	if unsure {
		if d := s.registry.of(key); d != nil && !d.mustRecall() {
			s.remembered.doubtful(d, key)
			return notes
		}
	}
	return append(notes, note{key: key})
}

// noteStanding notes that the value of n stands.
func (s *Scheduler) noteStanding(notes []note, n *graph.Node, unsure bool) []note {
	d, key := descriptorOf(n), n.Key()
	if n.Foreign() || d == nil || d.passive() || unsure && s.remembered.has(key) {
		return notes
	}
	if !d.mustRecall() {
		plain := d.plainKey(n.Actual())
		if now, has := s.remembered.keys[key]; has && now == plain {
			return notes
		}
		return append(notes, note{key: key, data: []byte(plain)})
	}
	data, err := pack(n.Actual())
	if err != nil {
		s.log.Error("value cannot be remembered", "key", key, "err", err)
		return notes
	}
	return append(notes, note{key, data, true})
}

// save tells the memory, and follows it.
func (s *Scheduler) save(notes []note) {
	if len(notes) == 0 {
		return
	}
	s.remembered.mu.Lock()
	for _, n := range notes {
		plain := ""
		if !n.recall {
			plain = string(n.data)
		}
		s.remembered.follow(n.key, plain, n.data == nil)
	}
	s.remembered.mu.Unlock()
	if err := s.opts.Memory.Save(each(notes)); err != nil {
		s.log.Error("what may be ours is not remembered", "values", len(notes), "err", err)
	}
	clear(notes)
	s.notes = notes[:0]
}

// misremembered says that the memory may be wrong about n, of which nothing was executed:
// it was found standing as it is wanted, which makes it ours, or has gone by itself.
func (s *Scheduler) misremembered(n *graph.Node) bool {
	if s.opts.Memory == nil || n.Base() != nil || n.Foreign() {
		return false
	}
	stands := n.Actual() != nil
	return s.remembered.hasOwn(n.Key()) != stands && (n.Desired() != nil) == stands
}

// reckon forgets keys whose items do not stand, now that all of their descriptor's were read
// back.
func (s *Scheduler) reckon(rd reading) {
	d := rd.d
	unsure := s.remembered.unsure[d]
	if rd.keys != nil || len(unsure) == 0 {
		return
	}
	notes := s.notes[:0]
	for key := range unsure {
		plain := s.remembered.keys[key]
		if !s.graph.Wants(key) && !s.stands(key) && !s.anyStands(plain) {
			notes = append(notes, note{key: key})
		}
	}
	delete(s.remembered.unsure, d)
	s.save(notes)
}

// anyStands says whether the value under one of these plain keys does.
func (s *Scheduler) anyStands(plain string) bool {
	if plain == "" {
		return false
	}
	for key := range strings.SplitSeq(plain, plainSeparator) {
		if s.stands(key) {
			return true
		}
	}
	return false
}

// stands says whether a value does.
func (s *Scheduler) stands(key string) bool {
	n := s.graph.Node(key)
	return n != nil && n.Actual() != nil
}

// plainKey is the key of what v is found as if nothing is declared; empty: it is v's own,
// or has none.
func (d *descriptor) plainKey(v *graph.Value) string {
	m := message(v)
	plain := m
	if d.resolve != nil {
		plain = d.resolve(v.Key, m)
	}
	if plain == m && v.Declared == nil {
		return ""
	}
	key, err := d.keyOf(plain)
	if err != nil || key == v.Key {
		return "" // an item that cannot be named cannot be found either
	}
	return key
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
