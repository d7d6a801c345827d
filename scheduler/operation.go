package scheduler

import (
	"cmp"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/history"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
	"github.com/keyplane/keyplane/scheduler/internal/published"
	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// An Operation is one step of a transaction.
type Operation struct {
	Verb Verb
	Key  string
	// Base is the key of the declared value that a derived value belongs to. Only Plan tells it.
	Base string
	// Old and New are the actual values before and after; nil: none. Nobody may change them.
	Old, New proto.Message
	// OldState and OldErr are the published ones from before the operation.
	OldState, NewState State
	OldErr, NewErr     error
	// Noop means that no verb was called: only the state has changed.
	Noop bool
	// Order numbers the operations with a verb across all transactions, from 1, in the order in
	// which they began. Records of transactions that overlap do not tell this order. An abandoned
	// operation keeps its number in the record that has its result. 0: planned, or no verb.
	Order uint64
	// Derived means that the value is derived and has a descriptor, Property that it is derived
	// and has none.
	Derived, Property bool
	// Revert means that the operation undoes others of the same transaction, which has failed.
	Revert bool
	// Retry means that the operation follows from a retry.
	Retry bool
	// Recreate means that the operation is a part of a change that needs Delete and Create.
	Recreate bool
	// Meta is the metadata of the value after the operation.
	Meta any
	// Waits has the labels of the unmet dependencies of a value that is now PENDING.
	Waits []string

	of *graph.Value // if not nil, it has Key and New: a record refers to it
}

// makesValue reports that Key and New are those of a value of the graph.
func (o *Operation) makesValue() bool {
	return o.of != nil && o.New != nil && o.New == kind.Message(o.of) && o.Key == o.of.Key
}

var verbs = [...]Verb{
	value.None:   Verb(0),
	value.Create: Create,
	value.Update: Update,
	value.Delete: Delete,
}

// A recorder describes the operations of one record while they happen, in a run or in a plan. The zero recorder has none.
type recorder struct{ recreated history.Recreations }

// begins describes op, which begins. was is the status of its value.
func (c *recorder) begins(op graph.Op, was published.Status) Operation {
	part, second := c.recreated.Begins(op)
	o := operation(op, was)
	o.Recreate = o.Recreate || part
	if second { // between the deletion and the creation
		o.OldState = Removed
	}
	return o
}

// operation describes op without its result. was is the status of its value before.
func operation(op graph.Op, was published.Status) Operation {
	d, derived := kind.OfOp(op), op.Node.Base() != nil
	return Operation{
		Verb: verbs[op.Verb], Key: op.Node.Key(), Old: kind.Message(op.Old), New: kind.Message(op.New),
		OldState: State(was.State), OldErr: was.Err(),
		Noop: d == nil || d.Passive(), Derived: derived && d != nil, Property: derived && d == nil,
		Recreate: op.Recreate, of: op.New,
	}
}

// ends completes o, the description of op, which has led to state.
func (c *recorder) ends(o *Operation, op graph.Op, state State) {
	if o.NewState = state; state != Pending {
		return
	}
	if c.recreated.Ended(op, o.Recreate) {
		o.NewState = Removed
		return
	}
	o.Waits = value.Labels(op.Node.Unmet())
}

// changes describes the present state of n, if that is a change without a verb. was is the earlier status; done says
// that the record has an operation of n. It returns false if there is nothing to report.
func (c *recorder) changes(n *graph.Node, was published.Status, state State, done bool) (o Operation, news bool) {
	if !done {
		return noop(n, was, state)
	}
	if !c.recreated.Unfinished(n) {
		return o, false
	}
	was.State = uint8(Removed) // between the deletion and the creation
	o, news = noop(n, was, state)
	o.Recreate = true
	return o, news
}

// noop describes a change of a node without a verb. It returns false if there is nothing
// to report.
func noop(n *graph.Node, was published.Status, state State) (Operation, bool) {
	derived, property := was.Roles(n)
	o := Operation{
		Verb: Create, Key: n.Key(), New: kind.Message(n.Desired()),
		OldState: State(was.State), OldErr: was.Err(), NewState: state, Noop: true,
		Derived: derived, Property: property, of: n.Desired(),
	}
	changed := o.OldState != state
	switch state {
	case Invalid, Unimplemented:
		o.Verb, o.NewErr = Validate, kind.ErrOf(n)
		if refused := kind.RefusedIn(o.NewErr); refused != nil {
			o.New = refused // the desired value is the last valid one, which is not what the error is about
		}
		return o, o.OldErr == nil || o.OldErr.Error() != o.NewErr.Error()
	case Pending:
		o.Waits = value.Labels(n.Unmet())
		return o, changed
	case Configured:
		o.Verb, o.Old = Update, kind.Message(n.Actual())
		return o, changed && o.OldState != Discovered
	case Obtained:
		before := kind.Message(was.Actual)
		o.New = kind.Message(n.Actual())
		if !changed {
			o.Verb, o.Old = Update, before
		}
		return o, changed || !proto.Equal(before, o.New)
	case Nonexistent:
		o.Verb, o.Old, o.NewState = Delete, cmp.Or(kind.Declared(was.Desired), kind.Message(was.Actual)), Removed
		return o, changed
	default: // a verb leads to the other states, and has its own record
		return o, false
	}
}
