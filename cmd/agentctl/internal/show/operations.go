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
		state := op.NewState
		if op.PrevState != "" && op.PrevState != op.NewState {
			state = op.PrevState + " -> " + op.NewState
		}
		t.Row(op.Operation, state, note(op), op.Key)
	}
	return t.End()
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
