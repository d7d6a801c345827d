package scheduler

import (
	"github.com/keyplane/keyplane/scheduler/internal/inside"
	"github.com/keyplane/keyplane/scheduler/internal/published"
)

// Inside is for packages that show a scheduler: changes, drift, explain, inspect and stats. The type
// of its result is internal.
func (s *Scheduler) Inside() inside.View[*Status, Dependency] {
	return inside.View[*Status, Dependency]{
		Registry: &s.registry, Executor: s.executor, Counters: s.counters, Reader: s.reader,
		Status: statusOf, Same: func(a, b *Status) bool { return a.of == b.of },
		Remembers: s.ledger.Has, Recent: s.watchers.Recent, Loss: s.outputLoss, Dependencies: publicDependencies,
	}
}

// count counts the change of a status; nil: none.
func (s *Scheduler) count(old, now *published.Status) { s.counters.Moved(old.Place(), now.Place()) }
