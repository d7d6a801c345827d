package scheduler

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/scheduler/internal/graph"
)

// mostAlike is how many values are created in one go: enough that sending and waiting for
// each counts little, few enough that not too many are in doubt when the connection breaks.
const mostAlike = 16

// alike is how many tasks, from the first, one CreateAll can do.
func alike(tasks []*task) (n int) {
	for n < len(tasks) && tasks[n].op.Verb == graph.Create && tasks[n].d == tasks[0].d && tasks[n].d.createAll != nil {
		n++
	}
	return n
}

// createAll has tasks done that are alike; false: they are to be called one by one.
func createAll(ctx context.Context, tasks []*task) bool {
	begun := time.Now()
	verbs := func() []error { return callAll(ctx, tasks) }
	if around := tasks[0].d.interceptAll; around == nil {
		verbs()
	} else if !around(newValues(tasks), verbs) {
		return false
	}
	share := max(1, time.Since(begun)/time.Duration(len(tasks)))
	for _, t := range tasks {
		t.took = share
	}
	return true
}

func newValues(tasks []*task) []KeyValue {
	values := make([]KeyValue, len(tasks))
	for i, t := range tasks {
		values[i] = KeyValue{t.op.Node.Key(), t.op.New.Data.(proto.Message)}
	}
	return values
}

// callAll runs the verb of tasks, and returns the error of each.
func callAll(ctx context.Context, tasks []*task) (errs []error) {
	defer func() {
		p := recover()
		errs = make([]error, len(tasks))
		for i, t := range tasks {
			if p != nil {
				t.err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			}
			errs[i] = t.err
		}
	}()
	tasks[0].d.createAll(ctx, tasks)
	return nil
}
