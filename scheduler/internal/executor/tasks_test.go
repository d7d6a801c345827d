package executor_test

import (
	"testing"

	"github.com/keyplane/keyplane/scheduler/internal/executor"
)

// TestTasksForgetThoseThatHaveEnded runs many tasks one after the other: the list must not grow
// with all that ever began.
func TestTasksForgetThoseThatHaveEnded(t *testing.T) {
	var ts executor.Tasks
	first := &executor.Task{}
	ts.Add(first)
	for i := range 10_000 {
		task := &executor.Task{Index: i + 1}
		ts.Add(task)
		ts.Finish(task)
		if !ts.Ready() {
			t.Fatal("a finished task is not ready")
		}
		for _, done := range ts.TakeFinished() {
			ts.End(done)
		}
	}
	if ts.Running() != 1 || ts.Ready() {
		t.Errorf("%d tasks are running, want the first one; some are ready: %v", ts.Running(), ts.Ready())
	}
	if n := len(ts.List()); n > 128 || ts.List()[0] != first {
		t.Errorf("the list has %d tasks and begins with task %d, want at most 128 with the first one", n, ts.List()[0].Index)
	}
}

func TestAnAbandonedTaskEndsByItsCopy(t *testing.T) {
	var ts executor.Tasks
	running, other := &executor.Task{Index: 1}, &executor.Task{Index: 2}
	ts.Add(running)
	ts.Add(other)
	ts.End(&executor.Task{Index: 1, Abandoned: true})
	if !running.Ended || other.Ended || ts.Running() != 1 {
		t.Errorf("ended: %v and %v, %d are running; want only the abandoned one to end", running.Ended, other.Ended, ts.Running())
	}
}
