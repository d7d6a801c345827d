package show

import (
	"io"
	"strings"

	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// OperationsTable prints one operation per line, with the state before and after it.
func OperationsTable(out io.Writer, ops []wire.Operation) error {
	t := NewTable(out, "OPERATION", "STATE", "NOTE", "KEY")
	for _, op := range ops {
		t.Row(op.Operation, Transition(op), note(op), op.Key)
	}
	return t.End()
}

// Transition returns the state after an operation, and before it the one that it replaces:
// "PENDING -> CONFIGURED".
func Transition(op wire.Operation) string {
	if op.PrevState == "" || op.PrevState == op.NewState {
		return op.NewState
	}
	return op.PrevState + " -> " + op.NewState
}

// note lists the special properties of an operation.
func note(op wire.Operation) string {
	var out []string
	for _, n := range []struct {
		is   bool
		word string
	}{{op.IsDerived, "derived"}, {op.IsProperty, "property"}, {op.IsRecreate, "recreate"}, {op.NOOP && !op.IsProperty, "nothing is called"}} {
		if n.is {
			out = append(out, n.word)
		}
	}
	return strings.Join(out, ", ")
}
