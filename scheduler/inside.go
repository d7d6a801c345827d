package scheduler

import (
	"github.com/keyplane/keyplane/scheduler/internal/counters"
	"github.com/keyplane/keyplane/scheduler/internal/inside"
)

// Inside is for packages that show a scheduler: changes, drift, explain, inspect and stats. The type
// of its result is internal.
func (s *Scheduler) Inside() inside.View[*Status] {
	return inside.View[*Status]{
		Registry: &s.registry, Executor: s.executor, Counters: s.counters, Reader: s.reader,
		Remembers: s.ledger.Has, Recent: s.watchers.Recent, Connections: s.connectionsReady, Loss: s.outputLoss,
	}
}

// connectionsReady reports by name whether a connection is ready.
func (s *Scheduler) connectionsReady() map[string]bool {
	out := make(map[string]bool, len(s.connections))
	for name, g := range s.connections {
		out[name] = g.ready.Load()
	}
	return out
}

// count counts the change of a status; nil: none.
func (s *Scheduler) count(old, now *Status) { s.counters.Moved(old.place(), now.place()) }

// place returns what the counters distinguish about a status. A value without a status has
// no place.
func (st *Status) place() counters.Place {
	if st == nil {
		return counters.Place{}
	}
	return counters.Place{Exists: true, Descriptor: st.Descriptor, State: int32(st.State)}
}
