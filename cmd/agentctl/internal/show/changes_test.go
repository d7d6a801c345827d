package show_test

import (
	"testing"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// TestNotesOfCreation has values that were applied before the plan, and others that were PENDING.
func TestNotesOfCreation(t *testing.T) {
	for _, test := range []struct {
		name         string
		ops          []wire.Operation
		symbol, note string
	}{
		{"a new value", []wire.Operation{{Operation: "CREATE", NewState: "CONFIGURED"}}, show.Creates, ""},
		{"a waiting value", []wire.Operation{{Operation: "CREATE", PrevState: "PENDING", NewState: "CONFIGURED"}}, show.Creates, "was PENDING"},
		{
			"an applied value, PENDING only between the halves",
			[]wire.Operation{
				{Operation: "DELETE", IsRecreate: true, PrevState: "CONFIGURED", NewState: "PENDING"},
				{Operation: "CREATE", IsRecreate: true, PrevState: "PENDING", NewState: "CONFIGURED"},
			}, show.Recreates, "",
		},
		{
			"a part of an applied value",
			[]wire.Operation{
				{Operation: "DELETE", IsRecreate: true, IsDerived: true, PrevState: "CONFIGURED", NewState: "PENDING"},
				{Operation: "CREATE", IsRecreate: true, IsDerived: true, Base: "config/a", PrevState: "PENDING", NewState: "CONFIGURED"},
			}, show.Recreates, "part of config/a",
		},
		{
			"the second half alone: the first one was in an earlier transaction",
			[]wire.Operation{{Operation: "CREATE", IsRecreate: true, PrevState: "PENDING", NewState: "CONFIGURED"}}, show.Recreates, "was PENDING",
		},
	} {
		all := show.ChangesOf(test.ops)
		if len(all) != 1 || all[0].Symbol != test.symbol || all[0].Note != test.note {
			t.Errorf("%s: %+v; expected %s %q", test.name, all, test.symbol, test.note)
		}
	}
}
