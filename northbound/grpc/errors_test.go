package grpc

import (
	"context"
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/orchestrator/trial"
)

// TestCodes: a client can tell its own mistakes and cancellations from what the agent does.
func TestCodes(t *testing.T) {
	for want, errs := range map[codes.Code][]error{
		codes.FailedPrecondition: {trial.ErrOnTrial, trial.ErrBusy},
		codes.Unavailable:        {trial.ErrNotDeleted, fmt.Errorf("%w: %w", orchestrator.ErrStopped, context.Canceled)},
		codes.Canceled:           {context.Canceled},
	} {
		for _, err := range errs {
			if got := status.Code((&service{}).failure(fmt.Errorf("ci: %w", err))); got != want {
				t.Errorf("%v: %v, want %v", err, got, want)
			}
		}
	}
}
