package scheduler

import (
	"fmt"
	"strings"
	"time"

	"github.com/keyplane/keyplane/scheduler/internal/executor"
)

// A RunningVerb is a verb that is running.
type RunningVerb struct {
	Key       string
	Verb      Verb
	For       time.Duration
	Abandoned bool // the scheduler does not wait for it; see ErrNoAnswer
}

func (r RunningVerb) String() string {
	text := fmt.Sprintf("%s running for %s", strings.ToLower(r.Verb.String()), executor.Seconds(r.For.Truncate(time.Second)))
	if r.Abandoned {
		text += ", abandoned"
	}
	return text
}

// Running returns the running verb of key, if there is one. No transaction waits for it.
func (s *Scheduler) Running(key string) (RunningVerb, bool) {
	r, ok := s.executor.Running(key)
	if !ok {
		return RunningVerb{}, false
	}
	return RunningVerb{Key: key, Verb: verbs[r.Verb], For: time.Since(r.Since), Abandoned: r.Abandoned}, true
}
