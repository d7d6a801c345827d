package executor

import (
	"slices"

	"github.com/keyplane/keyplane/scheduler/internal/queue"
)

// Tasks are the tasks of one owner. The zero value has none. The goroutine of the executor owns
// them.
//
//	New, Add             the task has begun
//	Finish               it has a result, or was abandoned
//	TakeFinished, End    the owner processes that
type Tasks struct {
	list     []*Task // those that have not ended, among others
	finished []*Task // the owner has not taken them yet
	running  int     // number of tasks that have not ended
	room     []Task  // for the next ones
}

// mostTasks is the largest number of tasks that are allocated at once. All of them stay in memory while one is in use.
const mostTasks = 64

// New returns a task.
func (ts *Tasks) New() *Task {
	if len(ts.room) == 0 {
		ts.room = make([]Task, min(mostTasks, 1+ts.running))
	}
	t := &ts.room[0]
	ts.room = ts.room[1:]
	return t
}

// Add adds a task that has not ended. It removes the others when they are the most.
func (ts *Tasks) Add(t *Task) {
	ts.running++
	if len(ts.list) >= 64 && len(ts.list) > 2*ts.running {
		ts.list = slices.DeleteFunc(ts.list, func(t *Task) bool { return t.Ended })
	}
	ts.list = append(queue.Doubled(ts.list), t)
}

// Finish hands t to its owner.
func (ts *Tasks) Finish(t *Task) { ts.finished = append(queue.Doubled(ts.finished), t) }

// TakeFinished returns the tasks that have finished since the last call.
func (ts *Tasks) TakeFinished() []*Task {
	tasks := ts.finished
	ts.finished = nil
	return tasks
}

// Ready reports whether TakeFinished has tasks.
func (ts *Tasks) Ready() bool { return len(ts.finished) > 0 }

// End marks t as ended. An abandoned task is a copy of the one that is still running.
func (ts *Tasks) End(t *Task) {
	ts.running--
	t.Ended = true
	if !t.Abandoned {
		return
	}
	for _, o := range ts.list {
		o.Ended = o.Ended || o.Index == t.Index
	}
}

// Running returns the number of tasks that have not ended.
func (ts *Tasks) Running() int { return ts.running }

// List returns the tasks that have not ended, among others.
func (ts *Tasks) List() []*Task { return ts.list }
