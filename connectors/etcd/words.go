package etcd

import (
	"google.golang.org/grpc/status"

	"github.com/keyplane/keyplane/internal/printable"
)

// A failedCall is an error of gRPC in words for people, who read it in the log and as the state of a source. Programs
// find the error itself, and its code.
type failedCall struct{ error }

// Error leaves out what gRPC says for programs.
func (f failedCall) Error() string { return printable.WithoutRPC(f.error.Error()) }

// Unwrap makes errors.Is and errors.As find the error of gRPC.
func (f failedCall) Unwrap() error { return f.error }

// GRPCStatus makes the etcd client find the message of the server, which it compares with the known ones.
func (f failedCall) GRPCStatus() *status.Status { return status.Convert(f.error) }

// inWords returns an error of gRPC as a failedCall, and any other error unchanged: io.EOF ends a stream.
func inWords(err error) error {
	if _, ok := status.FromError(err); err == nil || !ok {
		return err
	}
	return failedCall{err}
}
