package grpc

import (
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/keyplane/keyplane/orchestrator/trial"
)

// TestTrialsRefuseChanges: a client can see that the agent is sound, and that to repeat the call does not help.
func TestTrialsRefuseChanges(t *testing.T) {
	for _, err := range []error{trial.ErrOnTrial, trial.ErrBusy} {
		got := status.Code((&service{}).failure(fmt.Errorf("%w: ci", err)))
		if got != codes.FailedPrecondition {
			t.Errorf("%v: %v, want %v", err, got, codes.FailedPrecondition)
		}
	}
}
