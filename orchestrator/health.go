package orchestrator

import (
	"sync/atomic"

	"github.com/keyplane/keyplane/kvdbsync"
)

// Health is how a source and its layer were at one moment.
type Health struct {
	kvdbsync.Health      // of an Input that tells; of others only Source, State and Keys
	Priority        int  // the highest wins
	Complete        bool // it has delivered a complete snapshot
	Refused         int  // keys whose newest value is not followed
	Remembered      int  // keys of an earlier run that the source has not spoken of yet
	// Doubted are keys that are missing but may not have been deleted. Their items stay
	// until a listing that begins after the grace time does not show them, either.
	Doubted int

	Faults []string // of the store's content that belong to no key, as texts, the first few
}

// mostFaults is how many a Health has at most.
const mostFaults = 20

// Health returns that of each source, the highest first. Nobody waits for it.
func (o *Orchestrator) Health() []Health {
	var out []Health
	for _, l := range o.layers {
		h := Health{
			Priority: l.Priority, Complete: l.told.complete.Load(), Refused: int(l.told.refused.Load()),
			Remembered: int(l.told.remembered.Load()), Doubted: int(l.told.doubted.Load()),
		}
		if faults := l.told.faults.Load(); faults != nil {
			h.Faults = *faults
		}
		if source, ok := l.Input.(healthy); ok {
			h.Health = source.Health()
		} else if h.Health = (kvdbsync.Health{Keys: int(l.told.keys.Load())}); h.Complete {
			h.State = kvdbsync.Synced
		}
		h.Source = l.Name
		out = append(out, h)
	}
	return out
}

// healthy is an Input that knows how it is; *kvdbsync.Source does.
type healthy interface{ Health() kvdbsync.Health }

// told is what others may see of a layer.
type told struct {
	complete                           atomic.Bool
	keys, refused, remembered, doubted atomic.Int64
	faults                             atomic.Pointer[[]string] // never changed
}

// publish shows how the layer is now.
func (l *layer) publish() {
	remembered := 0
	if l.restored {
		remembered = len(l.past)
	}
	l.told.complete.Store(l.synced)
	l.told.keys.Store(int64(len(l.entries)))
	l.told.refused.Store(int64(l.refused))
	l.told.remembered.Store(int64(remembered))
	l.told.doubted.Store(int64(l.doubtedKeys()))
	l.told.faults.Store(texts(l.problems))
}

func texts(problems []error) *[]string {
	var out []string
	for _, p := range problems[:min(len(problems), mostFaults)] {
		out = append(out, p.Error())
	}
	return &out
}
