package scheduler

import (
	"cmp"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/proto/ligato/kvscheduler"
	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
)

// An Operation is one step of a transaction.
type Operation struct {
	Verb               Verb
	Key                string
	Old, New           proto.Message // the actual values before and after; nil: none
	OldState, NewState State
	OldErr, NewErr     error
	Noop               bool // no verb was called
	Derived            bool // the value is derived and has a descriptor
	Property           bool // the value is derived and has no descriptor
	Revert             bool
	Retry              bool
	Recreate           bool
	Meta               any      // the metadata of the value after the operation
	Waits              []string // of a value that is now PENDING: labels of its unmet dependencies
}

var verbs = [...]Verb{
	graph.None:   kvscheduler.TxnOperation_UNDEFINED,
	graph.Create: kvscheduler.TxnOperation_CREATE,
	graph.Update: kvscheduler.TxnOperation_UPDATE,
	graph.Delete: kvscheduler.TxnOperation_DELETE,
}

// shown is the published part of a status that operations refer to.
type shown struct {
	state             State
	err               error
	desired, actual   proto.Message
	derived, property bool
}

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
	return shown{state, errOf(n), kind.Message(n.Desired()), kind.Message(n.Actual()), derived && described, derived && !described}
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
		Verb: kvscheduler.TxnOperation_CREATE, Key: n.Key(), New: is.desired,
		OldState: was.state, OldErr: was.err, NewState: state, Noop: true,
		Derived: is.derived || was.derived, Property: is.property || was.property,
	}
	changed := was.state != state
	switch state {
	case kvscheduler.ValueState_INVALID, kvscheduler.ValueState_UNIMPLEMENTED:
		o.Verb, o.NewErr = kvscheduler.TxnOperation_VALIDATE, is.err
		return o, was.err == nil || was.err.Error() != o.NewErr.Error()
	case kvscheduler.ValueState_PENDING:
		o.Waits, _ = details(n, state)
		return o, changed
	case kvscheduler.ValueState_CONFIGURED:
		o.Verb, o.Old = kvscheduler.TxnOperation_UPDATE, is.actual
		return o, changed && was.state != kvscheduler.ValueState_DISCOVERED
	case kvscheduler.ValueState_OBTAINED:
		o.New = is.actual
		if !changed {
			o.Verb, o.Old = kvscheduler.TxnOperation_UPDATE, was.actual
		}
		return o, changed || !proto.Equal(was.actual, is.actual)
	case nonexistent:
		o.Verb, o.Old, o.NewState = kvscheduler.TxnOperation_DELETE, cmp.Or(was.desired, was.actual), removed
		return o, changed
	default: // a verb leads to the other states, and has its own record
		return o, false
	}
}
