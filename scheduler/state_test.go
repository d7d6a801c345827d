package scheduler_test

import (
	"testing"

	"github.com/keyplane/keyplane/proto/ligato/kvscheduler"
	"github.com/keyplane/keyplane/scheduler"
)

// TestNamesAreThoseOfTheWire compares states and verbs with their enums in the API.
func TestNamesAreThoseOfTheWire(t *testing.T) {
	for n, name := range kvscheduler.ValueState_name {
		if got := scheduler.State(n).String(); got != name {
			t.Errorf("state %d is %q, want %q", n, got, name)
		}
	}
	for n, name := range kvscheduler.TxnOperation_name {
		if got := scheduler.Verb(n).String(); got != name {
			t.Errorf("verb %d is %q, want %q", n, got, name)
		}
	}
	if got := scheduler.State(11).String(); got != "state 11" {
		t.Errorf("an unknown state is %q", got)
	}
	if got := scheduler.Verb(-1).String(); got != "verb -1" {
		t.Errorf("an unknown verb is %q", got)
	}
}
