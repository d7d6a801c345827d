package executor_test

import (
	"testing"

	"github.com/keyplane/keyplane/scheduler/internal/executor"
)

// TestTasksAreUsedAgain runs many tasks one after the other, while one runs all the time.
func TestTasksAreUsedAgain(t *testing.T) {
	var ts executor.Tasks
	first := ts.New()
	for i := range 10_000 {
		task := ts.New()
		if task.Ended || task.Index != 0 {
			t.Fatalf("a new task is %+v", task)
		}
		task.Index = i + 1
		ts.Finish(task)
		if !ts.Ready() {
			t.Fatal("a finished task is not ready")
		}
		for _, done := range ts.TakeFinished() {
			ts.End(done)
		}
	}
	if ts.Running() != 1 || ts.Ready() || first.Ended {
		t.Errorf("%d tasks are running, want the first one; some are ready: %v", ts.Running(), ts.Ready())
	}
	if n := len(ts.List()); n != 2 || ts.List()[0] != first {
		t.Errorf("the list has %d tasks and begins with task %d, want 2 with the first one", n, ts.List()[0].Index)
	}
}

// TestTasksGiveBackMemory ends all but one of many.
func TestTasksGiveBackMemory(t *testing.T) {
	var ts executor.Tasks
	var all []*executor.Task
	for range 10_000 {
		all = append(all, ts.New())
	}
	for _, task := range all[1:] {
		ts.End(task)
	}
	if n := len(ts.List()); n > 256 || ts.List()[0] != all[0] || ts.Running() != 1 {
		t.Errorf("the list has %d tasks, want at most 256 with the first one; %d are running", n, ts.Running())
	}
}

// TestAnAbandonedTaskEndsByItsCopy: the task itself may still be written, so it is not used again.
func TestAnAbandonedTaskEndsByItsCopy(t *testing.T) {
	var ts executor.Tasks
	running, other := ts.New(), ts.New()
	running.Index, other.Index = 1, 2
	ts.End(&executor.Task{Index: 1, Abandoned: true})
	if !running.Ended || other.Ended || ts.Running() != 1 {
		t.Errorf("ended: %v and %v, %d are running; want only the abandoned one to end", running.Ended, other.Ended, ts.Running())
	}
	ts.End(other)
	if again, next := ts.New(), ts.New(); again != other || next == running {
		t.Error("an abandoned task is used again, or one that has ended is not")
	}
}
