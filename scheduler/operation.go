package scheduler

import (
	"cmp"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
)

// An Operation is one step of a transaction.
type Operation struct {
	Verb Verb
	Key  string
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
}

var verbs = [...]Verb{
	graph.None:   Verb(0),
	graph.Create: Create,
	graph.Update: Update,
	graph.Delete: Delete,
}

// shown is the published part of a status that operations refer to.
type shown struct {
	state             State
	err               error
	desired, actual   proto.Message
	derived, property bool
}

// shown returns the part of st that operations refer to. No status means that the key was
// unknown.
func (st *Status) shown() shown {
	if st == nil {
		return shown{}
	}
	derived := st.Base != ""
	return shown{st.State, st.Err, st.Desired, st.Actual, derived && st.Descriptor != "", derived && st.Descriptor == ""}
}

// now returns the present state of n in this form.
func now(n *graph.Node, state State) shown {
	derived, described := n.Base() != nil, kind.Of(n) != nil
	return shown{state, kind.ErrOf(n), kind.Message(n.Desired()), kind.Message(n.Actual()), derived && described, derived && !described}
}

// operation describes op before it is executed.
func operation(op graph.Op, d *descriptor, was shown) Operation {
	derived := op.Node.Base() != nil
	return Operation{
		Verb: verbs[op.Verb], Key: op.Node.Key(), Old: kind.Message(op.Old), New: kind.Message(op.New),
		OldState: was.state, OldErr: was.err,
		Noop: d == nil || d.Passive(), Derived: derived && d != nil, Property: derived && d == nil,
		Recreate: op.Recreate,
	}
}

// noop describes a change of a node without a verb. It returns false if there is nothing
// to report.
func noop(n *graph.Node, was shown, state State) (Operation, bool) {
	is := now(n, state)
	o := Operation{
		Verb: Create, Key: n.Key(), New: is.desired,
		OldState: was.state, OldErr: was.err, NewState: state, Noop: true,
		Derived: is.derived || was.derived, Property: is.property || was.property,
	}
	changed := was.state != state
	switch state {
	case Invalid, Unimplemented:
		o.Verb, o.NewErr = Validate, is.err
		if refused := kind.RefusedIn(is.err); refused != nil {
			o.New = refused // the desired value is the last valid one, which is not what the error is about
		}
		return o, was.err == nil || was.err.Error() != o.NewErr.Error()
	case Pending:
		o.Waits, _ = details(n, state)
		return o, changed
	case Configured:
		o.Verb, o.Old = Update, is.actual
		return o, changed && was.state != Discovered
	case Obtained:
		o.New = is.actual
		if !changed {
			o.Verb, o.Old = Update, was.actual
		}
		return o, changed || !proto.Equal(was.actual, is.actual)
	case Nonexistent:
		o.Verb, o.Old, o.NewState = Delete, cmp.Or(was.desired, was.actual), Removed
		return o, changed
	default: // a verb leads to the other states, and has its own record
		return o, false
	}
}
