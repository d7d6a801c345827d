package executor

import (
	"slices"

	"github.com/keyplane/keyplane/scheduler/internal/queue"
)

// Tasks are the tasks of one owner. The zero value has none. The goroutine of the executor owns
// them.
//
//	New                  a task begins
//	Finish               it has a result, or was abandoned
//	TakeFinished, End    the owner processes that; the next New may return the same task
type Tasks struct {
	list     []*Task // those that have not ended, among others
	free     []*Task // ended ones of list, to be used again
	finished []*Task // the owner has not taken them yet
	running  int     // number of tasks that have not ended
	room     []Task  // for the next ones
}

// mostTasks is the largest number of tasks that are allocated at once. All of them stay in memory while one is in use.
const mostTasks = 64

// New returns a task that has not ended. The caller sets its fields.
func (ts *Tasks) New() (t *Task) {
	ts.running++
	if last := len(ts.free) - 1; last >= 0 {
		t, ts.free = ts.free[last], ts.free[:last]
		*t = Task{}
		return t
	}
	if len(ts.room) == 0 {
		ts.room = make([]Task, min(mostTasks, ts.running))
	}
	t, ts.room = &ts.room[0], ts.room[1:]
	ts.list = append(queue.Doubled(ts.list), t)
	return t
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

// End marks t as ended. Its fields stay until the next New. An abandoned task is a copy of the one that is still running, which
// is not used again.
func (ts *Tasks) End(t *Task) {
	ts.running--
	t.Ended = true
	if t.Abandoned {
		for _, o := range ts.list {
			o.Ended = o.Ended || o.Index == t.Index
		}
		return
	}
	ts.free = append(queue.Doubled(ts.free), t)
	if len(ts.list) >= 4*mostTasks && len(ts.list) > 2*ts.running { // give their memory back
		ts.list = slices.DeleteFunc(ts.list, func(t *Task) bool { return t.Ended })
		ts.free = nil
	}
}

// Running returns the number of tasks that have not ended.
func (ts *Tasks) Running() int { return ts.running }

// List returns the tasks that have not ended, among others.
func (ts *Tasks) List() []*Task { return ts.list }
