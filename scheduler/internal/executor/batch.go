package executor

import (
	"context"
	"time"

	"github.com/keyplane/keyplane/internal/guard"
	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// maxCreateAll is the maximum number of values of one CreateAll: enough that waiting for each
// call costs little, few enough that not many are uncertain when the connection breaks.
const maxCreateAll = 16

// sameCreateAll returns the number of tasks, from the first, that one CreateAll can do.
func sameCreateAll(tasks []*Task) (n int) {
	for n < len(tasks) && tasks[n].Op.Verb == value.Create && tasks[n].Verbs == tasks[0].Verbs && tasks[n].Verbs.CreateAll != nil {
		n++
	}
	return n
}

// createAll calls CreateAll for tasks. It returns false if InterceptAll wants single calls.
func createAll(ctx context.Context, tasks []*Task) bool {
	begun := time.Now()
	verbs := func() []error { return callAll(ctx, tasks) }
	intercept := tasks[0].Verbs.InterceptAll
	if intercept == nil {
		verbs()
	} else if !intercept(tasks, verbs) {
		return false
	}
	share := max(1, time.Since(begun)/time.Duration(len(tasks)))
	for _, t := range tasks {
		t.Took = share
	}
	return true
}

// callAll calls CreateAll and returns the error of each task.
func callAll(ctx context.Context, tasks []*Task) (errs []error) {
	panicked := guard.Detailed(func() error {
		tasks[0].Verbs.CreateAll(ctx, tasks)
		return nil
	})
	errs = make([]error, len(tasks))
	for i, t := range tasks {
		if panicked != nil {
			t.Err = panicked
		}
		errs[i] = t.Err
	}
	return errs
}
