package scheduler

import (
	"iter"
	"slices"
	"unsafe"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/internal/printable"
	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/history"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
	"github.com/keyplane/keyplane/scheduler/internal/size"
)

// Operations are the operations of a [Record], in order. They take little memory: what few operations have is in columns, and
// one that is zero in all operations takes none. Most operations of a large transaction make a value actual, which has their
// key and message. Copies share them. Those of a record that has ended are immutable, so any goroutine may use them.
type Operations struct {
	all            []step
	key, base      history.Column[string]
	old, new       history.Column[proto.Message]
	oldErr, newErr history.Column[error]
	meta           history.Column[any]
	waits          history.Column[[]string]
}

// A step is what nearly all operations have.
type step struct {
	of                 *graph.Value // if not nil, it has key and new
	order              uint64
	verb               uint8
	oldState, newState uint8
	flags              uint8 // in the order of Operation.flags
}

// With returns the operations and further ones. As with append, p is not used any more.
func (p Operations) With(all ...Operation) Operations {
	p.grow(len(all))
	for i := range all {
		p.add(&all[i])
	}
	return p
}

// Len returns the number of operations.
func (p *Operations) Len() int { return len(p.all) }

// At returns a copy of the i-th operation, from 0. Nobody may change what it refers to.
func (p *Operations) At(i int) (o Operation) {
	l := &p.all[i]
	o = Operation{
		Verb: Verb(l.verb), Key: p.key.At(i), Base: p.base.At(i), Old: p.old.At(i), New: p.new.At(i), OldState: State(l.oldState), NewState: State(l.newState),
		OldErr: p.oldErr.At(i), NewErr: p.newErr.At(i), Order: l.order, Meta: p.meta.At(i), Waits: p.waits.At(i),
	}
	if l.flags != 0 {
		for bit, set := range o.flags() {
			*set = l.flags>>bit&1 == 1
		}
	}
	if l.of != nil {
		o.of, o.Key, o.New = l.of, l.of.Key, kind.Message(l.of)
	}
	return o
}

func (p *Operations) keyAt(i int) string {
	if v := p.all[i].of; v != nil {
		return v.Key
	}
	return p.key.At(i)
}

// All yields the operations with their numbers, from 0.
func (p *Operations) All() iter.Seq2[int, Operation] {
	return func(yield func(int, Operation) bool) {
		for i := range p.all {
			if !yield(i, p.At(i)) {
				return
			}
		}
	}
}

// Any reports whether one of the operations is as asked.
func (p *Operations) Any(is func(Operation) bool) bool {
	for _, o := range p.All() {
		if is(o) {
			return true
		}
	}
	return false
}

// Part returns the operations without the first ones, and at most so many.
func (p Operations) Part(first, most int) Operations {
	first = min(first, len(p.all))
	last := min(len(p.all), first+most)
	p.all = p.all[first:last:last]
	for _, c := range p.columns() {
		c.Part(first, last)
	}
	return p
}

// flags are the fields of o that say yes or no.
func (o *Operation) flags() [6]*bool {
	return [...]*bool{&o.Noop, &o.Derived, &o.Property, &o.Revert, &o.Retry, &o.Recreate}
}

// add appends an operation.
func (p *Operations) add(o *Operation) {
	if len(p.all) == cap(p.all) {
		p.grow(max(1, len(p.all)))
	}
	i := len(p.all)
	p.all = p.all[:i+1]
	p.set(i, o)
}

// set replaces the i-th operation.
func (p *Operations) set(i int, o *Operation) {
	l := step{order: o.Order, verb: uint8(o.Verb), oldState: uint8(o.OldState), newState: uint8(o.NewState)}
	for bit, set := range o.flags() {
		if *set {
			l.flags |= 1 << bit
		}
	}
	key, message := o.Key, o.New
	if o.makesValue() {
		l.of, key, message = o.of, "", nil
	}
	p.all[i] = l
	room := cap(p.all)
	p.key.Set(i, room, key, key == "")
	p.new.Set(i, room, message, message == nil)
	p.base.Set(i, room, o.Base, o.Base == "")
	p.old.Set(i, room, o.Old, o.Old == nil)
	p.oldErr.Set(i, room, o.OldErr, o.OldErr == nil)
	p.newErr.Set(i, room, o.NewErr, o.NewErr == nil)
	p.meta.Set(i, room, o.Meta, o.Meta == nil)
	p.waits.Set(i, room, o.Waits, o.Waits == nil)
}

// grow makes room for so many further operations.
func (p *Operations) grow(more int) {
	if n := len(p.all); n+more > cap(p.all) {
		p.resize(n + more)
	}
}

// clip gives up the room for further operations, if it is large.
func (p *Operations) clip() {
	if n := len(p.all); cap(p.all) > n+n/8 {
		p.resize(n)
	}
}

func (p *Operations) resize(room int) {
	n := len(p.all)
	all := make([]step, n, room)
	copy(all, p.all)
	p.all = all
	for _, c := range p.columns() {
		c.Resize(n, room)
	}
}

// without returns the operations but those that unwanted accepts.
func (p Operations) without(unwanted func(Operation) bool) (out Operations) {
	for _, o := range p.All() {
		if !unwanted(o) {
			out.add(&o)
		}
	}
	return out
}

// kept returns the operations with the texts of their errors, and long texts cut: an error may hold any memory.
func (p Operations) kept() Operations {
	p.oldErr.Edit(func(err error) bool { return err != nil }, history.Texts())
	p.newErr.Edit(func(err error) bool { return err != nil }, history.Texts())
	p.waits.Edit(func(labels []string) bool { return slices.ContainsFunc(labels, isLong) }, cutLabels)
	own := false // others share the operations
	for i := range p.all {
		if v := p.all[i].of; v != nil && len(v.Key) > mostKeyText { // from now on it has a key of its own
			if !own {
				p.resize(len(p.all))
				own = true
			}
			p.all[i].of = nil
			p.key.Set(i, cap(p.all), v.Key, false)
			p.new.Set(i, cap(p.all), kind.Message(v), false)
		}
	}
	p.key.Edit(func(key string) bool { return len(key) > mostKeyText }, func(key string) string { return printable.Cut(key, mostKeyText) })
	return p
}

func isLong(label string) bool { return len(label) > history.MaxText }

func cutLabels(labels []string) []string {
	labels = slices.Clone(labels)
	for i, label := range labels {
		labels[i] = printable.Cut(label, history.MaxText)
	}
	return labels
}

// bytes estimates the memory of the operations. Values that are made count if they have no other owner.
func (p *Operations) bytes(all *size.Record, own bool) (n int) {
	n = cap(p.all) * int(unsafe.Sizeof(step{}))
	for _, c := range p.columns() {
		n += c.Bytes()
	}
	for i := range p.all {
		if v := p.all[i].of; own && v != nil {
			n += all.Value(v)
		}
	}
	for _, key := range p.key {
		n += len(key)
	}
	for _, messages := range []history.Column[proto.Message]{p.old, p.new} {
		for _, m := range messages {
			n += all.Message(m)
		}
	}
	for _, errs := range []history.Column[error]{p.oldErr, p.newErr} {
		for _, err := range errs {
			n += size.Error(err)
		}
	}
	for _, labels := range p.waits {
		n += size.Texts(labels)
	}
	return n
}

// columns are those of what few operations have.
func (p *Operations) columns() [8]history.Columnar {
	return [...]history.Columnar{&p.key, &p.base, &p.old, &p.new, &p.oldErr, &p.newErr, &p.meta, &p.waits}
}
