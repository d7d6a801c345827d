package scheduler

import (
	"context"

	"github.com/keyplane/keyplane/scheduler/internal/executor"
	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
)

// ErrNoAnswer is the error of an abandoned verb: it has not returned within
// Options.VerbTimeout. The value is FAILED, and no other verb of its key is called until
// the verb returns.
var ErrNoAnswer = executor.ErrNoAnswer

// handleLateResults processes the results of abandoned verbs that have returned. It reads
// back their keys and reconciles them.
func (s *Scheduler) handleLateResults(ctx context.Context, tasks []*executor.Task) {
	// A run learns only when it goes on that its verb was abandoned. If the graph learned the late result first, it would wait
	// for the verb for ever.
	for _, t := range tasks {
		s.takeResults(t.Owner.(*run))
	}
	r := s.begin(Notification)
	r.rec.Description = "abandoned operations have returned"
	var nodes []*graph.Node
	for _, t := range tasks {
		n := t.Op.Node
		s.log.Info("an abandoned verb has returned", "descriptor", t.Verbs.Descriptor, "key", n.Key(), "operation", verbs[t.Op.Verb], "took", t.Took, "err", t.Err)
		o := operation(t.Op, s.statuses.At(n.Slot).Known())
		o.NewErr, o.Order = t.Err, t.Order
		s.graph.Returned(t.Op, t.Meta, t.Err)
		s.outdate(t)
		if s.graph.NeedsReading(n) || t.Err != nil {
			s.readOrphan(t.Op)
		}
		s.reader.Learned(n.Key())
		s.resumeRetry(r, n, t.Err)
		old := s.statuses.At(n.Slot)
		o.NewState = s.publish(r.rec.Start, n, old)
		s.statuses.At(n.Slot).Mark(r.mark())
		s.remember(r, t, &o)
		r.rec.Executed.add(&o)
		nodes = append(nodes, n)
	}
	s.reader.Want(&r.reading, s.reader.For(nodes), nil)
	s.finish(ctx, r)
}

// readOrphan reads back the connection of an operation whose node has no value any more, so
// that it knows neither its descriptor nor its base. Otherwise nobody would find the item: a Create
// that failed may have been partly effective, and its value may be unwanted by now.
func (s *Scheduler) readOrphan(op graph.Op) {
	if kind.Of(op.Node) == nil {
		s.inbox.Refresh(s.reader.WithoutAnswer(kind.OfOp(op))...)
	}
}
