package grpc

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"
)

const (
	// answerPerRequest is how many times as large as the largest request an answer may be.
	answerPerRequest = 4
	// bytesOfAnswer is about the memory, in bytes, that an answer with many values takes while
	// it is made.
	bytesOfAnswer = 8 << 20
)

// errLargeAnswer reports an answer that would be too large.
var errLargeAnswer = errors.New("the answer is too large")

// An answer is one with many values. It counts them before they are copied.
type answer struct{ bytes, most int }

// add counts a value before it becomes a part of the answer.
func (a *answer) add(v proto.Message) error {
	if a.bytes += proto.Size(v); a.bytes > a.most {
		return fmt.Errorf("%w: the maximum is %d bytes, %d times max-msg-size in grpc.conf: ask for values by their ids, read them over HTTP (GET /scheduler/dump), or raise max-msg-size",
			errLargeAnswer, a.most, answerPerRequest)
	}
	return nil
}

// newAnswer returns an answer without values.
func (s *service) newAnswer() *answer { return &answer{most: s.mostAnswer} }

// begin waits for memory, which answers of all servers share, until the answer is written. gRPC needs the
// whole of it up to three times: as values, as bytes, and until the client has read it.
func (s *service) begin(ctx context.Context, a *answer) error {
	return callOf(ctx).hold(ctx, max(bytesOfAnswer, 3*int64(a.bytes)))
}
