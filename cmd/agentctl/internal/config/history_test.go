package config

import (
	"slices"
	"testing"

	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// TestErrorsAreNotRepeated lists the errors of a transaction in which a value fails twice.
func TestErrorsAreNotRepeated(t *testing.T) {
	r := wire.Record{
		Executed: []wire.Operation{
			{Key: "a", Operation: "DELETE", NewErrMsg: "busy"},
			{Key: "b", Operation: "CREATE", NewErrMsg: "busy"},
			{Key: "a", Operation: "CREATE", NewErrMsg: "busy"},
			{Key: "a", Operation: "CREATE", NewErrMsg: "no memory"},
			{Key: "c", Operation: "DELETE", NewErrMsg: "busy", IsRevert: true},
			{Key: "d", Operation: "CREATE"},
		},
		NotReadBack: []string{"route: dump was interrupted"},
	}
	want := []string{"a: busy", "b: busy", "a: no memory", "route: dump was interrupted"}
	if got := failures(r); !slices.Equal(got, want) {
		t.Errorf("errors %q; expected %q", got, want)
	}
}
