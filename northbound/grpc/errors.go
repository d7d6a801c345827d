package grpc

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"

	"github.com/keyplane/keyplane/internal/printable"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/orchestrator/trial"
	"github.com/keyplane/keyplane/proto/ligato/kvscheduler"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/wait"
)

// Bounds of an error. Text and details travel in the header of the answer. Clients made
// from gRPC's C core, such as Python's, drop an answer whose header has more than 8 KiB.
const (
	maxText    = 1 << 10 // of the message
	maxDetail  = 512     // of one text in a detail
	maxDetails = 2 << 10 // of all details together
)

// failure returns the status of an error of a request.
func (s *service) failure(err error) error {
	var failed *scheduler.TxnError
	var waited *wait.Error
	switch {
	case errors.As(err, &failed):
		return failureOf(codes.FailedPrecondition, failed.Error(), s.failedValues(failed))
	case errors.Is(err, orchestrator.ErrNotRecorded), errors.Is(err, trial.ErrNotDeleted),
		errors.Is(err, orchestrator.ErrStopped), errors.Is(err, scheduler.ErrStopped):
		return failureOf(codes.Unavailable, err.Error(), nil) // also if the context that ended is the agent's
	case errors.As(err, &waited) && errors.Is(err, context.DeadlineExceeded):
		return failureOf(codes.DeadlineExceeded, waited.Error(), pendingValues(waited))
	case errors.Is(err, context.DeadlineExceeded):
		return failureOf(codes.DeadlineExceeded, err.Error(), nil)
	case errors.Is(err, context.Canceled):
		return failureOf(codes.Canceled, err.Error(), nil)
	case errors.Is(err, trial.ErrOnTrial), errors.Is(err, trial.ErrBusy):
		return failureOf(codes.FailedPrecondition, err.Error(), nil)
	case errors.Is(err, orchestrator.ErrLayerName):
		return failureOf(codes.InvalidArgument, err.Error(), nil)
	case errors.Is(err, orchestrator.ErrTooManyLayers), errors.Is(err, errLargeAnswer):
		return failureOf(codes.ResourceExhausted, err.Error(), nil)
	}
	return failureOf(codes.Internal, err.Error(), nil)
}

// failedValues returns a ligato.kvscheduler.ValueStatus for each value that failed. Its
// details are the paths of invalid fields. The present state is shown where it says more
// than the error: a failed value is often RETRYING by now.
func (s *service) failedValues(e *scheduler.TxnError) (out []proto.Message) {
	for _, k := range e.Failed {
		v := &kvscheduler.ValueStatus{
			Key: k.Key, State: kvscheduler.ValueState_FAILED, LastOperation: kvscheduler.TxnOperation(k.Verb),
			Error: printable.Cut(k.Err.Error(), maxDetail), Details: models.Fields(k.Err),
		}
		if k.Verb == scheduler.Validate {
			v.State = kvscheduler.ValueState_INVALID
		}
		if errors.Is(k.Err, scheduler.ErrUnimplemented) {
			v.State = kvscheduler.ValueState_UNIMPLEMENTED
		} else if st, ok := s.Scheduler.Status(k.Key); ok && st.Err != nil && st.Err.Error() == k.Err.Error() {
			v.State = kvscheduler.ValueState(st.State) // such as RETRYING
		}
		out = append(out, v)
		if len(out) > maxDetails/16 {
			break
		}
	}
	return out
}

// pendingValues returns a ligato.kvscheduler.ValueStatus for each pending value. Its
// details are the labels of the dependencies that are not met.
func pendingValues(e *wait.Error) (out []proto.Message) {
	for _, v := range e.Values {
		out = append(out, &kvscheduler.ValueStatus{Key: v.Key, State: kvscheduler.ValueState(v.State), Details: v.Details})
		if len(out) > maxDetails/16 {
			break
		}
	}
	return out
}

// failureOf returns a status with as many details as fit. A detail that does not fit is
// left out with all later ones; the text still names the first values.
func failureOf(code codes.Code, text string, details []proto.Message) error {
	st := status.New(code, printable.Cut(textOf(text), maxText))
	room := maxDetails
	var fit []protoadapt.MessageV1
	for _, d := range details {
		d = inUTF8(d)
		if room -= proto.Size(d) + 64; room < 0 { // the Any of a detail has the name of its type
			break
		}
		fit = append(fit, protoadapt.MessageV1Of(d))
	}
	if full, err := st.WithDetails(fit...); err == nil {
		st = full
	}
	return st.Err()
}

// mistakes collects the errors of a malformed request, by the path of the field.
type mistakes struct {
	effect string // unchanged, of a request that is a change
	found  []*errdetails.BadRequest_FieldViolation
	more   int
}

// unchanged is the effect of a malformed change.
const unchanged = "nothing was changed, because "

// mostMistakes is how many mistakes an answer names.
const mostMistakes = 8

// add keeps the first mistakes and counts the others: an answer must fit into a header.
func (m *mistakes) add(field string, err error) {
	if len(m.found) == mostMistakes {
		m.more++
		return
	}
	m.found = append(m.found, &errdetails.BadRequest_FieldViolation{Field: field, Description: printable.Cut(err.Error(), 160)})
}

// err returns InvalidArgument, or nil without mistakes. Each mistake is a field violation of
// one google.rpc.BadRequest.
func (m *mistakes) err() error {
	if len(m.found) == 0 {
		return nil
	}
	var text strings.Builder
	text.WriteString(m.effect + "the request is malformed")
	for i, f := range m.found {
		sep := "; "
		if i == 0 {
			sep = ": "
		}
		text.WriteString(sep + f.GetField() + ": " + f.GetDescription())
	}
	if m.more > 0 {
		fmt.Fprintf(&text, "; and %d more", m.more)
	}
	return failureOf(codes.InvalidArgument, text.String(), []proto.Message{&errdetails.BadRequest{FieldViolations: m.found}})
}
