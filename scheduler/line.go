package scheduler

import (
	"slices"

	"github.com/keyplane/keyplane/scheduler/internal/executor"
	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
)

// A line is one connection, by its name, with or without a [Connection]. Run's goroutine
// owns it.
type line struct {
	link    graph.Connection
	losable bool // there is a Connection
	verbs   int  // verbs that have begun and have neither ended nor been abandoned
	reader  *run // reads its values back; nil: none does
}

// lineOf returns the line of a descriptor.
func lineOf(d *descriptor) *line { return d.Line.(*line) }

// lineNamed returns the line of a connection name, which may be new.
func (s *Scheduler) lineNamed(name string) *line {
	l := s.lines[name]
	if l == nil {
		l = &line{}
		s.lines[name] = l
	}
	return l
}

// claim makes r the reader of the lines, all or none. No verb of a line begins while it has
// a reader, and Retrieve waits until the running ones have ended: so a result is never older
// than the effect of a verb. Lines that were lost since r wanted to read them are left out.
func (s *Scheduler) claim(r *run) bool {
	if r.claimed {
		return true
	}
	for l := range r.lines {
		if l.reader != nil {
			return false
		}
	}
	r.claimed = true
	for l := range r.lines {
		if l.link.Losses() != r.lines[l] {
			r.leave(l)
			continue
		}
		l.reader = r
		s.graph.BeginRead(&l.link)
	}
	return true
}

// leave removes the readings of a line that was lost.
func (r *run) leave(l *line) {
	r.readings = slices.DeleteFunc(r.readings, func(rd reading) bool { return lineOf(rd.d) == l })
}

// releaseLines ends the reading of the lines that have no readings left.
func (s *Scheduler) releaseLines(r *run) {
	for l := range r.lines {
		left := slices.ContainsFunc(r.readings, func(rd reading) bool { return lineOf(rd.d) == l })
		if left {
			continue
		}
		delete(r.lines, l)
		if l.reader == r {
			l.reader = nil
			s.graph.EndRead(&l.link)
		}
	}
}

// deliver gives finished tasks to their runs. The owner of a task may be a parked run:
// then the loop resumes it.
func (s *Scheduler) deliver(tasks []*executor.Task) {
	for _, t := range tasks {
		lineOf(kind.OfOp(t.Op)).verbs--
		r := t.Owner.(*run)
		r.finished = append(r.finished, t)
	}
}
