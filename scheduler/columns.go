package scheduler

import (
	"unsafe"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
)

// packedOperations are many operations in little memory: each field is a column, and one that is zero in all operations takes
// none. Most operations of a large transaction make a value actual, which has their key and message. They are immutable, so any
// goroutine may use them.
type packedOperations struct {
	n              int
	of             column[*graph.Value] // it has key and new
	verb           column[uint8]
	state          column[[2]uint8] // OldState, NewState
	flags          column[uint8]    // in the order of Operation.flags
	order          column[uint64]
	key, base      column[string]
	old, new       column[proto.Message]
	oldErr, newErr column[error]
	meta           column[any]
	waits          column[[]string]
}

// flags are the fields of o that say yes or no.
func (o *Operation) flags() [6]*bool {
	return [...]*bool{&o.Noop, &o.Derived, &o.Property, &o.Revert, &o.Retry, &o.Recreate}
}

// A column is one field of many structs; nil: it is zero in all of them.
type column[T any] []T

// set sets the field of the i-th of n structs to v, which is not zero.
func (c *column[T]) set(i, n int, v T) {
	if *c == nil {
		*c = make([]T, n)
	}
	(*c)[i] = v
}

func (c column[T]) at(i int) (v T) {
	if c != nil {
		v = c[i]
	}
	return v
}

// bytes is the memory of the column, without that to which its elements refer.
func (c column[T]) bytes() int {
	var one T
	return len(c) * int(unsafe.Sizeof(one))
}

// pack returns operations in little memory. It takes about 0.1 us for one.
func pack(ops []Operation) packedOperations {
	p := packedOperations{n: len(ops)}
	for i := range ops {
		o := &ops[i]
		if o.makesValue() {
			p.of.set(i, p.n, o.of)
		} else {
			setUnlessZero(&p.key, i, p.n, o.Key)
			setUnlessZero(&p.new, i, p.n, o.New)
		}
		setUnlessZero(&p.verb, i, p.n, uint8(o.Verb))
		setUnlessZero(&p.state, i, p.n, [2]uint8{uint8(o.OldState), uint8(o.NewState)})
		flags := uint8(0)
		for bit, set := range o.flags() {
			if *set {
				flags |= 1 << bit
			}
		}
		setUnlessZero(&p.flags, i, p.n, flags)
		setUnlessZero(&p.order, i, p.n, o.Order)
		setUnlessZero(&p.base, i, p.n, o.Base)
		setUnlessZero(&p.old, i, p.n, o.Old)
		if o.OldErr != nil {
			p.oldErr.set(i, p.n, o.OldErr)
		}
		if o.NewErr != nil {
			p.newErr.set(i, p.n, o.NewErr)
		}
		if o.Meta != nil {
			p.meta.set(i, p.n, o.Meta)
		}
		if o.Waits != nil {
			p.waits.set(i, p.n, o.Waits)
		}
	}
	return p
}

func setUnlessZero[T comparable](c *column[T], i, n int, v T) {
	var zero T
	if v != zero {
		c.set(i, n, v)
	}
}

// unpack returns new copies of the first operations, at most so many; nil if there are none.
func (p *packedOperations) unpack(most int) []Operation {
	if p.n == 0 {
		return nil
	}
	ops := make([]Operation, min(p.n, most))
	for i := range ops {
		o := &ops[i]
		*o = Operation{
			Verb: Verb(p.verb.at(i)), Key: p.key.at(i), Base: p.base.at(i), Old: p.old.at(i), New: p.new.at(i),
			OldState: State(p.state.at(i)[0]), NewState: State(p.state.at(i)[1]), OldErr: p.oldErr.at(i), NewErr: p.newErr.at(i),
			Order: p.order.at(i), Meta: p.meta.at(i), Waits: p.waits.at(i),
		}
		for bit, set := range o.flags() {
			*set = p.flags.at(i)>>bit&1 == 1
		}
		if v := p.of.at(i); v != nil {
			o.of, o.Key, o.New = v, v.Key, kind.Message(v)
		}
	}
	return ops
}

// bytes is the memory of the columns, without that to which their elements refer.
func (p *packedOperations) bytes() int {
	return p.of.bytes() + p.verb.bytes() + p.state.bytes() + p.flags.bytes() + p.order.bytes() + p.key.bytes() + p.base.bytes() +
		p.old.bytes() + p.new.bytes() + p.oldErr.bytes() + p.newErr.bytes() + p.meta.bytes() + p.waits.bytes()
}
