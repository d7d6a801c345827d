// Package reading is for a Retrieve that must know before it reads whether the scheduler takes what was read as what is
// there, or whether somebody only looks:
//
//	return reading.Of(func(learns bool, yield func(scheduler.Found[V, M], error) bool) {
//		...
//	})
package reading

import (
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/scheduler"
)

// Of returns what read yields. If learns is false, somebody only looks: read must change nothing, neither in the descriptor
// nor in the system.
func Of[V proto.Message, M any](read func(learns bool, yield func(scheduler.Found[V, M], error) bool)) scheduler.Retrieved[V, M] {
	return func(yield func(scheduler.Found[V, M], error) bool) {
		learns := false
		if yield(scheduler.Found[V, M]{Learned: func() { learns = true }}, nil) {
			read(learns, yield)
		}
	}
}
