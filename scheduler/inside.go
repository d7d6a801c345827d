package scheduler

import (
	"context"

	"github.com/keyplane/keyplane/scheduler/internal/counters"
	"github.com/keyplane/keyplane/scheduler/internal/inside"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
	"github.com/keyplane/keyplane/scheduler/internal/readback"
)

// Inside is for packages drift, explain, inspect and stats. The type of its result is internal.
func (s *Scheduler) Inside() inside.View {
	return inside.View{
		Registry: &s.registry, Executor: s.executor, Counters: s.counters,
		Reader: s.retriever, Connections: s.connectionsReady, Loss: s.outputLoss,
	}
}

// retriever returns a function that reads back all values of a descriptor. It may run beside the
// loop, on any goroutine.
func (s *Scheduler) retriever(only *descriptor) inside.Read {
	desired := map[string][]kind.Desired{} // by name of the descriptor
	bases := map[string]string{}           // of derived values
	for st := range s.statuses.All() {
		switch {
		case only != nil && st.Descriptor != only.Name:
		case st.Base != "":
			bases[st.Key] = st.Base
		case st.Desired != nil:
			desired[st.Descriptor] = append(desired[st.Descriptor], kind.Desired{Key: st.Key, Value: st.Normalized()})
		}
	}
	return func(ctx context.Context, d *descriptor) ([]kind.Found, error) {
		got, err := s.reader.Collect(ctx, readback.Part{Of: d}, desired[d.Name])
		for i := range got.Items {
			it := &got.Items[i]
			it.Foreign = !s.oursByStatus(d, it, bases)
		}
		return got.Items, err
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
