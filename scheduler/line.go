package scheduler

import (
	"github.com/keyplane/keyplane/scheduler/internal/executor"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
	"github.com/keyplane/keyplane/scheduler/internal/readback"
)

// A line is one connection, by its name, with or without a [Connection].
type line = readback.Line

// lineNamed returns the line of a connection name, which may be new.
func (s *Scheduler) lineNamed(name string) *line {
	l := s.lines[name]
	if l == nil {
		l = &line{}
		s.lines[name] = l
	}
	return l
}

// deliver gives finished tasks to their runs. The owner of a task may be a parked run:
// then the loop resumes it.
func (s *Scheduler) deliver(tasks []*executor.Task) {
	for _, t := range tasks {
		readback.LineOf(kind.OfOp(t.Op)).Verbs--
		r := t.Owner.(*run)
		r.finished = append(r.finished, t)
	}
}
