// Package reading is for descriptors that need to say more about reading back. [Of] is for a Retrieve that must know before it
// reads whether the scheduler takes what was read as what is there, or whether somebody only looks:
//
//	return reading.Of(func(learns bool, yield func(scheduler.Found[V, M], error) bool) {
//		...
//	})
//
// [Needless] is for a verb that has failed without any effect.
package reading

import (
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/internal/executor"
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

// Needless marks an error of a verb that has changed nothing in the system, for example because a kernel has refused its only
// request. Without the mark the value is read back, since a verb that fails may have done a part of its work, and the other
// verbs of its connection wait for that. A nil stays nil.
func Needless(err error) error { return executor.NoEffect(err) }
