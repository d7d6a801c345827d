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

// An answer is one with many values while it is made. gRPC needs the whole of it in memory, up
// to three times: as values, as bytes, and until the client has read it.
type answer struct{ bytes, most int }

// beginAnswer waits for memory, which answers of all servers share. leave gives it back.
func (s *service) beginAnswer(ctx context.Context) (a *answer, leave func(), err error) {
	leave, err = s.Memory.Enter(ctx, bytesOfAnswer)
	if err != nil {
		return nil, nil, err
	}
	return &answer{most: s.mostAnswer}, leave, nil
}

// add counts a value before it becomes a part of the answer.
func (a *answer) add(v proto.Message) error {
	if a.bytes += proto.Size(v); a.bytes > a.most {
		return fmt.Errorf("%w: the maximum is %d bytes, %d times max-msg-size in grpc.conf: ask for values by their ids, read them over HTTP (GET /scheduler/dump), or raise max-msg-size",
			errLargeAnswer, a.most, answerPerRequest)
	}
	return nil
}
