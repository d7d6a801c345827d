package scheduler

import (
	"context"

	"github.com/keyplane/keyplane/scheduler/internal/counters"
	"github.com/keyplane/keyplane/scheduler/internal/inside"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
)

// Inside is for packages inspect, stats and explain. The type of its result is internal.
func (s *Scheduler) Inside() inside.View {
	return inside.View{
		Registry: &s.registry, Executor: s.executor, Counters: s.counters,
		Read: s.dump, Connections: s.connectionsReady, Loss: s.outputLoss,
	}
}

// dump reads back all values of d. It may run beside the loop.
func (s *Scheduler) dump(ctx context.Context, d *descriptor) ([]kind.Found, error) {
	var ws []kind.Desired
	bases := map[string]string{}
	for st := range s.statuses.All() {
		if st.Descriptor == d.Name && st.Base != "" {
			bases[st.Key] = st.Base
		}
		if st.Descriptor == d.Name && st.Desired != nil && st.Base == "" {
			ws = append(ws, kind.Desired{Key: st.Key, Value: kind.Message(st.value)})
		}
	}
	got, err := s.collect(ctx, reading{d: d}, ws)
	for i := range got.items {
		it := &got.items[i]
		it.Foreign = !s.oursByStatus(d, it, bases)
	}
	return got.items, err
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

func (st *Status) place() counters.Place {
	if st == nil {
		return counters.Place{}
	}
	return counters.Place{Exists: true, Descriptor: st.Descriptor, State: int32(st.State)}
}
